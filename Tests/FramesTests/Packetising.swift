import Base
import MediaFormat
import Wire

@testable import Frames

/// Payloads as senders make them, small enough that most frames take several.
enum Packetising {
    /// The RTP payloads of a frame.
    static func payloads(of frame: MediaFrame, configuration: CodecConfiguration?, most: Int = 60) -> [[UInt8]] {
        switch frame.codec {
        case .h264: h264(frame, configuration, most)
        case .h265: h265(frame, configuration, most)
        case .av1: av1(frame, most)
        case .vp8: vp8(frame.bytes, most)
        case .vp9: vp9([frame.bytes], isKey: frame.isKey, most)
        default: [frame.bytes]
        }
    }

    private static func units(_ frame: MediaFrame, _ sets: [[UInt8]]) -> [[UInt8]] {
        var units = frame.isKey ? sets : []
        var offset = 0
        while offset + 4 <= frame.bytes.count {
            let length = frame.bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
            units.append(Array(frame.bytes[(offset + 4)..<(offset + 4 + length)]))
            offset += 4 + length
        }
        return units
    }

    private static func pieces(_ bytes: ArraySlice<UInt8>, _ most: Int) -> [[UInt8]] {
        stride(from: bytes.startIndex, to: bytes.endIndex, by: most).map {
            Array(bytes[$0..<min($0 + most, bytes.endIndex)])
        }
    }

    private static func h264(_ frame: MediaFrame, _ configuration: CodecConfiguration?, _ most: Int) -> [[UInt8]] {
        var sets: [[UInt8]] = []
        if case .h264(let record) = configuration { sets = record.sequenceParameterSets + record.pictureParameterSets }
        var payloads: [[UInt8]] = []
        if frame.isKey, !sets.isEmpty {
            // STAP-A.
            payloads.append(sets.reduce([24]) { $0 + [UInt8($1.count >> 8), UInt8($1.count & 0xFF)] + $1 })
        }
        for unit in units(frame, []) {
            guard unit.count > most else {
                payloads.append(unit)
                continue
            }
            let parts = pieces(unit.dropFirst(), most)
            for (number, part) in parts.enumerated() {
                let bits: UInt8 = (number == 0 ? 0x80 : 0) | (number == parts.count - 1 ? 0x40 : 0)
                payloads.append([unit[0] & 0xE0 | 28, bits | unit[0] & 0x1F] + part)
            }
        }
        return payloads
    }

    private static func h265(_ frame: MediaFrame, _ configuration: CodecConfiguration?, _ most: Int) -> [[UInt8]] {
        var sets: [[UInt8]] = []
        if case .h265(let record) = configuration {
            sets = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
        }
        var payloads: [[UInt8]] = []
        if frame.isKey, !sets.isEmpty {
            // An aggregation packet.
            payloads.append(sets.reduce([48 << 1, 1]) { $0 + [UInt8($1.count >> 8), UInt8($1.count & 0xFF)] + $1 })
        }
        for unit in units(frame, []) {
            guard unit.count > most else {
                payloads.append(unit)
                continue
            }
            let parts = pieces(unit.dropFirst(2), most)
            for (number, part) in parts.enumerated() {
                let bits: UInt8 = (number == 0 ? 0x80 : 0) | (number == parts.count - 1 ? 0x40 : 0)
                payloads.append([unit[0] & 0x81 | 49 << 1, unit[1], bits | unit[0] >> 1 & 0x3F] + part)
            }
        }
        return payloads
    }

    /// One OBU element for each packet or piece; OBUs keep their size fields, which receivers accept.
    private static func av1(_ frame: MediaFrame, _ most: Int) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        var offset = 0
        while offset < frame.bytes.count {
            var consumed = 0
            let rest = Array(frame.bytes[offset...])
            guard (try? OBU(unsafe rest.span.bytes, consumed: &consumed)) != nil, consumed > 0 else { break }
            let parts = pieces(rest[..<consumed], most)
            for (number, part) in parts.enumerated() {
                var header: UInt8 = 0x10
                if number > 0 { header |= 0x80 }
                if number < parts.count - 1 { header |= 0x40 }
                if payloads.isEmpty, frame.isKey { header |= 0x08 }
                payloads.append([header] + part)
            }
            offset += consumed
        }
        return payloads
    }

    /// With the temporal layer and its numbers, where there are some.
    static func vp8(
        _ bytes: [UInt8],
        _ most: Int,
        layer: (id: UInt8, base: UInt8, syncs: Bool)? = nil
    ) -> [[UInt8]] {
        pieces(bytes[...], most).enumerated().map { number, part in
            let start: UInt8 = number == 0 ? 0x10 : 0
            guard let layer else { return [start] + part }
            return [start | 0x80, 0x60, layer.base, layer.id << 6 | (layer.syncs ? 0x20 : 0)] + part
        }
    }

    /// One frame for each spatial layer.
    static func vp9(_ frames: [[UInt8]], isKey: Bool, _ most: Int) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        for (layer, frame) in frames.enumerated() {
            let parts = pieces(frame[...], most)
            for (number, part) in parts.enumerated() {
                var flags: UInt8 = isKey ? 0 : 0x40
                if number == 0 { flags |= 0x08 }
                if number == parts.count - 1 { flags |= 0x04 }
                guard frames.count > 1 else {
                    payloads.append([flags] + part)
                    continue
                }
                // Layer indices: the spatial layer, and whether it refers to the one below; then TL0PICIDX.
                payloads.append([flags | 0x20, UInt8(layer) << 1 | (layer > 0 ? 1 : 0), 0] + part)
            }
        }
        return payloads
    }

    /// A VP8 frame that tells its kind and number.
    static func vp8Frame(_ number: Int, isKey: Bool, bytes: Int = 90) -> [UInt8] {
        let head: [UInt8] = isKey ? [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01] : [0x11, 0x02, 0x00]
        return head + [UInt8(truncatingIfNeeded: number)]
            + Array(repeating: UInt8(truncatingIfNeeded: number &* 7), count: bytes)
    }
}

/// The packets of one stream.
struct TestStream {
    var number: UInt64 = 1
    var codec: MediaCodec
    var sequence: Int64 = 65_536 + 65_000
    var timestamp: UInt32 = .max - 10_000
    var ticksPerFrame: UInt32 = 3_000

    mutating func packets(_ payloads: [[UInt8]], isChosen: Bool = true, at now: Instant) -> [ReceivedPacket] {
        let packets = payloads.enumerated().map { index, payload in
            ReceivedPacket(
                stream: number,
                isChosen: isChosen,
                codec: codec,
                sequence: ExtendedSequenceNumber(rawValue: sequence + Int64(index)),
                timestamp: RTPTimestamp(rawValue: timestamp),
                marker: index == payloads.count - 1,
                payload: payload,
                arrivedAt: now
            )
        }
        sequence += Int64(payloads.count)
        timestamp &+= ticksPerFrame
        return packets
    }
}

extension TrackReceiver {
    /// The frames among what was not taken yet.
    func takeFrames() -> [ReceivedFrame] {
        takeOutputs().compactMap { if case .frame(let frame) = $0 { frame } else { nil } }
    }
}

extension Instant {
    static func at(_ milliseconds: Int) -> Instant {
        Instant(nanoseconds: 1_000_000_000_000) + .milliseconds(milliseconds)
    }
}
