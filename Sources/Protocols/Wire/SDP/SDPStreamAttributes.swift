/// The direction of a stream in a simulcast or rid line, as seen by the author of the description.
public enum StreamDirection: String, Hashable, Sendable {
    case send, recv
    public var reversed: Self { self == .send ? .recv : .send }
}

/// `a=rid:<id> <direction> [pt=…;restriction=…]` (RFC 8851 §4).
public struct RIDAttribute: Hashable, Sendable {
    public var rid: RID
    public var direction: StreamDirection
    /// From `pt=`; empty for all payload types of the section.
    public var payloadTypes: [PayloadType]
    /// Restrictions other than `pt`, as text.
    public var restrictions: [String]

    public init(
        rid: RID,
        direction: StreamDirection,
        payloadTypes: [PayloadType] = [],
        restrictions: [String] = []
    ) {
        self.rid = rid
        self.direction = direction
        self.payloadTypes = payloadTypes
        self.restrictions = restrictions
    }

    /// From the attribute's value; `nil` when it is malformed.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 2)
        guard fields.count >= 2, let rid = RID(fields[0]), let direction = StreamDirection(rawValue: String(fields[1]))
        else { return nil }
        self.init(rid: rid, direction: direction)
        guard fields.count == 3 else { return }
        for part in fields[2].parts(separatedBy: ";", maxSplits: 16) {
            let trimmed = part.trimmingSpaces
            if trimmed.hasPrefix("pt=") {
                for text in trimmed.dropFirst(3).parts(separatedBy: ",", maxSplits: SDPLimits.formatsMax) {
                    guard let payloadType = UInt8(text).flatMap(PayloadType.init(rawValue:)) else { return nil }
                    payloadTypes.append(payloadType)
                }
            } else if !trimmed.isEmpty {
                restrictions.append(String(trimmed))
            }
        }
    }

    /// The attribute's value.
    public var text: String {
        let types = payloadTypes.isEmpty ? [] : ["pt=" + payloadTypes.map(\.description).joined(separator: ",")]
        let tail = (types + restrictions).joined(separator: ";")
        return "\(rid) \(direction.rawValue)" + (tail.isEmpty ? "" : " \(tail)")
    }
}

/// `a=simulcast:send <list> recv <list>` (RFC 8853 §5.1). A list has streams, and a stream has alternatives.
public struct SimulcastAttribute: Hashable, Sendable {
    /// The most streams of one direction; more are malformed. Browsers send three.
    public static let streamsMax = 8

    /// One alternative of a stream.
    public struct Version: Hashable, Sendable {
        public var rid: RID
        /// `~rid`: initially paused.
        public var isPaused: Bool
        public init(rid: RID, isPaused: Bool = false) {
            self.rid = rid
            self.isPaused = isPaused
        }
    }
    public var send: [[Version]]
    public var receive: [[Version]]

    public init(send: [[Version]] = [], receive: [[Version]] = []) {
        self.send = send
        self.receive = receive
    }

    /// From the attribute's value; `nil` when it is malformed or has more than ``streamsMax`` streams.
    public init?(_ value: String) {
        self.init()
        let fields = value.parts(separatedBy: " ", maxSplits: 4)
        guard fields.count == 2 || fields.count == 4 else { return nil }
        for index in stride(from: 0, to: fields.count, by: 2) {
            guard let streams = Self.streams(fields[index + 1]) else { return nil }
            switch fields[index] {
            case "send" where send.isEmpty: send = streams
            case "recv" where receive.isEmpty: receive = streams
            default: return nil
            }
        }
    }

    private static func streams(_ list: Substring) -> [[Version]]? {
        let parts = list.parts(separatedBy: ";", maxSplits: streamsMax)
        guard !parts.isEmpty, parts.count <= streamsMax else { return nil }
        var streams: [[Version]] = []
        for part in parts {
            let names = part.parts(separatedBy: ",", maxSplits: streamsMax)
            guard !names.isEmpty, names.count <= streamsMax else { return nil }
            var versions: [Version] = []
            for name in names {
                let isPaused = name.first == "~"
                guard let rid = RID(isPaused ? name.dropFirst() : name) else { return nil }
                versions.append(Version(rid: rid, isPaused: isPaused))
            }
            streams.append(versions)
        }
        return streams
    }

