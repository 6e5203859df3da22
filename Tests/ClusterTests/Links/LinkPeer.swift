import Base
import ChannelTypes
import Logging
import MediaTypes
import NIOCore
import NIOPosix
import NIOSSL
import Room
import Synchronization

@testable import Cluster

/// A node with real links on this machine, whose clock stands still until the test moves it.
final class LinkPeer: LinkDelegate {
    struct State {
        var now = Instant(nanoseconds: 1_000_000_000)
        var up: [NodeID: LinkHello] = [:]
        var upCount = 0
        var received: [[UInt8]] = []
        var relayed: [[UInt8]] = []
        /// With more of them too much waits.
        var relayedMax = Int.max
        var lines: [String] = []
        var port = 0
    }

    static let secret = "0123456789abcdef0123456789abcdef"
    static let security = LinkSecurity(secrets: [secret])!
    let hello: LinkHello
    let links: ControlLinks
    let state: Shared
    var port: Int { state.content.withLock { $0.port } }

    /// What the node's closures share with it.
    final class Shared: Sendable {
        let content = Mutex(State())
        var now: Instant { content.withLock { $0.now } }
    }

    init(
        _ name: String,
        _ number: UInt32,
        versions: ClosedRange<Int> = LinkHello.versions,
        security: LinkSecurity = LinkPeer.security
    ) async throws {
        var hello = Self.hello(name, number)
        hello.versions = versions
        self.hello = hello
        let state = Shared()
        self.state = state
        let logger = Logger(label: "test") { _ in LineLog { line in state.content.withLock { $0.lines.append(line) } } }
        links = await ControlLinks(
            own: hello,
            security: security,
            clock: RoomClock { RoomTime(instant: state.now, unixNanoseconds: 0) },
            helloTimeout: .seconds(600),
            logger: logger
        )
        let port = try await links.start(host: "127.0.0.1", port: 0, delegate: self)
        state.content.withLock { $0.port = port }
    }

    static func hello(_ name: String, _ number: UInt32) -> LinkHello {
        let incarnation = NodeIncarnation(rawValue: number)!
        return LinkHello(
            cluster: ClusterName(rawValue: "t")!,
            instance: NodeInstance(node: NodeID(rawValue: name)!, incarnation: incarnation),
            media: incarnation
        )
    }

    func knows(_ others: [LinkPeer]) {
        links.setAddresses(others.map { (instance: $0.hello.instance, address: "127.0.0.1:\($0.port)") })
        for other in others { links.want(other.hello.instance.node) }
    }

    /// The state of the link to another node, as operators see it.
    func linkState(to other: LinkPeer) -> LinkState? { links.status[other.hello.instance.node]?.state }

    func pass(_ interval: Interval) { state.content.withLock { $0.now += interval } }
    func isLinked(to other: LinkPeer) -> Bool {
        state.content.withLock { $0.up[other.hello.instance.node] == other.hello }
    }
    var upCount: Int { state.content.withLock { $0.upCount } }
    var received: [[UInt8]] { state.content.withLock { $0.received } }
    /// About rooms of the relay.
    var relayed: [[UInt8]] { state.content.withLock { $0.relayed } }
    func lines(with text: String) -> [String] { state.content.withLock { $0.lines.filter { $0.contains(text) } } }

    // MARK: LinkDelegate

    func linkUp(_ node: NodeID, hello: LinkHello) {
        state.content.withLock { state in
            state.up[node] = hello
            state.upCount += 1
        }
    }
    func linkDown(_ node: NodeID) { state.content.withLock { $0.up[node] = nil } }
    func linkDead(_ instance: NodeInstance, mayReturn: Bool) {}
    func received(_ message: [UInt8], from node: NodeID) { state.content.withLock { $0.received.append(message) } }
    func receivedCallMessage(_ message: [UInt8], from node: NodeID) -> Bool {
        state.content.withLock { state in
            state.relayed.append(message)
            return state.relayed.count <= state.relayedMax
        }
    }
    func answer(_ request: NodeRequest, from node: NodeID) async -> [UInt8]? {
        request.kind == .unknown ? nil : request.body
    }
}

/// Writes each line with its level and metadata.
struct LineLog: LogHandler {
    let write: @Sendable (String) -> Void
    var logLevel = Logger.Level.debug
    var metadata: Logger.Metadata = [:]

    init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { write("\(event.level) \(event.message) \(event.metadata ?? [:])") }
}

/// A connection to a link listener that sends whatever it is told to.
final class RawLink: Sendable {
    private struct State {
        var frames: [LinkFrame] = []
        var sent: [UInt8] = []
        var isClosed = false
    }

    private let state = SharedState()
    private let channel: any Channel

    private final class SharedState: Sendable { let content = Mutex(State()) }

    /// - Parameters:
    ///   - security: `nil` without TLS.
    ///   - address: the own one, of the loopback range.
    init(_ port: Int, security: LinkSecurity?, from address: String = "127.0.0.1") async throws {
        let state = state
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: SocketAddress(ipAddress: address, port: 0))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(Tap { bytes in state.content.withLock { $0.sent += bytes } })
                    if let security {
                        try pipeline.addHandler(NIOSSLClientHandler(context: security.client, serverHostname: nil))
                    }
                    let reader = Reader(
                        received: { frame in state.content.withLock { $0.frames.append(frame) } },
                        closed: { state.content.withLock { $0.isClosed = true } }
                    )
                    try pipeline.addHandler(reader)
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    var frames: [LinkFrame] { state.content.withLock { $0.frames } }
    var isClosed: Bool { state.content.withLock { $0.isClosed } }
    /// What went over the wire, with the bytes of TLS.
    var sent: [UInt8] { state.content.withLock { $0.sent } }

    func send(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }
    func send(_ frame: LinkFrame) { send(frame.encoded()) }
    func close() { channel.close(promise: nil) }

    private final class Tap: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let note: (ByteBufferView) -> Void

        init(_ note: @escaping (ByteBufferView) -> Void) { self.note = note }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            note(unwrapOutboundIn(data).readableBytesView)
            context.write(data, promise: promise)
        }
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let received: (LinkFrame) -> Void
        private let closed: () -> Void
        private var reader = LinkFrameReader(bytesMax: LinkFrame.bytesMax)

        init(received: @escaping (LinkFrame) -> Void, closed: @escaping () -> Void) {
            (self.received, self.closed) = (received, closed)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            reader.feed(unwrapInboundIn(data).readableBytesView)
            while let frame = try? reader.next() { received(frame) }
        }
        func channelInactive(context: ChannelHandlerContext) { closed() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
