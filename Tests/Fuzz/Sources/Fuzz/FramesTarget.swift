import Base
import Wire

@testable import Frames
@testable import MediaFormat

private let codecs: [MediaCodec] = [.h264, .h265, .av1, .vp8, .vp9, .opus]

/// Packets of one track as a publisher sends them: frames come in order, whole, and of bounded number.
func fuzzReceivedFrames(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let codec = input.pick(codecs)
    let receiver = TrackReceiver(kind: codec.kind, publisher: PublisherClock(), keyFrameInterval: .seconds(4))
    var now = Instant(nanoseconds: 1_000_000_000)
    var sequence: Int64 = 70_000
    var timestamp: UInt32 = 0
    var last: Interval?
    while !input.isAtEnd {
        // Most packets follow each other.
        let step = input.byte()
        if step & 0x01 != 0 { timestamp &+= step & 0x02 != 0 ? 3_000 : input.uint32() }
        sequence &+= step & 0x04 == 0 ? 1 : Int64(Int16(bitPattern: input.uint16()))
        if step & 0x08 != 0 { now += .milliseconds(Int(input.uint16())) }
        let stream = step & 0x10 == 0 ? 1 : UInt64(1 + input.choice(6))
        if step & 0x20 != 0 {
            receiver.receiveReport(
                of: stream,
                senderNanoseconds: Int64(input.uint32()) << 20,
                timestamp: RTPTimestamp(rawValue: timestamp),
                at: now
            )
        }
        receiver.receive(
            ReceivedPacket(
                stream: stream,
                isChosen: step & 0x40 == 0,
                codec: codec,
                isRedundant: codec == .opus && step & 0x02 != 0,
                sequence: ExtendedSequenceNumber(rawValue: sequence),
                timestamp: RTPTimestamp(rawValue: timestamp),
                marker: step & 0x80 != 0,
                payload: input.chunk(),
                arrivedAt: now
            ),
            at: now
        )
        let outputs = receiver.takeOutputs()
        // What waited, and silence in front of each packet of it.
        require(outputs.count <= 260 * ReceiveLimits.waitingPacketsMax, "one packet has bounded effects")
        for case .frame(let received) in outputs {
            require(!received.frame.bytes.isEmpty && received.frame.codec == codec, "a frame has bytes")
            let isLater = last.map { $0 < received.frame.decodeTime || received.isDiscontinuity } ?? true
            require(isLater, "times ascend")
            last = received.frame.decodeTime
            requireWritable(received.frame)
        }
    }
    receiver.advance(to: now + .seconds(10))
    _ = receiver.takeOutputs()
}

/// The units of a frame are whole, and its configuration has a record.
private func requireWritable(_ frame: MediaFrame) {
    if let configuration = frame.configuration {
        require(
            frame.isKey && configuration.codec == frame.codec,
            "a configuration comes with a key frame of its codec"
        )
        _ = (configuration.record, configuration.codecs, configuration.size)
    }
    guard frame.codec == .h264 || frame.codec == .h265 else { return }
    require(withSpan(frame.bytes) { try? makeAnnexB(lengthPrefixed: $0) } != nil, "units are whole")
}

/// Frames as a publisher's connection brings them: packets fit, and a receiver understands them.
func fuzzSentFrames(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let codec = input.pick(codecs)
    let most = 100 + Int(input.byte()) * 6
    var sender = FrameSender(
        policy: input.pick(BFramePolicy.allCases),
        packetBytesMax: most,
        senderNanosecondsAtZero: 0
    )
    let track = SentTrack(
        codec: codec,
        ssrc: SSRC(rawValue: 1),
        payloadType: PayloadType(wire: 96),
        sequence: SequenceNumber(rawValue: 65_500),
        timestamp: RTPTimestamp(rawValue: 0)
    )
    require(sender.addTrack(track) == 0, "RTP carries the codec")
    var now = Instant(nanoseconds: 1_000_000_000)
    var time = Interval.zero
    var sequence: UInt16 = 65_500
    while !input.isAtEnd {
        let step = input.byte()
        time =
            step & 0x02 != 0
            ? Interval(nanoseconds: Int64(Int32(bitPattern: input.uint32())) << 20) : time + .milliseconds(33)
        now += .milliseconds(step & 0x04 != 0 ? Int(input.uint16()) : 33)
        let frame = MediaFrame(
            codec: codec,
            decodeTime: time,
            presentationTime: step & 0x08 != 0 ? time + .milliseconds(Int(input.byte()) - 100) : time,
            isKey: step & 0x01 != 0,
            isDiscardable: step & 0x10 != 0,
            bytes: input.chunk(max: 4_000)
        )
        sender.append(frame, track: 0, at: now)
        sender.advance(to: now)
        for case .packet(_, let packet) in sender.takeOutputs() {
            require(packet.count > 12 && packet.count <= most, "packets fit")
            require(packet[2] == UInt8(sequence >> 8) && packet[3] == UInt8(sequence & 0xFF), "packets are numbered")
            sequence &+= 1
        }
    }
    require(sender.counters.frames >= 0, "counted")
}

