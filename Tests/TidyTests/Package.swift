// swift-tools-version: 6.2
import PackageDescription

/// A package of its own, because these tests read the sources and need no build of the product: `ops/test static` runs them
/// first.
let package = Package(
    name: "tidy",
    platforms: [.macOS(.v26)],
    targets: [
        .testTarget(
            name: "TidyTests",
            path: ".",
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .strictMemorySafety(),
                .treatAllWarnings(as: .error),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
            ]
        )
    ]
)
