import Base
import Wire

/// The bytes of a connection: in one piece and in many, the packets are the same. The same bytes are routed, and queued
/// for sending.
func fuzzStream(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let framing: StreamFraming = input.flag() ? .turn : .rfc4571
    let pieceBytes = input.choice(40) + 1
    let stream = input.rest()
    let whole = packets(of: stream, framing, pieceBytes: .max)
    let pieces = packets(of: stream, framing, pieceBytes: pieceBytes)
    require(whole.packets == pieces.packets, "the pieces do not matter")
    require(whole.error == pieces.error, "an error is found")
    let routes = ["192.0.2.1", "turn.example"].map { name in
        withSpan(stream) { SharedPortRouter(turnName: name).route($0) }
    }
    requireOneOpening(stream)
    require((routes[0] == .undecided) == (routes[1] == .undecided), "the name changes no length")
    var opening = SharedPortOpening(SharedPortRouter(turnName: "turn.example"))
    for piece in [stream.prefix(pieceBytes), stream.dropFirst(pieceBytes)] {
        _ = withSpan(Array(piece)) { opening.append($0) }
    }
    require(opening.bytes == stream, "nothing is taken of a connection")
    queue(whole.packets, framing)
}

/// What the first bytes of a media port's connection tell is not changed by later ones, and TURN's can be followed.
private func requireOneOpening(_ stream: [UInt8]) {
    let whole = withSpan(stream) { StreamFraming(opening: $0) }
    for count in 0..<min(stream.count, StreamFraming.openingBytesMax) {
        let part = withSpan(Array(stream.prefix(count))) { StreamFraming(opening: $0) }
        require(part == nil || part == whole, "the first bytes decide")
    }
    require(whole != nil || stream.count < StreamFraming.openingBytesMax, "eight bytes decide")
    guard whole == .turn else { return }
    let found = packets(of: Array(stream.prefix(StreamFraming.openingBytesMax)), .turn, pieceBytes: .max)
    guard let error = found.error else { return }
    if case .unknownProtocol = error { require(false, "TURN's first message is STUN") }
}

private func packets(
    of stream: [UInt8],
    _ framing: StreamFraming,
    pieceBytes: Int
) -> (packets: [[UInt8]], error: StreamFramingError?) {
    var deframer = StreamDeframer(framing)
    var packets: [[UInt8]] = []
    var rest = stream[...]
    while !rest.isEmpty {
        let piece = Array(rest.prefix(pieceBytes))
        rest = rest.dropFirst(piece.count)
        let error = withSpan(piece) { span -> StreamFramingError? in
            do throws(StreamFramingError) {
                try deframer.append(span) { packets.append($0.array()) }
                return nil
            } catch {
                return error
            }
        }
        require(deframer.pendingBytes <= StreamDeframer.packetBytesMax + 2, "one incomplete packet waits")
        if let error { return (packets, error) }
    }
    return (packets, nil)
}

/// Sends packets whose bytes tell the kind, over a connection whose speed they tell too.
private func queue(_ packets: [[UInt8]], _ framing: StreamFraming) {
    var queue = StreamSendQueue(.rfc4571)
    var now = Instant(nanoseconds: 1)
    var wire: [UInt8] = []
    for packet in packets {
        let mode = packet.last ?? 0
        let kind: StreamPacketKind
        switch mode & 3 {
        case 0: kind = .control
        case 1: kind = .audio
        case 2: kind = .repair
        default:
            kind = .video(
                SSRC(rawValue: UInt32(mode >> 6)),
                frame: RTPTimestamp(rawValue: UInt32(packet[packet.count / 2])),
                startsKeyFrame: mode & 4 != 0
            )
        }
        withSpan(packet) { _ = queue.append($0, kind: kind, at: now) }
        require(queue.byteCount <= 196 << 10, "the queue is bounded")
        now += .milliseconds(Int(mode >> 3))
        guard mode & 32 != 0, queue.prepareWrite(at: now) else { continue }
        let count = min(queue.unwritten.count, Int(mode) * 4)
        wire += queue.unwritten.prefix(count)
        queue.finishWrite(count)
    }
    while queue.prepareWrite(at: now) {
        wire += queue.unwritten
        queue.finishWrite(queue.unwritten.count)
    }
    require(queue.isEmpty && !queue.isBlocked, "all is written")
    let sent = Set(packets)
    for packet in Fuzz.packets(of: wire, .rfc4571, pieceBytes: .max).packets {
        require(sent.contains(packet), "packets arrive whole")
    }
}

func seedsStream() -> [(name: String, bytes: [UInt8])] {
    let request = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 2)).bytes
    let turn = SeedWriter.make { writer in
        writer.byte(1)
        writer.byte(6)
        for byte in request + [0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0] + request { writer.byte(byte) }
    }
    let ice = SeedWriter.make { writer in
        writer.byte(0)
        writer.byte(3)
        for length in [20, 3, 3, 0, 4] {
            writer.chunk(length == 20 ? request : (0..<length).map { UInt8($0 * 19 + 13) })
        }
    }
    let hello = SeedWriter.make { writer in
        writer.byte(1)
        writer.byte(9)
        let extensions: [UInt8] = [0, 0, 0, 6, 0, 4, 0, 0, 1, 0x61, 0, 16, 0, 5, 0, 3, 2, 0x68, 0x32]
        let body = [3, 3] + [UInt8](repeating: 1, count: 32) + [0, 0, 2, 0x13, 1, 1, 0, 0, UInt8(extensions.count)]
        let message = [1, 0, 0, UInt8(body.count + extensions.count)] + body + extensions
        for byte in [22, 3, 1, 0, UInt8(message.count)] + message { writer.byte(byte) }
    }
    return [("turn", turn), ("ice", ice), ("hello", hello)]
}