func seedsReceivedFrames() -> [(name: String, bytes: [UInt8])] {
    func packets(_ codec: MediaCodec, _ payloads: [(step: UInt8, payload: [UInt8])]) -> [UInt8] {
        SeedWriter.make { seed in
            seed.byte(codecs.firstIndex(of: codec) ?? 0)
            for packet in payloads {
                seed.byte(packet.step)
                seed.chunk(packet.payload)
            }
        }
    }
    let sps: [UInt8] = [0x67, 0x42, 0xE0, 0x1E, 0xDA, 0x02, 0x80, 0xF6]
    let pps: [UInt8] = [0x68, 0xCE, 0x06, 0xE2]
    let sets: [UInt8] = [24, 0, 8] + sps + [0, 4] + pps
    let h264: [(step: UInt8, payload: [UInt8])] = [
        (0x03, sets), (0, [0x7C, 0x85, 0x88, 0x84]), (0x80, [0x7C, 0x45, 0x21, 0x22]),
        (0x83, [0x41, 0x9A, 0x21, 0x6C]),
    ]
    let vp8Key: [UInt8] = [0x90, 0xE0, 0x81, 0x02, 5, 0x20, 0x10, 0x02, 0, 0x9D, 0x01, 0x2A, 0x80, 2, 0x68, 1]
    let vp8: [(step: UInt8, payload: [UInt8])] = [
        (0x83, vp8Key), (0x83, [0x90, 0xE0, 0x81, 0x03, 5, 0x60, 0x11, 2, 0, 7]),
        (0x83, [0x90, 0xE0, 0x81, 0x04, 6, 0x00, 0x11, 2, 0, 8]),
    ]
    let vp9: [(step: UInt8, payload: [UInt8])] = [
        (0x03, [0x2C, 0x00, 0, 0x82, 0x49, 0x83, 0x42, 0x40, 0x4F, 0xF0, 0x2C, 0xF0]),
        (0x80, [0x2C, 0x03, 0, 0x86, 0, 0x40]),
        (0x83, [0x4C, 0x86, 0x00, 0x40]),
    ]
    let av1: [(step: UInt8, payload: [UInt8])] = [
        (0x83, [0x28, 11, 0x08, 0, 0, 0, 4, 0x3C, 0xFF, 0xBC, 0xFF, 0xF9, 0x80, 0x30, 0x10, 0x00]),
        (0x03, [0x50, 0x30, 0x30]), (0x80, [0x90, 0x00]),
    ]
    let h265: [(step: UInt8, payload: [UInt8])] = [
        (0x03, [0x62, 1, 0x93, 0xAF, 1]), (0x80, [0x62, 1, 0x53, 2, 3]), (0x83, [0x02, 1, 0xD0, 0x20]),
    ]
    let opus: [(step: UInt8, payload: [UInt8])] = [
        (0x01 | 0x20, [0xF8, 1, 2]), (0x03, [0xF8, 1, 2]), (0x03, [0xEF, 0x0F, 0, 3, 0x6F, 0xF8, 1, 1, 0xF8, 2, 2]),
    ]
    return [
        ("h264", packets(.h264, h264)), ("h265", packets(.h265, h265)), ("av1", packets(.av1, av1)),
        ("vp8", packets(.vp8, vp8)), ("vp9", packets(.vp9, vp9)), ("opus", packets(.opus, opus)),
    ]
}

func seedsSentFrames() -> [(name: String, bytes: [UInt8])] {
    func frames(_ codec: MediaCodec, _ frames: [(step: UInt8, bytes: [UInt8])]) -> [UInt8] {
        SeedWriter.make { seed in
            seed.byte(codecs.firstIndex(of: codec) ?? 0)
            seed.byte(1)
            seed.byte(0)
            for frame in frames {
                seed.byte(frame.step)
                seed.chunk(frame.bytes)
            }
        }
    }
    let unit: [UInt8] = [0, 0, 0, 4, 0x65, 0x88, 0x84, 0x21]
    let long: [UInt8] = [0, 0, 1, 0] + [0x41] + Array(repeating: 0x9A, count: 255)
    return [
        ("h264", frames(.h264, [(1, unit), (0, long), (0, unit + long)])),
        ("h265", frames(.h265, [(1, [0, 0, 0, 3, 0x26, 1, 0xAF]), (0, long)])),
        (
            "av1",
            frames(
                .av1,
                [(1, [0x0A, 1, 0, 0x32, 2, 0x10, 0]), (0, [0x32, 0x82, 0x02] + Array(repeating: 7, count: 258))]
            )
        ),
        ("vp8", frames(.vp8, [(1, Array(repeating: 1, count: 300)), (0, [0x11, 2, 0])])),
        ("vp9", frames(.vp9, [(1, Array(repeating: 0x82, count: 300)), (0, [0x86, 0])])),
        ("opus", frames(.opus, [(1, [0xF8, 1]), (0, [0xF8, 2])])),
    ]
}
