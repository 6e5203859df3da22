import Base

/// The AudioSpecificConfig of AAC (ISO/IEC 14496-3 §1.6.2.1), kept as it came.
package struct AACConfiguration: Hashable, Sendable {
    /// The most bytes of a configuration; one with all that the format has is shorter.
    package static let bytesMax = 256

    /// The bytes as they came.
    package let encoded: [UInt8]
    /// The audio object type of the core: 2 is AAC-LC.
    package private(set) var objectType = 0
    /// The rate of the core in Hz; a frame has 1,024 or 960 samples of it.
    package private(set) var sampleRate = 0
    /// The channels of the core, 1…8.
    package private(set) var channels = 0
    /// Whether spectral band replication is signalled, explicitly or by the extension that follows (HE-AAC).
    package private(set) var hasSBR = false
    /// Whether parametric stereo is signalled (HE-AAC v2): a mono core is heard in stereo.
    package private(set) var hasPS = false
    /// The rate with spectral band replication in Hz.
    package private(set) var extensionSampleRate: Int?
    /// Samples of the core in a frame: 1,024, or 960.
    package private(set) var frameSamples = 1_024
    /// Whether the first object type said SBR or PS: the codecs parameter tells them then.
    private var isExplicit = false

    /// ISO/IEC 14496-3 table 1.18.
    private static let rates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ]

    /// Creates the configuration of AAC-LC.
    /// - Parameters:
    ///   - sampleRate: in Hz; one that is not in the table is written as a number of 24 bits.
    ///   - channels: 1…7 for channel configurations 1…7, where 7 is 7.1.
    package init(sampleRate: Int, channels: Int) throws(FormatError) {
        var writer = BitWriter()
        writer.append(2, bits: 5)
        if let index = Self.rates.firstIndex(of: sampleRate) {
            writer.append(index, bits: 4)
        } else {
            guard (1...192_000).contains(sampleRate) else { throw .invalid("the sample rate of AAC") }
            writer.append(15, bits: 4)
            writer.append(sampleRate, bits: 24)
        }
        guard (1...7).contains(channels) else { throw .invalid("the channels of AAC") }
        writer.append(channels, bits: 4)
        writer.append(0, bits: 3)
        try self.init(unsafe writer.bytes.span.bytes)
    }

    /// Reads the bytes of a configuration.
    package init(_ bytes: RawSpan) throws(FormatError) {
        guard bytes.byteCount <= Self.bytesMax else { throw .limit("bytes of an AudioSpecificConfig") }
        encoded = bytes.array()
        var reader = BitReader(bytes, "an AudioSpecificConfig")
        objectType = try Self.readObjectType(&reader)
        sampleRate = try Self.readRate(&reader)
        let layout = Int(try reader.bits(4))
        if objectType == 5 || objectType == 29 {
            isExplicit = true
            hasSBR = true
            hasPS = objectType == 29
            extensionSampleRate = try Self.readRate(&reader)
            objectType = try Self.readObjectType(&reader)
            if objectType == 22 { try reader.skip(4) }
        }
        guard [1, 2, 3, 4, 6, 7, 17, 19, 20, 22, 23].contains(objectType) else {
            throw .unsupported("audio object type \(objectType)")
        }
        // Configurations 1…6 have as many channels; 7 has eight, 11 seven, 12 and 14 eight (table 1.19).
        let counts = [0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8, 0]
        channels = counts[layout]
        let elements = try readGeneral(&reader, layout: layout)
        if let elements { channels = elements }
        guard (1...FormatLimits.channelsMax).contains(channels) else { throw .limit("audio channels") }
        // Nothing follows a program configuration here, because its comment is not read.
        // Error resilient types, from 17 on, have more fields before it.
        if elements == nil, !isExplicit, objectType < 17 { readExtension(&reader) }
    }

    private static func readObjectType(_ reader: inout BitReader) throws(FormatError) -> Int {
        let type = Int(try reader.bits(5))
        return type == 31 ? 32 + Int(try reader.bits(6)) : type
    }

    private static func readRate(_ reader: inout BitReader) throws(FormatError) -> Int {
        let index = Int(try reader.bits(4))
        let rate = index == 15 ? Int(try reader.bits(24)) : rates.indices.contains(index) ? rates[index] : 0
        guard (1...192_000).contains(rate) else { throw .invalid("the sample rate of AAC") }
        return rate
    }

    /// GASpecificConfig() (ISO/IEC 14496-3 §4.4.1).
    /// - Returns: the channels of a program configuration; `nil` when there is none.
    private mutating func readGeneral(_ reader: inout BitReader, layout: Int) throws(FormatError) -> Int? {
        let isShort = try reader.flag()
        frameSamples = objectType == 23 ? (isShort ? 480 : 512) : (isShort ? 960 : 1_024)
        if try reader.flag() { try reader.skip(14) }
        let hasExtension = try reader.flag()
        if layout == 0 { return try Self.readProgram(&reader) }
        if objectType == 6 || objectType == 20 { try reader.skip(3) }
        if hasExtension {
            if objectType == 22 { try reader.skip(16) }
            if [17, 19, 20, 23].contains(objectType) { try reader.skip(3) }
            try reader.skip(1)
        }
        return nil
    }

    /// program_config_element() up to its channels (ISO/IEC 14496-3 §4.4.1.1).
    private static func readProgram(_ reader: inout BitReader) throws(FormatError) -> Int {
        try reader.skip(10)
        var elements = 0
        for _ in 0..<3 { elements += Int(try reader.bits(4)) }
        let lowFrequency = Int(try reader.bits(2))
        try reader.skip(7)
        for width in [4, 4, 3] {
            if try reader.flag() { try reader.skip(width) }
        }
        var channels = lowFrequency
        for _ in 0..<elements {
            channels += try reader.flag() ? 2 : 1
            try reader.skip(4)
        }
        return channels
    }

    /// The backward compatible signalling of SBR and PS behind the configuration (ISO/IEC 14496-3 §1.6.6).
    private mutating func readExtension(_ reader: inout BitReader) {
        do throws(FormatError) {
            guard reader.remaining >= 16, try reader.bits(11) == 0x2B7 else { return }
            guard try Self.readObjectType(&reader) == 5, try reader.flag() else { return }
            extensionSampleRate = try Self.readRate(&reader)
            hasSBR = true
            guard reader.remaining >= 12, try reader.bits(11) == 0x548 else { return }
            hasPS = try reader.flag()
        } catch {
            // An extension that is cut short says nothing.
        }
    }

    /// The rate of the decoded audio in Hz.
    package var outputSampleRate: Int { extensionSampleRate ?? sampleRate }

    /// The channels of the decoded audio.
    package var outputChannels: Int { hasPS && channels == 1 ? 2 : channels }

    /// The codecs parameter, as `mp4a.40.2` (RFC 6381 §3.3).
    package var codecs: String { "mp4a.40.\(!isExplicit ? objectType : hasPS ? 29 : 5)" }
}
