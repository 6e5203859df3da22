public import MediaTypes
public import Wire

extension CodecParameters {
    /// A format as the server offers it. Its payload type is of no meaning: `OfferedSession` gives numbers.
    ///
    /// - Parameters:
    ///   - name: Which codec.
    ///   - format: `a=fmtp` in place of the codec's usual one.
    public static func offered(_ name: CodecName, format: [FormatParameter]? = nil) -> Self {
        var codec = standard(name)
        if let format { codec.format = format }
        return codec
    }

    /// Whether the server can offer the format: its profile is one that decoders exist for.
    ///
    /// - Returns: `false` for a profile that is malformed or unknown, H.264's interleaved mode, and a clock rate or channel
    ///   count that is not the codec's.
    public var isOfferable: Bool {
        guard isForwardable(self), name != .red else { return false }
        let isOneOf = { (key: String, values: [String]) in
            formatValue(key).map { values.contains($0.lowercased()) } ?? true
        }
        return switch name {
        case .opus, .red, .vp8, .h264: true
        case .vp9: isOneOf("profile-id", ["0", "1", "2", "3"])
        case .av1: isOneOf("profile", ["0", "1", "2"]) && isOneOf("tier", ["0", "1"])
        case .h265: isOneOf("profile-id", ["1", "2"]) && isOneOf("tier-flag", ["0", "1"])
        }
    }
}

/// What a client wishes of Opus, as `a=fmtp` says it (RFC 7587 §6.1). What is `nil` is left out, or stays as usual.
public struct OpusParameters: Hashable, Sendable {
    /// The highest rate that is worth sending, in Hz.
    public var maxPlaybackRate: Int?
    /// The least length of a packet in ms; usually 10.
    public var minimumPacketTime: Int?
    /// The wished length of a packet in ms.
    public var packetTime: Int?
    public var stereo: Bool?
    public var spropStereo: Bool?
    /// In-band forward error correction; usually used.
    public var usesInBandFEC: Bool?
    /// Discontinuous transmission.
    public var usesDTX: Bool?

    public init() {}

    /// The lines' parameters in a fixed order.
    public var format: [FormatParameter] {
        let flag = { (value: Bool) in value ? "1" : "0" }
        let all: [(String, String?)] = [
            ("minptime", String(minimumPacketTime ?? 10)),
            ("useinbandfec", flag(usesInBandFEC ?? true)),
            ("maxplaybackrate", maxPlaybackRate.map { String($0) }),
            ("ptime", packetTime.map { String($0) }),
            ("stereo", stereo.map(flag)),
            ("sprop-stereo", spropStereo.map(flag)),
            ("usedtx", usesDTX.map(flag)),
        ]
        return all.compactMap { key, value in value.map { FormatParameter(key: key, value: $0) } }
    }
}

/// Which payload type stands for which format in one session.
///
/// Under BUNDLE a number means one format in every section (RFC 9143 §9), with the same parameters and feedback, or
/// libwebrtc refuses the description; and it keeps its meaning for the session's life (RFC 3264 §8.3.2).
///
/// Numbers cannot run out. Formats that match share one, so there are as many as there are classes of matching formats:
/// 27 of video with retransmission (VP8, 4 profiles of VP9, 6 of AV1, 4 of H.265, 12 of H.264), Opus and RED, which is 56 of
/// the 61 dynamic numbers. This holds because `number(_:)` gives a number only to a format that will match itself.
struct PayloadTypeTable: Sendable {
    private var formats: [CodecParameters] = []
    private var taken: Set<UInt8> = []

    /// The dynamic ones (RFC 3551 §6), the usual range first, without those that would be mistaken for RTCP.
    private static let numbers = Array(96...127 as ClosedRange<UInt8>) + Array(35...63 as ClosedRange<UInt8>)

    /// What the first format of a codec is numbered, with its retransmission; what SDKs and logs show everywhere.
    private static func usual(_ name: CodecName) -> (payload: UInt8, rtx: UInt8?) {
        switch name {
        case .opus: (109, nil)
        case .red: (63, nil)
        case .vp8: (96, 97)
        case .vp9: (120, 124)
        case .av1: (45, 46)
        case .h264: (106, 107)
        case .h265: (49, 50)
        }
    }

    /// The session's form of a format, which gets a number if it has none.
    /// - Returns: `nil` when the server cannot offer it, or numbers have run out.
    mutating func number(_ format: CodecParameters) -> CodecParameters? {
        if let known = formats.first(where: { matches($0, format) }) { return known }
        guard format.isOfferable || (format.name == .red && isForwardable(format)) else { return nil }
        var numbered = CodecParameters(
            name: format.name,
            payloadType: PayloadType(wire: 0),
            clockRate: format.clockRate,
            channels: format.channels
        )
        // The server never sends REMB: it controls the client's rate by transport-wide feedback.
        numbered.feedback = .known(for: format.name.kind).subtracting(.remb)
        if format.name == .red {
            // Redundant blocks are of the session's Opus.
            guard let opus = formats.first(where: { $0.name == .opus })?.payloadType else { return nil }
            numbered.format = [FormatParameter(key: "", value: "\(opus)/\(opus)")]
        } else {
            numbered.format = format.format.filter(Self.isPrintable)
        }
        // Otherwise each further call would take further numbers.
        guard matches(numbered, format), let numbers = takeNumbers(of: format.name) else { return nil }
        numbered.payloadType = PayloadType(wire: numbers.payload)
        numbered.rtxPayloadType = numbers.rtx.map { PayloadType(wire: $0) }
        formats.append(numbered)
        return numbered
    }

    private mutating func takeNumbers(of name: CodecName) -> (payload: UInt8, rtx: UInt8?)? {
        let usual = Self.usual(name)
        if !taken.contains(usual.payload), usual.rtx.map({ !taken.contains($0) }) ?? true {
            taken.formUnion([usual.payload] + [usual.rtx].compactMap { $0 })
            return usual
        }
        // Numbers that are usual for other codecs are left to them.
        let others = CodecName.allCases.map(Self.usual)
        let reserved = Set(others.map(\.payload) + others.compactMap(\.rtx))
        let free = Self.numbers.filter { !taken.contains($0) && !reserved.contains($0) }
        let needed = usual.rtx == nil ? 1 : 2
        guard free.count >= needed else { return nil }
        taken.formUnion(free.prefix(needed))
        return (free[0], needed == 2 ? free[1] : nil)
    }

    /// Whether a parameter can stand in its line: what applications wish comes from outside.
    private static func isPrintable(_ parameter: FormatParameter) -> Bool {
        let isPlain = { (byte: UInt8) in
            (0x21...0x7E).contains(byte) && byte != UInt8(ascii: ";") && byte != UInt8(ascii: "=")
        }
        return parameter.key.utf8.count <= 64 && parameter.value.utf8.count <= 256
            && !parameter.key.isEmpty && !parameter.value.isEmpty
            && parameter.key.utf8.allSatisfy(isPlain) && parameter.value.utf8.allSatisfy(isPlain)
    }
}
