// swift-tools-version: 6.2
import PackageDescription

/// The modules under measure share `package` declarations with one another: the parser, the rewriter, the loss detector.
/// What is measured here is measured as they call it, so these targets are compiled as part of the product's package,
/// whose name to the compiler is that of its folder.
let product = Context.packageDirectory.split(separator: "/").dropLast().last.map { $0.lowercased() } ?? "nagare"

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    .unsafeFlags(["-package-name", product]),
]

let cores = Target.Dependency.product(name: "NagareCores", package: "nagare")

/// Measurements of the forwarding path. A package of its own, so that users of the product build none of it.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v26)],
    dependencies: [
        .package(name: "nagare", path: ".."),
        .package(url: "https://github.com/ordo-one/benchmark", exact: "1.38.1", traits: []),
    ],
    targets: [
        // What a program asks of the runtime and of the C library, counted.
        .target(name: "Counters", path: "Counters"),
        // The same work as the product's, in C with nothing around it: what the ratios are to.
        .target(
            name: "Floor",
            path: "Floor",
            cSettings: [.unsafeFlags(["-O3", "-march=x86-64-v3"], .when(configuration: .release))],
            linkerSettings: [.linkedLibrary("crypto"), .linkedLibrary("m")]
        ),
        .target(
            name: "Kit",
            dependencies: ["Counters", "Floor", cores],
            path: "Kit",
            packageAccess: false,
            swiftSettings: settings
        ),
        .executableTarget(
            name: "hotpath",
            dependencies: ["Counters", "Kit", cores],
            path: "Hotpath",
            packageAccess: false,
            swiftSettings: settings
        ),
        .executableTarget(
            name: "Micro",
            dependencies: ["Kit", .product(name: "Benchmark", package: "benchmark")],
            path: "Micro",
            packageAccess: false,
            swiftSettings: settings,
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        ),
    ]
)
