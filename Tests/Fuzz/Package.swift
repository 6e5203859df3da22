// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    // libFuzzer has its own `main`.
    .unsafeFlags(["-parse-as-library"]),
]

/// One executable contains all targets; `Tests/Fuzz/run` builds and runs it. A separate package, because it links only
/// with libFuzzer's `main`, which would break the build of the product.
let package = Package(
    name: "fuzz",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "nagare", path: "../..")],
    targets: [
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                .product(name: "NagareCores", package: "nagare"), .product(name: "NagareParsers", package: "nagare"),
            ],
            swiftSettings: settings
        )
    ]
)
