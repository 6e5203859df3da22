// swift-tools-version: 6.2
import PackageDescription

/// The measured modules call each other's `package` declarations: the parser, the rewriter, the NACK tracker. The
/// benchmarks call the same declarations, so they are compiled under the product's package name. SwiftPM takes that name
/// from the product's folder.
let product = Context.packageDirectory.split(separator: "/").dropLast().last.map { $0.lowercased() } ?? "nagare"

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
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
        // Counts calls of the Swift runtime and of the C library.
        .target(name: "Counters", path: "Counters"),
        // The same work in plain C: the denominator of every ratio.
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

// `Benchmarks/build hotpath` sets NAGARE_HOTPATH_ONLY: the tools of the benchmark package take as long to compile as the measured
// modules, and `hotpath` uses none of them.
if Context.environment["NAGARE_HOTPATH_ONLY"] != nil {
    package.dependencies.removeLast()
    package.targets.removeAll { $0.name == "Micro" }
}