    /// The attribute's value.
    public var text: String {
        let list = { (streams: [[Version]]) in
            streams.map { $0.map { ($0.isPaused ? "~" : "") + $0.rid.value }.joined(separator: ",") }
                .joined(separator: ";")
        }
        var parts: [String] = []
        if !send.isEmpty { parts.append("send \(list(send))") }
        if !receive.isEmpty { parts.append("recv \(list(receive))") }
        return parts.joined(separator: " ")
    }
}

/// `a=ssrc:<ssrc> <name>[:<value>]` (RFC 5576 §4.1).
public struct SSRCAttribute: Hashable, Sendable {
    public var ssrc: SSRC
    public var name: String
    public var value: String?

    public init(ssrc: SSRC, name: String, value: String? = nil) {
        self.ssrc = ssrc
        self.name = name
        self.value = value
    }

    /// From the attribute's value; `nil` when it is malformed. An SSRC without an attribute, as some senders write it,
    /// has an empty name.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 1)
        guard let first = fields.first, let number = UInt32(first) else { return nil }
        let rest = fields.count == 2 ? fields[1] : ""
        guard let (name, value) = rest.divided(at: ":") else {
            self.init(ssrc: SSRC(rawValue: number), name: String(rest))
            return
        }
        guard !name.isEmpty else { return nil }
        self.init(ssrc: SSRC(rawValue: number), name: String(name), value: String(value))
    }

    /// The attribute's value.
    public var text: String {
        "\(ssrc)" + (name.isEmpty ? "" : " \(name)") + (value.map { ":\($0)" } ?? "")
    }
}

/// `a=ssrc-group:<semantics> <ssrc> …` (RFC 5576 §4.2).
public struct SSRCGroupAttribute: Hashable, Sendable {
    /// The most sources of one group; more are malformed.
    public static let sourcesMax = 32

    /// Such as `FID` for a source and its RTX stream, or `SIM` for simulcast layers.
    public var semantics: String
    public var ssrcs: [SSRC]

    public init(semantics: String, ssrcs: [SSRC]) {
        self.semantics = semantics
        self.ssrcs = ssrcs
    }

    /// From the attribute's value; `nil` when it is malformed.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: Self.sourcesMax + 1)
        guard fields.count >= 2, fields.count <= Self.sourcesMax + 1 else { return nil }
        semantics = String(fields[0])
        ssrcs = []
        for field in fields.dropFirst() {
            guard let number = UInt32(field) else { return nil }
            ssrcs.append(SSRC(rawValue: number))
        }
    }

    /// The attribute's value.
    public var text: String { "\(semantics) \(ssrcs.map(\.description).joined(separator: " "))" }
}

/// `a=group:<semantics> <mid> …` (RFC 5888 §5).
public struct GroupAttribute: Hashable, Sendable {
    /// Such as `BUNDLE`.
    public var semantics: String
    /// At most `SDPLimits.mediaSectionsMax`.
    public var mids: [MID]

    public init(semantics: String, mids: [MID]) {
        self.semantics = semantics
        self.mids = mids
    }

    /// From the attribute's value; `nil` when it is malformed or has more than `SDPLimits.mediaSectionsMax` entries.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: SDPLimits.mediaSectionsMax + 1)
        guard let first = fields.first, fields.count <= SDPLimits.mediaSectionsMax + 1 else { return nil }
        semantics = String(first)
        mids = []
        for field in fields.dropFirst() {
            guard let mid = MID(field) else { return nil }
            mids.append(mid)
        }
    }

    /// The attribute's value.
    public var text: String { ([semantics] + mids.map(\.value)).joined(separator: " ") }
}

extension Fingerprint {
    /// From the value of `a=fingerprint`: algorithm, space, hexadecimal pairs in either case, separated by colons.
    /// `nil` when it is malformed or the algorithm is not supported, such as SHA-1.
    public init?(attribute value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 2)
        guard fields.count == 2, let algorithm = Algorithm(rawValue: fields[0].lowercased()),
            fields[1].utf8.count == algorithm.byteCount * 3 - 1
        else { return nil }
        var digest: [UInt8] = []
        for pair in fields[1].utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false) {
            guard pair.count == 2, pair.allSatisfy(isAlphanumeric), let byte = UInt8(Substring(pair), radix: 16) else {
                return nil
            }
            digest.append(byte)
        }
        self.init(algorithm: algorithm, digest: digest)
    }
}
