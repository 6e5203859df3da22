// swift-tools-version: 6.2
import PackageDescription

// Without NonisolatedNonsendingByDefault: when an asynchronous function of that kind throws an actor's error, Swift 6.3.1
// leaves its caller on that actor's executor. The caller's actor then runs on two threads at once.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
]

/// `ops/test` sets `NAGARE_TESTING`, so that tests can import the optimised modules with `@testable`.
let testability: [SwiftSetting] =
    Context.environment["NAGARE_TESTING"] == nil
    ? [] : [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

/// `ops/package` sets `NAGARE_STATIC`, which links the program with the Swift runtime inside. Unlike SwiftPM's own option it
/// compiles nothing again, and the tests, whose library has no static variant, are built beside. The compiler tells the
/// linker of Foundation, but not of what Foundation itself needs.
let runtime: [LinkerSetting] =
    Context.environment["NAGARE_STATIC"] == nil
    ? []
    : [
        .unsafeFlags(
            ["-static-stdlib", "-Xlinker", "--start-group"]
                + [
                    "Foundation", "FoundationInternationalization", "FoundationEssentials", "CoreFoundation",
                    "_FoundationICU", "_FoundationCShims", "_FoundationCollections", "swiftSynchronization",
                ].flatMap { ["-Xlinker", "-l\($0)"] }
                + ["-Xlinker", "--end-group"]
        )
    ]

/// Of what no media packet passes. It compiles a third faster, and the program is smaller.
let small: [SwiftSetting] = [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// A library of the system, with the Debian package that has its header.
func library(_ name: String, pkgConfig: String? = nil, package: String) -> Target {
    .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A module of the product. The order below is the design: a module depends only on those above it.
/// - Parameters:
///   - path: its folder below `Sources`. The first part is its area, the last one its name.
///   - isSmall: whether the compiler prefers small code to fast code.
func module(
    _ path: String,
    _ dependencies: [Target.Dependency] = [],
    exclude: [String] = [],
    resources: [Resource] = [],
    isSmall: Bool = false
) -> Target {
    .target(
        name: String(path.split(separator: "/").last ?? ""),
        dependencies: dependencies,
        path: "Sources/\(path)",
        exclude: exclude,
        resources: resources,
        swiftSettings: settings + testability + (isSmall ? small : [])
    )
}

/// A target of tests.
/// - Parameter isOptimized: whether `ops/test` optimises the tests themselves, and not the product alone. It takes three times as
///   long to compile, so it is for tests that compute much.
func tests(
    _ name: String,
    _ dependencies: [Target.Dependency],
    resources: [Resource] = [],
    isOptimized: Bool = false
) -> Target {
    let isPlain = !isOptimized && Context.environment["NAGARE_TESTING"] != nil
    return .testTarget(
        name: name,
        dependencies: dependencies,
        path: "Tests/\(name)",
        resources: resources,
        swiftSettings: settings + (isPlain ? [.unsafeFlags(["-Onone"], .when(configuration: .release))] : [])
    )
}

func nio(_ product: String) -> Target.Dependency { .product(name: product, package: "swift-nio") }

/// Hummingbird's own metrics go by another name here, because `Metrics` is a module of ours.
func hummingbird(_ product: String) -> Target.Dependency {
    .product(name: product, package: "hummingbird", moduleAliases: ["Metrics": "SwiftMetrics"])
}

let package = Package(
    name: "nagare",
    platforms: [.macOS(.v26), .iOS(.v18)],
    products: [
        .executable(name: "nagare", targets: ["nagare"]),
        // For apps: on Foundation alone, and on any platform.
        .library(name: "NagareClient", targets: ["NagareClient"]),
        // For Tests/Fuzz and Benchmarks, which are packages of their own.
        .library(
            name: "NagareCores",
            targets: [
                "Base", "Wire", "ICE", "TURN", "DTLS", "TLS", "SRTP", "SCTP", "CongestionControl", "Metrics",
                "MediaTypes",
                "Negotiation", "Forwarding", "JSON", "TestSupport",
            ]
        ),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: [.defaults, "YAML"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        library("CUV", pkgConfig: "libuv", package: "libuv1-dev"),
        library("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
        library("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
        library("CSRTP", pkgConfig: "libsrtp2", package: "libsrtp2-dev"),
        // Without pkgConfig: hiredis.pc has a flag that SwiftPM warns of.
        library("CHiredis", package: "libhiredis-dev"),
        library("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
        .target(name: "CDatagram", path: "Sources/System/CDatagram"),
        .target(name: "CIPSecMB", path: "Sources/System/CIPSecMB"),
        .target(name: "CPrefetch", path: "Sources/System/CPrefetch"),

        module("Base"),
        module("Protocols/Wire", ["Base"]),
        module("Protocols/ICE", ["Base", "Wire"]),
        module("Protocols/TURN", ["Base", "Wire"]),
        module("Protocols/OpenSSLBuffers", ["COpenSSL"]),
        module("Protocols/DTLS", ["Base", "Wire", "OpenSSLBuffers", "COpenSSL"]),
        module("Protocols/TLS", ["OpenSSLBuffers", "COpenSSL"]),
        module("Protocols/SRTP", ["Base", "Wire", "COpenSSL", "CSRTP", "CIPSecMB"]),
        module("Protocols/SCTP", ["Base"]),
        module("Protocols/RTMP", ["Base"]),
        module("Protocols/MediaFormat", ["Base", "Wire"]),
        module("Protocols/Frames", ["Base", "Wire", "MediaFormat"]),
        module("Protocols/Signatures", ["COpenSSL"]),
        module("Protocols/Deflate", ["CZlib"]),
        module("Protocols/JSON"),
        module("Gateway/Recording", ["Base", "Wire", "MediaFormat", "JSON"]),
        module("CongestionControl", ["Base", "Wire", "CPrefetch"]),
        module("Metrics/Metrics"),
        module("Forwarding/MediaTypes", ["Base", "Wire"]),
        module("Forwarding/Negotiation", ["Base", "Wire", "MediaTypes"]),
        module(
            "Forwarding/Forwarding",
            ["Base", "Wire", "ICE", "TURN", "DTLS", "SRTP", "SCTP", "CongestionControl", "MediaTypes", "CPrefetch"]
        ),
        module("EventLoop", ["Base", "Wire", "CUV", "CDatagram"]),
        module(
            "Forwarding/Media",
            ["Base", "Wire", "TURN", "DTLS", "TLS", "SRTP", "Metrics", "MediaTypes", "Forwarding", "EventLoop"]
        ),
        module("Room/ChannelTypes", ["Base", "Wire", "MediaTypes"]),
        module(
            "Room/Access",
            [
                "Base", "Wire", "Signatures", "Metrics", "MediaTypes", "JSON", "ChannelTypes",
                .product(name: "Logging", package: "swift-log"),
            ],
            isSmall: true
        ),
        module("Room/ChannelData", ["Base", "MediaTypes", "Deflate", "ChannelTypes"]),
        module("Room/Admission", ["Base", "Wire", "MediaTypes", "ChannelTypes"]),
        module("Room/Speakers", ["ChannelTypes"]),
        module(
            "Room/Room",
            ["Admission", "Base", "Wire", "Metrics", "MediaTypes", "ChannelTypes", "ChannelData", "Speakers"]
        ),
        module("Signaling/Listeners", [nio("NIOCore")]),
        module(
            "Metrics/Telemetry",
            [
                "Metrics", "JSON",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOHTTP1"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        module(
            "Metrics/NodeLog",
            ["Base", "JSON", "ChannelTypes", .product(name: "Logging", package: "swift-log")],
            isSmall: true
        ),
        module("Metrics/History", ["Base", "Wire", "MediaTypes", "ChannelTypes", "Room", "JSON", "CSQLite"]),
        module(
            "Room/Cluster",
            [
                "Base", "Wire", "Signatures", "Metrics", "ChannelTypes", "ChannelData", "MediaTypes", "Room", "JSON",
                "Listeners", "CHiredis",
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Pages",
            // The folder of the browser module is also a package for installation.
            exclude: ["nagare/package.json"],
            resources: [
                .embedInCode("index.html"), .embedInCode("page.css"), .embedInCode("page.js"),
                .embedInCode("bar.js"), .embedInCode("call-view.js"),
                .embedInCode("channel-view.js"), .embedInCode("chat.js"), .embedInCode("controls.js"),
                .embedInCode("form.js"), .embedInCode("invite.js"), .embedInCode("notices.js"),
                .embedInCode("people.js"), .embedInCode("preview.js"), .embedInCode("shortcuts.js"),
                .embedInCode("token.js"), .embedInCode("warnings.js"),
                .embedInCode("numbers.js"), .embedInCode("pattern.js"), .embedInCode("speaker.js"),
                .embedInCode("stage.js"), .embedInCode("strings-en.js"),
                .embedInCode("strings-ja.js"), .embedInCode("tiles.js"), .embedInCode("ui.js"),
                .embedInCode("words.js"), .embedInCode("clock.js"), .embedInCode("nagare/nagare.js"),
                .embedInCode("nagare/nagare.d.ts"), .embedInCode("nagare/nagare-channel.js"),
                .embedInCode("nagare/nagare-devices.js"), .embedInCode("nagare/nagare-errors.js"),
                .embedInCode("nagare/nagare-link.js"), .embedInCode("nagare/nagare-messages.js"),
                .embedInCode("nagare/nagare-options.js"), .embedInCode("nagare/nagare-reconnect.js"),
                .embedInCode("nagare/nagare-screen.js"), .embedInCode("nagare/nagare-tracks.js"),
                .embedInCode("nagare/nagare-users.js"), .embedInCode("nagare/nagare-call.js"),
                .embedInCode("nagare/nagare-call.d.ts"),
                .embedInCode("Operators/operators.html"), .embedInCode("Operators/operators.css"),
                .embedInCode("Operators/operators.js"), .embedInCode("Operators/timeline.js"),
                .embedInCode("Operators/verdict.js"),
            ]
        ),
        // What every listener and protocol below stands on: requests, WebSockets, limits, errors, counts.
        module(
            "Signaling/Web",
            [
                "Base", "Wire", "Metrics", "MediaTypes", "Negotiation", "JSON", "History", "Access", "ChannelTypes",
                "Room",
                "Telemetry", "Listeners",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdCore"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                nio("NIOWebSocket"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Webhooks",
            [
                "Base", "Wire", "Metrics", "MediaTypes", "JSON", "Access", "ChannelTypes", "Room", "Telemetry", "Web",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOHTTP1"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Sora",
            [
                "Base", "Wire", "MediaTypes", "Negotiation", "JSON", "Access", "ChannelTypes", "Room", "Telemetry",
                "Web",
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Ayame",
            [
                "Base", "Wire", "MediaTypes", "Negotiation", "JSON", "Access", "ChannelTypes", "Room", "Web",
                "Webhooks",
                "Sora",
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Operators",
            [
                "Admission",
                "Base", "Wire", "Metrics", "MediaTypes", "JSON", "History", "Access", "ChannelTypes", "Room", "Pages",
                "Web",
                "Webhooks",
                "Ayame",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdCore"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOHTTP1"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            isSmall: true
        ),
        module(
            "Signaling/Signaling",
            [
                "Base", "Wire", "MediaTypes", "Negotiation", "JSON", "Access", "ChannelTypes", "Room", "Telemetry",
                "Pages",
                "Web", "Webhooks", "Sora", "Ayame",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdCore"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOHTTP1"),
                nio("NIOWebSocket"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            isSmall: true
        ),
        module("Tools/Impairment", ["Base"]),
        module(
            "Tools/ImpairmentProxy",
            [
                "Base", "Wire", "EventLoop", "Impairment",
                nio("NIOCore"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                nio("NIOWebSocket"),
            ]
        ),
        module("NagareClient"),
        module("Tools/Client", ["Base", "Wire", "MediaTypes", "Negotiation", "Forwarding"]),
        module(
            "Tools/ClientEngine",
            [
                "Base", "Wire", "DTLS", "MediaTypes", "Negotiation", "Forwarding", "EventLoop", "NagareClient",
                "Client",
                nio("NIOCore"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                nio("NIOWebSocket"),
            ]
        ),
        module(
            "Tools/Load",
            [
                "Base", "Wire", "DTLS", "SRTP", "MediaTypes", "Negotiation", "Forwarding", "EventLoop", "Impairment",
                "NagareClient", "Client", "ClientEngine",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                nio("NIOCore"),
                nio("NIOHTTP1"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        module(
            "Tools/ToolCommands",
            [
                "Base", "Wire", "EventLoop", "Impairment", "ImpairmentProxy", "Load",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            isSmall: true
        ),
        .executableTarget(
            name: "nagare",
            dependencies: [
                "Admission",
                "Base", "Wire", "TURN", "DTLS", "TLS", "SRTP", "Metrics", "MediaTypes", "Forwarding", "EventLoop",
                "Media",
                "JSON", "History", "Access", "ChannelTypes", "Room", "Cluster", "Web", "Webhooks", "Sora", "Ayame",
                "Operators", "Signaling", "Telemetry", "NodeLog", "ToolCommands",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings + testability + small,
            linkerSettings: runtime
        ),

        // What the targets of tests share.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .target(
            name: "MediaSamples",
            dependencies: ["Base", "MediaFormat"],
            path: "Tests/MediaSamples",
            swiftSettings: settings
        ),
        tests("BaseTests", ["Base", "TestSupport"]),
        tests("WireTests", ["TestSupport", "Base", "Wire"]),
        tests("ICETests", ["ICE", "TestSupport", "Base", "Wire"]),
        tests("TURNTests", ["TURN", "TestSupport", "Base", "Wire"]),
        tests("DTLSTests", ["DTLS", "SRTP", "TestSupport", "Base", "Wire"]),
        tests("TLSTests", ["TLS", "TestSupport"]),
        tests("SRTPTests", ["SRTP", "TestSupport", "Base", "Wire", "COpenSSL"], isOptimized: true),
        tests("SCTPTests", ["SCTP", "TestSupport", "Base"]),
        tests("RTMPTests", ["RTMP", "Base"], resources: [.copy("Recorded")]),
        tests("MediaFormatTests", ["MediaFormat", "MediaSamples", "Base", "Wire"]),
        tests("RecordingTests", ["Recording", "MediaFormat", "MediaSamples", "JSON", "Base", "Wire"]),
        tests("FramesTests", ["Frames", "MediaFormat", "MediaSamples", "Base", "Wire"]),
        tests("SignaturesTests", ["Signatures", "TestSupport"]),
        tests("DeflateTests", ["Deflate", "TestSupport"]),
        tests("CongestionControlTests", ["CongestionControl", "TestSupport", "Base", "Wire"]),
        tests("MetricsTests", ["Metrics"]),
        tests("NegotiationTests", ["Negotiation", "MediaTypes", "TestSupport", "Base", "Wire"]),
        tests(
            "ForwardingTests",
            ["CongestionControl", "Forwarding", "MediaTypes", "Negotiation", "SCTP", "TestSupport", "Base", "Wire"],
            resources: [.copy("Resources")],
            isOptimized: true
        ),
        tests("EventLoopTests", ["EventLoop", "CDatagram", "TestSupport", "Base", "Wire"]),
        tests(
            "MediaTests",
            [
                "Media", "EventLoop", "Forwarding", "MediaTypes", "DTLS", "TLS", "Metrics", "TURN", "TestSupport",
                "Base", "Wire",
            ]
        ),
        // What random tests share: which seeds they run, and what they say of a seed that fails.
        .target(
            name: "SeedSupport",
            dependencies: ["TestSupport"],
            path: "Tests/SeedSupport",
            swiftSettings: settings
        ),
        // The fake media plane of RoomTests and SignalingTests, and the node without actors of RoomTests and Simulation.
        .target(
            name: "RoomTestSupport",
            dependencies: ["Admission", "ChannelTypes", "ChannelData", "Room", "MediaTypes", "Base", "Wire"],
            path: "Tests/RoomTestSupport",
            swiftSettings: settings
        ),
        tests(
            "RoomTests",
            [
                "Admission",
                "Deflate", "ChannelTypes", "ChannelData", "Speakers", "Room", "RoomTestSupport", "MediaTypes",
                "SeedSupport",
                "TestSupport", "Base", "Wire",
            ]
        ),
        tests("JSONTests", ["JSON", "TestSupport"]),
        tests("HistoryTests", ["History", "JSON", "ChannelTypes", "MediaTypes", "Room", "Base", "Wire"]),
        // A model of the cluster's store.
        .target(
            name: "ClusterTestSupport",
            dependencies: ["Cluster", "ChannelTypes", "MediaTypes", "TestSupport", "Base"],
            path: "Tests/ClusterTestSupport",
            swiftSettings: settings
        ),
        tests(
            "ClusterTests",
            [
                "Cluster", "ClusterTestSupport", "ChannelTypes", "MediaTypes", "Room", "RoomTestSupport", "TestSupport",
                "Base", "Wire",
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOEmbedded"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        // What both AccessTests and SignalingTests ask about.
        .target(
            name: "AccessTestSupport",
            dependencies: ["Access", "JSON", "ChannelTypes"],
            path: "Tests/AccessTestSupport",
            swiftSettings: settings
        ),
        tests(
            "AccessTests",
            [
                "Access", "AccessTestSupport", "JSON", "ChannelTypes", "Signatures", "TestSupport",
                "Base", "Wire",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        tests(
            "SignalingTests",
            [
                "Admission",
                "Web", "Webhooks", "Sora", "Ayame", "Operators", "Signaling", "Access", "AccessTestSupport", "History",
                "JSON", "Pages", "ChannelTypes", "Room", "RoomTestSupport", "MediaTypes", "Metrics", "Negotiation",
                "TestSupport", "Telemetry", "Base", "Wire",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdTesting"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
                nio("NIOEmbedded"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                nio("NIOWebSocket"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            resources: [.copy("Sora/exchanges.json")]
        ),
        tests(
            "NagareTests",
            [
                "nagare", "Access", "Client", "ClientEngine", "Cluster", "EventLoop", "Forwarding", "History",
                "Impairment", "ImpairmentProxy", "JSON", "Media", "MediaTypes", "Metrics", "NagareClient",
                "ChannelTypes", "Room", "SRTP", "Web", "Webhooks", "Sora", "Ayame", "NodeLog", "Operators",
                "RoomTestSupport", "Signaling", "TestSupport", "Telemetry", "ToolCommands", "Base", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        tests(
            "TelemetryTests",
            [
                "Telemetry", "JSON", "TestSupport",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdTesting"),
                .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"),
            ]
        ),
        tests("ImpairmentTests", ["Impairment", "Base"]),
        tests("ImpairmentProxyTests", ["ImpairmentProxy", "EventLoop", "Impairment", "TestSupport", "Base", "Wire"]),
        tests("NagareClientTests", ["NagareClient", "TestSupport"]),
        tests("ClientTests", ["Client", "Base", "Wire"]),
        tests(
            "LoadTests",
            [
                "Load", "Client", "ClientEngine", "DTLS", "EventLoop", "Impairment", "Media", "MediaTypes",
                "Negotiation",
                "TestSupport", "Base", "Wire",
                nio("NIOCore"),
                nio("NIOHTTP1"),
                nio("NIOPosix"),
                nio("NIOWebSocket"),
            ]
        ),
        tests(
            "Simulation",
            [
                "Admission",
                "Client", "Cluster", "ClusterTestSupport", "CongestionControl", "DTLS", "Forwarding", "Media",
                "MediaTypes", "Negotiation", "ChannelTypes", "Room", "RoomTestSupport", "SeedSupport", "SRTP", "TURN",
                "TestSupport", "Base", "Wire",
            ],
            isOptimized: true
        ),
        // The bounds of the congestion controller, in virtual time.
        tests("Scorecard", ["CongestionControl", "TestSupport", "Base", "Wire"], isOptimized: true),
    ]
)

// Tests/Fuzz and Benchmarks set NAGARE_CORES_ONLY, because they depend on the cores only. With the whole package as a
// dependency, SwiftPM applies the module aliases above in random order, and one build in thirty fails.
if Context.environment["NAGARE_CORES_ONLY"] != nil {
    let cores: Set = [
        "Base", "Wire", "ICE", "TURN", "OpenSSLBuffers", "DTLS", "TLS", "SRTP", "SCTP", "Signatures", "Deflate",
        "CongestionControl", "Metrics",
        "MediaTypes", "Negotiation", "Forwarding", "ChannelTypes", "ChannelData", "Admission", "Speakers", "Room",
        "JSON",
        "RTMP", "MediaFormat", "Frames",
        "Cluster", "Access",
        "Web", "Sora", "Ayame", "TestSupport",
        "COpenSSL", "CZlib", "CSRTP", "CHiredis", "CIPSecMB", "CPrefetch",
    ]
    package.dependencies = []
    package.targets.removeAll { !cores.contains($0.name) }
    package.products.removeAll { $0.name != "NagareCores" }
    // For Tests/Fuzz alone, so that the benchmarks compile none of it. It reaches what these modules keep internal.
    let parsers = [
        "RTMP", "MediaFormat", "Frames", "Signatures", "Deflate", "ChannelTypes", "ChannelData", "Admission",
        "Speakers", "Room",
        "JSON", "Cluster",
        "Access", "Web",
        "Sora",
        "Ayame",
    ]
    package.products.append(.library(name: "NagareParsers", targets: parsers))
    // Of the modules that need packages, the files that read and decide what others send, without sockets, logs and clocks.
    for target in package.targets where parsers.contains(target.name) {
        target.swiftSettings = settings + [.unsafeFlags(["-enable-testing"])]
        switch target.name {
        case "Cluster":
            target.dependencies = [
                "Base", "Wire", "Signatures", "ChannelTypes", "ChannelData", "MediaTypes", "Room", "JSON", "CHiredis",
            ]
            target.sources = [
                "Links/LengthPrefix.swift", "Links/LinkBackoff.swift", "Links/LinkFrame.swift", "Links/LinkHello.swift",
                "Links/LinkTable.swift", "RESP", "Replicas/ChannelReplicas.swift", "Channels/ChannelMessage.swift",
                "Store/Identifiers.swift", "Store/NodeRecord.swift", "Store/RecordSigner.swift",
            ]
        case "Access":
            target.dependencies = ["Base", "Wire", "Signatures", "MediaTypes", "JSON", "ChannelTypes"]
            target.exclude = [
                "IgnoredGrants.swift", "RemoteKeySet.swift", "RemoteKeySet+Page.swift", "SignatureAuthorizer.swift",
            ]
        case "Web":
            target.dependencies = ["Base", "Wire", "MediaTypes", "Metrics", "ChannelTypes", "Room"]
            target.sources = ["Statistics/SignalingStatistics.swift", "WebSocket/WebSocketClose.swift"]
        case "Sora":
            target.dependencies = [
                "Base", "Wire", "MediaTypes", "Negotiation", "JSON", "Access", "ChannelTypes", "Room", "Web",
            ]
            target.sources = [
                "ChannelRequest.swift", "JSONObjectWriter.swift", "MetadataChange.swift", "SoraClientMessage.swift",
                "SoraClose.swift", "SoraCodecs.swift", "SoraConnect.swift", "SoraRPC.swift",
            ]
        case "Ayame":
            target.dependencies = ["JSON", "ChannelTypes", "Room", "Web", "Sora"]
            target.sources = ["AyameClientMessage.swift", "AyameConfiguration.swift"]
        default: break
        }
    }
}
