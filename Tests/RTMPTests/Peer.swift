import Base

@testable import RTMP

/// A connection with a client of the tests in front of it, past the handshake.
struct Peer {
    static let start = Instant(nanoseconds: 1_000_000_000)

    var connection: RTMPConnection
    var now = Peer.start
    /// Everything that the connection did, but what it sent.
    private(set) var actions: [RTMPConnection.Action] = []
    private(set) var sentBytes = 0
    private(set) var receivedBytes = 0
    private var encoder = ChunkEncoder()
    private var reader = RTMPChunkReader()
    private var answers: [RTMPMessage] = []
    private var handshakeBytes = 3_073

    init(settings: RTMPSettings = RTMPSettings(), isPastHandshake: Bool = true) {
        var generator = SplitMix64(seed: 1)
        connection = RTMPConnection(settings: settings, using: &generator, at: now)
        reader.limits = .publisher
        if isPastHandshake { receive([3] + pattern(3_072)) }
    }

    /// Past `connect`, or past the request to publish, or accepted.
    static func connected(_ members: [AMF0Member] = [], app: String = "live") -> Peer {
        var peer = Peer()
        peer.connect(members, app: app)
        return peer
    }

    static func publishing(_ members: [AMF0Member] = []) -> Peer {
        var peer = connected(members)
        peer.publish("demo")
        peer.accept()
        _ = peer.takeAnswers()
        peer.clear()
        return peer
    }

    mutating func receive(_ bytes: [UInt8]) {
        receivedBytes += bytes.count
        handle(connection.receive(unsafe bytes.span.bytes, at: now))
    }

    mutating func receive(_ message: RTMPMessage, on id: Int = 3) { receive(encoder.bytes(message, on: id)) }

    mutating func command(
        _ name: String,
        _ transaction: Double = 0,
        _ values: [AMF0Value],
        stream: UInt32 = 0,
        isAMF3: Bool = false
    ) {
        receive(Self.message(name, transaction, values, stream: stream, isAMF3: isAMF3))
    }

    static func message(
        _ name: String,
        _ transaction: Double,
        _ values: [AMF0Value],
        stream: UInt32 = 0,
        isAMF3: Bool = false
    ) -> RTMPMessage {
        var writer = AMF0Writer()
        for value in [.string(name), .number(transaction)] + values { writer.write(value) }
        return RTMPMessage(isAMF3 ? .commandAMF3 : .commandAMF0, stream: stream, (isAMF3 ? [0] : []) + writer.bytes)
    }

    mutating func connect(_ members: [AMF0Member] = [], app: String = "live") {
        command("connect", 1, [.object([AMF0Member("app", .string(app))] + members)])
    }

    mutating func publish(_ name: String) {
        command("publish", 5, [.null, .string(name), .string("live")], stream: 1)
    }

    mutating func accept() { handle(connection.accept(at: now)) }
    mutating func refuse(_ refusal: RTMPRefusal) { handle(connection.refuse(refusal, at: now)) }
    mutating func handleTimeout() { handle(connection.handleTimeout(at: now)) }
    mutating func requestReconnect(to url: String?) {
        handle(connection.requestReconnect(to: url, description: "The node is draining."))
    }

    mutating func handle(_ actions: [RTMPConnection.Action]) {
        for action in actions {
            guard case .send(let bytes) = action else {
                self.actions.append(action)
                continue
            }
            sentBytes += bytes.count
            let skipped = min(handshakeBytes, bytes.count)
            handshakeBytes -= skipped
            do throws(RTMPError) {
                answers += try reader.readAll(Array(bytes.dropFirst(skipped)))
            } catch {
                preconditionFailure("the connection sends what can be read: \(error)")
            }
        }
    }

    mutating func clear() { actions = [] }

    /// The messages of the connection since the last call.
    mutating func takeAnswers() -> [RTMPMessage] {
        defer { answers = [] }
        return answers
    }

    /// The commands among them, as their names, transactions and values.
    mutating func takeCommands() throws -> [(name: String, transaction: Double, values: [AMF0Value], stream: UInt32)] {
        try takeAnswers().filter { $0.type == .commandAMF0 }.map { message in
            var reader = AMF0Reader(message.body)
            let name = try reader.readName()
            let transaction = try reader.read().number ?? -1
            var values: [AMF0Value] = []
            while !reader.isAtEnd { values.append(try reader.read()) }
            return (name, transaction, values, message.stream)
        }
    }

    /// The end that the connection told.
    var end: RTMPConnection.End? {
        for case .ended(let end) in actions { return end }
        return nil
    }
    var media: [RTMPMedia] {
        actions.compactMap { action in
            if case .media(let media) = action { media } else { nil }
        }
    }
    var hasClosed: Bool { actions.last == .close }
}
