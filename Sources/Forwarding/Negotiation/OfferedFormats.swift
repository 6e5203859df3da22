public import MediaTypes
public import Wire

extension CodecParameters {
    /// A format as the server offers it. Its payload type has no meaning: `OfferedDescription` assigns payload types.
    ///
    /// - Parameters:
    ///   - name: The codec.
    ///   - format: The `a=fmtp` parameters; `nil` for the codec's default ones.
    public static func offered(_ name: CodecName, format: [FormatParameter]? = nil) -> Self {
        var codec = standard(name)
        if let format { codec.format = format }
        return codec
    }

    /// Whether the server can offer the format: decoders for its profile exist.
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

/// The Opus parameters that a client asks for (`a=fmtp`, RFC 7587 §6.1). `nil` omits a parameter or keeps its default.
public struct OpusParameters: Hashable, Sendable {
    /// The maximum playback sampling rate, in Hz.
    public var maxPlaybackRate: Int?
    /// The minimum packet duration in ms; 10 by default.
    public var minimumPacketTime: Int?
    /// The preferred packet duration in ms.
    public var packetTime: Int?
    public var stereo: Bool?
    public var spropStereo: Bool?
    /// In-band forward error correction; on by default.
    public var usesInBandFEC: Bool?
    /// Discontinuous transmission.
    public var usesDTX: Bool?
    /// The maximum average bit rate, in bit/s.
    public var maxAverageBitrate: Int?

    public init() {}

    /// The `a=fmtp` parameters in a fixed order.
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
            ("maxaveragebitrate", maxAverageBitrate.map { String($0) }),
        ]
        return all.compactMap { key, value in value.map { FormatParameter(key: key, value: $0) } }
    }
}

/// The payload types of one connection's descriptions.
///
/// Under BUNDLE a payload type means one format in every section (RFC 9143 §9), with the same parameters and feedback;
/// otherwise libwebrtc refuses the description. It keeps its meaning in all later descriptions (RFC 3264 §8.3.2).
///
/// Payload types cannot run out. Matching formats share one, and there are 27 classes of matching video formats with RTX
/// (VP8, 4 profiles of VP9, 6 of AV1, 4 of H.265, 12 of H.264), Opus and RED: 56 of the 61 dynamic payload types. This
/// requires that `number(_:)` assigns payload types only to formats that match themselves.
struct PayloadTypeTable: Sendable {
    private var formats: [CodecParameters] = []
    private var taken: Set<UInt8> = []

    /// The dynamic payload types (RFC 3551 §6), 96 to 127 first, without those that demultiplex as RTCP.
    private static let numbers = Array(96...127 as ClosedRange<UInt8>) + Array(35...63 as ClosedRange<UInt8>)

    /// The payload types of the first format of a codec and of its RTX, as Sora assigns them.
    private static func preferred(_ name: CodecName) -> (payload: UInt8, rtx: UInt8?) {
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

    /// The format with its payload type in this connection, which is assigned at the first call.
    /// - Returns: `nil` when the server cannot offer the format, or no payload type is left.
    mutating func number(_ format: CodecParameters) -> CodecParameters? {
        if let known = formats.first(where: { matches($0, format) }) { return known }
        guard format.isOfferable || (format.name == .red && isForwardable(format)) else { return nil }
        var numbered = CodecParameters(
            name: format.name,
            payloadType: PayloadType(wire: 0),
            clockRate: format.clockRate,
            channels: format.channels
        )
        // The server never sends REMB: it sends transport-wide feedback instead.
        numbered.feedback = .known(for: format.name.kind).subtracting(.remb)
        if format.name == .red {
            // RED carries Opus blocks under the Opus payload type of this connection.
            guard let opus = formats.first(where: { $0.name == .opus })?.payloadType else { return nil }
            numbered.format = [FormatParameter(key: "", value: "\(opus)/\(opus)")]
        } else {
            numbered.format = format.format.filter(Self.isPrintable)
        }
        // A format that does not match itself would take new payload types at every call.
        guard matches(numbered, format), let numbers = takeNumbers(of: format.name) else { return nil }
        numbered.payloadType = PayloadType(wire: numbers.payload)
        numbered.rtxPayloadType = numbers.rtx.map { PayloadType(wire: $0) }
        formats.append(numbered)
        return numbered
    }

    private mutating func takeNumbers(of name: CodecName) -> (payload: UInt8, rtx: UInt8?)? {
        let preferred = Self.preferred(name)
        if !taken.contains(preferred.payload), preferred.rtx.map({ !taken.contains($0) }) ?? true {
            taken.formUnion([preferred.payload] + [preferred.rtx].compactMap { $0 })
            return preferred
        }
        // The preferred payload types of other codecs stay reserved for them.
        let others = CodecName.allCases.map(Self.preferred)
        let reserved = Set(others.map(\.payload) + others.compactMap(\.rtx))
        let free = Self.numbers.filter { !taken.contains($0) && !reserved.contains($0) }
        let needed = preferred.rtx == nil ? 1 : 2
        guard free.count >= needed else { return nil }
        taken.formUnion(free.prefix(needed))
        return (free[0], needed == 2 ? free[1] : nil)
    }

    /// Whether `a=fmtp` can carry the parameter. Applications choose parameters freely.
    private static func isPrintable(_ parameter: FormatParameter) -> Bool {
        let isPlain = { (byte: UInt8) in
            (0x21...0x7E).contains(byte) && byte != UInt8(ascii: ";") && byte != UInt8(ascii: "=")
        }
        return parameter.key.utf8.count <= 64 && parameter.value.utf8.count <= 256
            && !parameter.key.isEmpty && !parameter.value.isEmpty
            && parameter.key.utf8.allSatisfy(isPlain) && parameter.value.utf8.allSatisfy(isPlain)
    }
}
