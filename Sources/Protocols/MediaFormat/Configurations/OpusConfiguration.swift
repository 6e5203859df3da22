import Base

/// The configuration of an Opus stream: the identification header `OpusHead` (RFC 7845 §5.1), which RTMP and WebM
/// carry, and `dOps` of MP4 (Encapsulation of Opus in ISO Base Media File Format §4.3.2), which differ in byte order
/// only.
package struct OpusConfiguration: Hashable, Sendable {
    /// The clock of Opus in Hz, whatever rate was encoded.
    package static let sampleRate = 48_000

    /// 1…8.
    package let channels: Int
    /// Samples at 48 kHz that a decoder leaves out at the start of the stream.
    package let preSkip: UInt16
    /// The rate of the encoder's input in Hz, as information; 0 is unknown.
    package let inputSampleRate: UInt32
    /// Gain of the output in 1/256 dB.
    package let outputGain: Int16
    /// Channel mapping family: 0 is mono or stereo, 1 the order of Vorbis.
    package let mappingFamily: UInt8
    /// Stream count, coupled count and one byte for each channel; empty with family 0.
    package let mapping: [UInt8]

    /// Creates the configuration of an RTP stream.
    /// - Parameters:
    ///   - channels: 1 or 2; others count as 2.
    ///   - preSkip: in samples at 48 kHz. A stream that is joined while it runs has nothing to leave out.
    package init(channels: Int, preSkip: UInt16 = 0) {
        self.channels = channels == 1 ? 1 : 2
        self.preSkip = preSkip
        inputSampleRate = UInt32(Self.sampleRate)
        outputGain = 0
        mappingFamily = 0
        mapping = []
    }

    /// Reads `OpusHead`, with its eight-byte signature.
    package init(opusHead bytes: RawSpan) throws(FormatError) {
        var reader = ByteReader(bytes, "OpusHead")
        guard try reader.uint64() == 0x4F70_7573_4865_6164 else { throw .invalid("the signature of OpusHead") }
        guard try reader.uint8() & 0xF0 == 0 else { throw .unsupported("this version of OpusHead") }
        try self.init(&reader, isLittleEndian: true)
    }

    /// Reads the payload of `dOps`.
    package init(dOps bytes: RawSpan) throws(FormatError) {
        var reader = ByteReader(bytes, "dOps")
        guard try reader.uint8() == 0 else { throw .unsupported("this version of dOps") }
        try self.init(&reader, isLittleEndian: false)
    }

    private init(_ reader: inout ByteReader, isLittleEndian: Bool) throws(FormatError) {
        channels = Int(try reader.uint8())
        guard (1...FormatLimits.channelsMax).contains(channels) else { throw .limit("audio channels") }
        let preSkip = try reader.uint16()
        let rate = try reader.uint32()
        let gain = try reader.uint16()
        self.preSkip = isLittleEndian ? preSkip.byteSwapped : preSkip
        inputSampleRate = isLittleEndian ? rate.byteSwapped : rate
        outputGain = Int16(bitPattern: isLittleEndian ? gain.byteSwapped : gain)
        mappingFamily = try reader.uint8()
        guard mappingFamily > 0 else {
            guard channels <= 2 else { throw .invalid("the channels of Opus without a mapping") }
            mapping = []
            return
        }
        mapping = try reader.span(2 + channels).array()
    }

    /// The identification header of RFC 7845 §5.1.
    package var opusHead: [UInt8] {
        var bytes = Array("OpusHead".utf8)
        bytes += [1, UInt8(truncatingIfNeeded: channels)]
        bytes.append(littleEndian: preSkip)
        bytes.append(littleEndian: inputSampleRate)
        bytes.append(littleEndian: UInt16(bitPattern: outputGain))
        bytes.append(mappingFamily)
        return bytes + mapping
    }

    /// The payload of the box `dOps`.
    package var dOps: [UInt8] {
        var bytes: [UInt8] = [0, UInt8(truncatingIfNeeded: channels)]
        bytes.append(bigEndian: preSkip)
        bytes.append(bigEndian: inputSampleRate)
        bytes.append(bigEndian: UInt16(bitPattern: outputGain))
        bytes.append(mappingFamily)
        return bytes + mapping
    }

    /// The samples of a packet at 48 kHz, 120…5,760 (RFC 6716 §3.1, §3.2.5); `nil` for one that is not Opus.
    package static func samples(of packet: RawSpan) -> Int? {
        guard packet.byteCount >= 1 else { return nil }
        let first = packet.byte(at: 0)
        let configuration = Int(first >> 3)
        let frame: Int =
            switch configuration {
            case 0..<12: [480, 960, 1_920, 2_880][configuration & 3]
            case 12..<16: [480, 960][configuration & 1]
            default: [120, 240, 480, 960][configuration & 3]
            }
        var count = 1
        switch first & 3 {
        case 0: break
        case 1, 2: count = 2
        default:
            guard packet.byteCount >= 2 else { return nil }
            count = Int(packet.byte(at: 1) & 0x3F)
        }
        let samples = frame * count
        return (120...5_760).contains(samples) ? samples : nil
    }
}
