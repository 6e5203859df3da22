import Base

@testable import RTMP

/// A connection past its handshake, or before it. The input decides how its bytes are cut, what the owner answers and how time
/// goes; then the same bytes come in one piece, which changes nothing but the acknowledgements.
func fuzzRTMP(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let flags = input.byte()
    let seed = UInt64(input.byte())
    let stream = (flags & 1 == 0 ? RTMPScene.handshake : []) + (flags & 2 == 0 ? RTMPScene.opening : []) + input.rest()
    var scene = RTMPScene(refuses: flags & 12 == 12, answersLater: flags & 16 != 0)
    var generator = SeededGenerator(seed: seed)
    var rest = stream[...]
    while !rest.isEmpty, !scene.hasClosed {
        let count = seed & 3 == 0 ? 1 : Int.random(in: 1...(seed & 3 == 1 ? 20 : 3_000), using: &generator)
        // The owner reads no more while the connection does not want it.
        if scene.connection.isBlocked { scene.answer() }
        scene.receive(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
    }
    scene.answer()
    var whole = RTMPScene(refuses: scene.refuses, answersLater: scene.answersLater)
    whole.receive(stream)
    whole.answer()
    // What waits for an answer may be longer than its bound only in one piece.
    if stream.count <= RTMPLimits.deferredBytesMax {
        require(scene.told == whole.told, "the pieces do not matter")
    }
    scene.elapse()
}

private struct RTMPScene {
    static let handshake: [UInt8] = [3] + [UInt8](repeating: 5, count: 3_072)
    /// `connect` and `publish`.
    static let opening: [UInt8] =
        command("connect", [.object([AMF0Member("app", .string("live")), AMF0Member("capsEx", .number(1))])])
        + command("publish", [.null, .string("demo?auth_key=secret"), .string("live")])

    static func command(_ name: String, _ values: [AMF0Value]) -> [UInt8] {
        var writer = AMF0Writer()
        for value in [.string(name), .number(1)] + values { writer.write(value) }
        return message(20, 0, writer.bytes)
    }

    /// A message of at most 128 bytes in one chunk of type 0.
    static func message(_ type: UInt8, _ time: UInt8, _ body: [UInt8], on id: UInt8 = 3) -> [UInt8] {
        [id, 0, 0, time, 0, 0, UInt8(body.count), type, 1, 0, 0, 0] + body
    }

    var connection: RTMPConnection
    let refuses: Bool
    let answersLater: Bool
    enum Told: Hashable {
        case action(RTMPConnection.Action)
        /// As text, because a number that is none equals nothing.
        case metadata(String)
    }
    /// Everything but what was sent.
    var told: [Told] = []
    var hasClosed = false
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var isAsked = false
    private var hasEnded = false
    private var receivedBytes = 0
    private var sentBytes = 0

    init(refuses: Bool, answersLater: Bool) {
        self.refuses = refuses
        self.answersLater = answersLater
        var generator = SeededGenerator(seed: 1)
        connection = RTMPConnection(settings: RTMPSettings(), using: &generator, at: now)
    }

    mutating func receive(_ bytes: [UInt8]) {
        receivedBytes += bytes.count
        perform(withSpan(bytes) { connection.receive($0, at: now) })
        require(sentBytes <= 5_000 + 3 * receivedBytes, "the output has a bound")
    }

    /// Answers the request to publish, if there is one.
    mutating func answer() {
        guard isAsked else { return }
        isAsked = false
        perform(
            refuses
                ? connection.refuse(RTMPRefusal(.denied, "The token has expired."), at: now)
                : connection.accept(at: now)
        )
    }

    private mutating func perform(_ actions: [RTMPConnection.Action]) {
        var isToAnswer = false
        for action in actions {
            require(!hasClosed, "nothing follows a close")
            switch action {
            case .send(let bytes):
                require(!bytes.isEmpty, "what is sent has bytes")
                sentBytes += bytes.count
                continue
            case .publish(let request):
                require(!hasEnded && request == connection.request, "the request is known")
                require("\(request)" == "\(request.app)/\(request.name)", "its text has no query")
                isAsked = true
                isToAnswer = !answersLater
            case .media(let media):
                require(!hasEnded && !media.body.isEmpty, "media have bytes, and come before the end")
            case .metadata(let metadata):
                require(!hasEnded && metadata.members.count <= AMF0Reader.membersMax, "metadata have a bound")
                told.append(.metadata("\(metadata)"))
                continue
            case .ended:
                require(!hasEnded, "there is one end")
                hasEnded = true
            case .close:
                require(hasEnded, "an end comes before the close")
                hasClosed = true
            }
            told.append(.action(action))
        }
        if isToAnswer { answer() }
    }

    /// Without more bytes, every connection ends, once it is answered.
    mutating func elapse() {
        var timeouts = 0
        while let deadline = connection.nextDeadline {
            now = max(now, deadline)
            perform(connection.handleTimeout(at: now))
            timeouts += 1
            require(timeouts <= 2, "a deadline ends a connection")
        }
        require(hasClosed && connection.hasEnded, "a connection ends")
        receive([1, 2, 3])
    }
}

func seedsRTMP() -> [(name: String, bytes: [UInt8])] {
    let media =
        RTMPScene.message(8, 0, [0xAF, 0, 0x12, 0x08], on: 4) + RTMPScene.message(9, 23, [0x17, 0, 0, 0, 0, 1], on: 6)
        // Types 1 to 3, an extended timestamp, and the longer forms of a chunk stream.
        + [0x44, 0, 0, 23, 0, 0, 3, 8, 0xAF, 1, 2, 0x84, 0, 0, 23, 0xAF, 1, 3, 0xC4, 0xAF, 1, 4]
        + [0x46, 0xFF, 0xFF, 0xFF, 0, 0, 2, 9, 1, 0, 0, 0, 0x27, 1, 0xC6, 1, 0, 0, 0, 0x27, 2]
        + [0x00, 9, 0, 0, 50, 0, 0, 1, 8, 1, 0, 0, 0, 0xAF, 0x01, 9, 1, 0, 0, 50, 0, 0, 1, 8, 1, 0, 0, 0, 0xAF]
    let control =
        RTMPScene.message(1, 0, [0, 0, 0x10, 0], on: 2) + RTMPScene.message(2, 0, [0, 0, 0, 6], on: 2)
        + RTMPScene.message(5, 0, [0, 0, 0, 1], on: 2) + RTMPScene.message(4, 0, [0, 6, 1, 2, 3, 4], on: 2)
    let aggregate = RTMPScene.message(22, 9, [8, 0, 0, 1, 0, 0, 5, 0, 0, 0, 0, 0xAF, 0, 0, 0, 12], on: 5)
    let end =
        RTMPScene.command("FCUnpublish", [.null, .string("demo")])
        + RTMPScene.command("deleteStream", [.null, .number(1)])
    let commands =
        RTMPScene.command("releaseStream", [.null, .string("demo")]) + RTMPScene.command("createStream", [.null])
        + RTMPScene.command("play", [.null, .strictArray([.date(1), .boolean(true), .undefined, .ecmaArray([])])])
    var metadata = AMF0Writer()
    metadata.write(.string("@setDataFrame"))
    metadata.write(.string("onMetaData"))
    metadata.write(.ecmaArray([AMF0Member("width", .number(64)), AMF0Member("encoder", .string("x"))]))
    return [
        ("media", [0, 1] + control + media + aggregate + RTMPScene.message(18, 0, metadata.bytes) + end),
        ("later", [16, 1] + media + end), ("refused", [12, 2] + media), ("commands", [0, 0] + commands),
        ("opening", [2, 3] + RTMPScene.opening + media),
        ("handshake", [3, 2] + RTMPScene.handshake + RTMPScene.opening),
        ("RTMPE", [1, 0, 6]),
    ]
}
