// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableExperimentalFeature("Lifetimes"),
]

/// A module of the product. The order below is the design: a module depends only on those above it.
func module(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", resources: resources, swiftSettings: settings)
}

let package = Package(
    name: "nagare",
    platforms: [.macOS(.v26)],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),

        module("Wire"),
        module("ICE", ["Wire"]),
        module("DTLS", ["Wire", "COpenSSL"]),
        module("SRTP", ["Wire", "CSRTP"]),
        module("CongestionControl", ["Wire"]),
        module("Metrics"),
        module("Forwarding", ["Wire", "ICE", "DTLS", "SRTP", "CongestionControl", "Metrics"]),
        module("Client", ["Wire", "ICE", "DTLS", "SRTP", "CongestionControl", "Forwarding"]),
        tests("Simulation", ["Wire", "DTLS", "Forwarding", "Client"]),
    ]
)
