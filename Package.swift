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

/// A module of the product. The order below is the design: a module depends only on those above it.
/// - Parameter isSmall: whether the compiler prefers small code to fast code.
func module(
    _ name: String,
    _ dependencies: [Target.Dependency] = [],
    exclude: [String] = [],
    resources: [Resource] = [],
    isSmall: Bool = false
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
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

/// Hummingbird's own metrics go by another name here, because `Metrics` is a module of ours.
func hummingbird(_ product: String) -> Target.Dependency {
    .product(name: product, package: "hummingbird", moduleAliases: ["Metrics": "SwiftMetrics"])
}

let package = Package(
    name: "nagare",
    platforms: [.macOS(.v26)],
    products: [
        .executable(name: "nagare", targets: ["nagare"]),
        // For Tests/Fuzz and Benchmarks, which are packages of their own.
        .library(
            name: "NagareCores",
            targets: [
                "Wire", "ICE", "TURN", "DTLS", "TLS", "SRTP", "SCTP", "CongestionControl", "Metrics", "MediaTypes",
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
        .systemLibrary(name: "CUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
        // Without pkgConfig: hiredis.pc has a flag that SwiftPM warns of.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CDatagram"),
        .target(name: "CIPSecMB"),

        module("Wire"),
        module("ICE", ["Wire"]),
        module("TURN", ["Wire"]),
        module("DTLS", ["Wire", "COpenSSL"]),
        module("TLS", ["COpenSSL"]),
        module("SRTP", ["Wire", "COpenSSL", "CSRTP", "CIPSecMB"]),
        module("SCTP", ["Wire"]),
        module("Signatures", ["COpenSSL"]),
        module("Deflate", ["CZlib"]),
        module("CongestionControl", ["Wire"]),
        module("Metrics"),
        module("MediaTypes", ["Wire"]),
        module("Negotiation", ["Wire", "MediaTypes"]),
        module("Forwarding", ["Wire", "ICE", "TURN", "DTLS", "SRTP", "SCTP", "CongestionControl", "MediaTypes"]),
        module("EventLoop", ["Wire", "CUV", "CDatagram"]),
        module("Media", ["Wire", "TURN", "DTLS", "TLS", "SRTP", "Metrics", "MediaTypes", "Forwarding", "EventLoop"]),
        module("Room", ["Wire", "MediaTypes", "Deflate"]),
        module("JSON"),
        module("Listeners", [.product(name: "NIOCore", package: "swift-nio")]),
        module("History", ["Wire", "MediaTypes", "Room", "JSON", "CSQLite"]),
        module(
            "Cluster",
            [
                "Wire", "Signatures", "MediaTypes", "Room", "JSON", "Listeners", "CHiredis",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            isSmall: true
        ),
        module(
            "Access",
            [
                "Wire", "Signatures", "MediaTypes", "JSON", "Room",
                .product(name: "Logging", package: "swift-log"),
            ],
            isSmall: true
        ),
        module(
            "Signaling",
            [
                "Wire", "Metrics", "MediaTypes", "Negotiation", "JSON", "History", "Access", "Room", "Telemetry",
                "Listeners",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdCore"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            // The folder of the browser module is also a package for installation.
            exclude: ["Page/nagare/package.json"],
            resources: [
                .embedInCode("Page/index.html"), .embedInCode("Page/page.css"), .embedInCode("Page/page.js"),
                .embedInCode("Page/bar.js"), .embedInCode("Page/call-view.js"),
                .embedInCode("Page/channel-view.js"), .embedInCode("Page/chat.js"), .embedInCode("Page/form.js"),
                .embedInCode("Page/numbers.js"), .embedInCode("Page/pattern.js"), .embedInCode("Page/speaker.js"),
                .embedInCode("Page/stage.js"), .embedInCode("Page/tiles.js"), .embedInCode("Page/ui.js"),
                .embedInCode("Page/words.js"), .embedInCode("Page/clock.js"), .embedInCode("Page/nagare/nagare.js"),
                .embedInCode("Page/nagare/nagare.d.ts"), .embedInCode("Page/nagare/nagare-channel.js"),
                .embedInCode("Page/nagare/nagare-devices.js"), .embedInCode("Page/nagare/nagare-errors.js"),
                .embedInCode("Page/nagare/nagare-link.js"), .embedInCode("Page/nagare/nagare-messages.js"),
                .embedInCode("Page/nagare/nagare-options.js"), .embedInCode("Page/nagare/nagare-reconnect.js"),
                .embedInCode("Page/nagare/nagare-screen.js"), .embedInCode("Page/nagare/nagare-tracks.js"),
                .embedInCode("Page/nagare/nagare-users.js"), .embedInCode("Page/nagare/nagare-call.js"),
                .embedInCode("Page/nagare/nagare-call.d.ts"),
                .embedInCode("Operators/Page/operators.html"), .embedInCode("Operators/Page/operators.css"),
                .embedInCode("Operators/Page/operators.js"), .embedInCode("Operators/Page/timeline.js"),
                .embedInCode("Operators/Page/verdict.js"),
            ],
            isSmall: true
        ),
        module(
            "Telemetry",
            [
                "JSON",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        module("Impairment", ["Wire"]),
        module(
            "ImpairmentProxy",
            [
                "Wire", "EventLoop", "Impairment",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]
        ),
        module("Client", ["Wire", "MediaTypes", "Negotiation", "Forwarding"]),
        module(
            "Load",
            [
                "Wire", "DTLS", "SRTP", "MediaTypes", "Negotiation", "Forwarding", "EventLoop", "Impairment",
                "Client",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]
        ),
        .executableTarget(
            name: "nagare",
            dependencies: [
                "Wire", "TURN", "DTLS", "TLS", "SRTP", "Metrics", "MediaTypes", "Forwarding", "EventLoop", "Media",
                "JSON", "History", "Access", "Room", "Cluster", "Signaling", "Telemetry", "Impairment",
                "ImpairmentProxy", "Load",
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
        tests("WireTests", ["TestSupport", "Wire"]),
        tests("ICETests", ["ICE", "TestSupport", "Wire"]),
        tests("TURNTests", ["TURN", "TestSupport", "Wire"]),
        tests("DTLSTests", ["DTLS", "SRTP", "TestSupport", "Wire"]),
        tests("TLSTests", ["TLS", "TestSupport"]),
        tests("SRTPTests", ["SRTP", "TestSupport", "Wire", "COpenSSL"], isOptimized: true),
        tests("SCTPTests", ["SCTP", "TestSupport", "Wire"]),
        tests("SignaturesTests", ["Signatures", "TestSupport"]),
        tests("DeflateTests", ["Deflate", "TestSupport"]),
        tests("CongestionControlTests", ["CongestionControl", "TestSupport", "Wire"]),
        tests("MetricsTests", ["Metrics"]),
        tests("NegotiationTests", ["Negotiation", "MediaTypes", "TestSupport", "Wire"]),
        tests(
            "ForwardingTests",
            ["CongestionControl", "Forwarding", "MediaTypes", "Negotiation", "SCTP", "TestSupport", "Wire"],
            resources: [.copy("Resources")],
            isOptimized: true
        ),
        tests("EventLoopTests", ["EventLoop", "TestSupport", "Wire"]),
        tests(
            "MediaTests",
            [
                "Media", "EventLoop", "Forwarding", "MediaTypes", "DTLS", "TLS", "Metrics", "TURN", "TestSupport",
                "Wire",
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
            dependencies: ["Room", "MediaTypes", "Wire"],
            path: "Tests/RoomTestSupport",
            swiftSettings: settings
        ),
        tests(
            "RoomTests",
            ["Deflate", "Room", "RoomTestSupport", "MediaTypes", "SeedSupport", "TestSupport", "Wire"]
        ),
        tests("JSONTests", ["JSON", "TestSupport"]),
        tests("HistoryTests", ["History", "JSON", "MediaTypes", "Room", "Wire"]),
        // A model of the cluster's store.
        .target(
            name: "ClusterTestSupport",
            dependencies: ["Cluster", "MediaTypes", "TestSupport", "Wire"],
            path: "Tests/ClusterTestSupport",
            swiftSettings: settings
        ),
        tests(
            "ClusterTests",
            [
                "Cluster", "ClusterTestSupport", "MediaTypes", "Room", "RoomTestSupport", "TestSupport", "Wire",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        // What both AccessTests and SignalingTests ask about.
        .target(
            name: "AccessTestSupport",
            dependencies: ["Access", "JSON", "Room"],
            path: "Tests/AccessTestSupport",
            swiftSettings: settings
        ),
        tests(
            "AccessTests",
            [
                "Access", "AccessTestSupport", "JSON", "Room", "Signatures", "TestSupport",
                "Wire",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        tests(
            "SignalingTests",
            [
                "Signaling", "Access", "AccessTestSupport", "History", "JSON", "Room", "RoomTestSupport",
                "MediaTypes", "Metrics", "Negotiation", "TestSupport", "Telemetry", "Wire",
                hummingbird("Hummingbird"),
                hummingbird("HummingbirdTesting"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            resources: [.copy("Sora/exchanges.json")]
        ),
        tests(
            "NagareTests",
            [
                "nagare", "Access", "Cluster", "EventLoop", "Forwarding", "History", "Impairment", "ImpairmentProxy",
                "JSON", "Media", "MediaTypes", "Metrics", "Room", "SRTP", "Signaling", "TestSupport", "Telemetry",
                "Wire",
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
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),
        tests("ImpairmentTests", ["Impairment", "Wire"]),
        tests("ImpairmentProxyTests", ["ImpairmentProxy", "EventLoop", "Impairment", "TestSupport", "Wire"]),
        tests("ClientTests", ["Client", "Wire"]),
        tests(
            "LoadTests",
            [
                "Load", "Client", "DTLS", "EventLoop", "Impairment", "Media", "MediaTypes", "Negotiation",
                "TestSupport", "Wire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]
        ),
        tests(
            "Simulation",
            [
                "Client", "Cluster", "ClusterTestSupport", "CongestionControl", "DTLS", "Forwarding", "Media",
                "MediaTypes",
                "Negotiation", "Room", "RoomTestSupport", "SeedSupport", "TURN", "TestSupport", "Wire",
            ],
            isOptimized: true
        ),
        // The bounds of the congestion controller, in virtual time.
        tests("Scorecard", ["CongestionControl", "TestSupport", "Wire"], isOptimized: true),
    ]
)

// Tests/Fuzz and Benchmarks set NAGARE_CORES_ONLY, because they depend on the cores only. With the whole package as a
// dependency, SwiftPM applies the module aliases above in random order, and one build in thirty fails.
if Context.environment["NAGARE_CORES_ONLY"] != nil {
    let cores: Set = [
        "Wire", "ICE", "TURN", "DTLS", "TLS", "SRTP", "SCTP", "Signatures", "Deflate", "CongestionControl", "Metrics",
        "MediaTypes", "Negotiation", "Forwarding", "Room", "JSON", "Cluster", "Access", "Signaling", "TestSupport",
        "COpenSSL", "CZlib", "CSRTP", "CHiredis", "CIPSecMB",
    ]
    package.dependencies = []
    package.targets.removeAll { !cores.contains($0.name) }
    package.products.removeAll { $0.name != "NagareCores" }
    // For Tests/Fuzz alone, so that the benchmarks compile none of it. It reaches what these modules keep internal.
    let parsers = ["Signatures", "Deflate", "Room", "JSON", "Cluster", "Access", "Signaling"]
    package.products.append(.library(name: "NagareParsers", targets: parsers))
    // Of the modules that need packages, the files that read and decide what others send, without sockets, logs and clocks.
    for target in package.targets where parsers.contains(target.name) {
        target.swiftSettings = settings + [.unsafeFlags(["-enable-testing"])]
        switch target.name {
        case "Cluster":
            target.dependencies = ["Wire", "Signatures", "MediaTypes", "Room", "JSON", "CHiredis"]
            target.sources = [
                "Links/LengthPrefix.swift", "Links/LinkBackoff.swift", "Links/LinkFrame.swift", "Links/LinkHello.swift",
                "Links/LinkTable.swift", "RESP", "Replicas/ChannelReplicas.swift", "Rooms/ChannelMessage.swift",
                "Store/Identifiers.swift", "Store/NodeRecord.swift", "Store/RecordSigner.swift",
            ]
        case "Access":
            target.dependencies = ["Wire", "Signatures", "MediaTypes", "JSON", "Room"]
            target.exclude = ["RemoteKeySet.swift", "SignatureAuthorizer.swift"]
        case "Signaling":
            target.dependencies = ["Wire", "MediaTypes", "Metrics", "Negotiation", "JSON", "Access", "Room"]
            target.resources = []
            target.sources = [
                "Admin/SignalingStatistics.swift", "Ayame/AyameClientMessage.swift", "Ayame/AyameConfiguration.swift",
                "HTTP/WebSocket/WebSocketClose.swift",
                "Sora/ChannelRequest.swift", "Sora/JSONObjectWriter.swift", "Sora/MetadataChange.swift",
                "Sora/SoraClientMessage.swift",
                "Sora/SoraClose.swift", "Sora/SoraCodecs.swift", "Sora/SoraConnect.swift", "Sora/SoraRPC.swift",
            ]
        default: break
        }
    }
}
