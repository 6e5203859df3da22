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
    // The fuzzer has its own `main`.
    .unsafeFlags(["-parse-as-library"]),
]

/// One executable with all fuzz targets. `Tests/Fuzz/run` builds and runs it. It is a package of its own, because it links
/// only with the fuzzer's `main`.
let package = Package(
    name: "fuzz",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "nagare", path: "../..")],
    targets: [
        .executableTarget(
            name: "Fuzz",
            dependencies: [.product(name: "NagareCores", package: "nagare")],
            swiftSettings: settings
        )
    ]
)
