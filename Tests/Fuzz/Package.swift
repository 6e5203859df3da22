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
    // The fuzzer brings its own `main`.
    .unsafeFlags(["-parse-as-library"]),
]

/// One executable holds every target; `Tests/Fuzz/run` builds and runs it. A package of its own, because it links only
/// with the sanitizers' `main`, which would break a build of the product.
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
