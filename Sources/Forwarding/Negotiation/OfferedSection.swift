import Base
import MediaTypes
import Wire

/// One m-line of an ``OfferedDescription``.
struct OfferedSection: Sendable {
    /// The current use of the m-line.
    enum Use: Sendable {
        /// The client sends its own track; `isRefused` once it answered with port 0.
        case sentByClient(isRefused: Bool)
        /// Not used yet: `inactive`, for the first remote track.
        case empty
        /// Carries a remote track to the client.
        case playing(Placement)
        /// The client declined the track; `isRefused` when it answered with port 0.
        case declined(TrackKey, isRefused: Bool)
        /// Its track ended, but it is the BUNDLE-tagged section, which must stay: `inactive` until the client rejects it.
        case parked
        /// Its track ended: offered with port 0, not answered yet.
        case closing
        /// Port 0 on both sides: a new track may reuse the m-line with another MID (RFC 9429 §5.2.2), unless the m-line would
        /// become the BUNDLE-tagged section.
        case free
    }

    /// A remote track in its m-line.
    struct Placement: Sendable {
        let key: TrackKey
        /// With the payload types of this connection.
        let codecs: [CodecParameters]
        let ssrc: SSRC
        let rtxSSRC: SSRC?
        /// Shared by all tracks of a stream.
        let cname: String
        /// The track identifier in `a=msid`.
        let trackID: String
    }

    /// Identifies a track. A track whose formats changed is a new track.
    struct TrackKey: Hashable, Sendable {
        let streamID: String
        let track: OfferedDescription.RemoteTrack

        var name: TrackName { TrackName(streamID: streamID, track: track.mid) }
    }

    /// Identifies a track within one offer.
    struct TrackName: Hashable, Sendable {
        let streamID: String
        let track: MID
    }

    /// The m-line as last serialized.
    struct Text: Sendable {
        let value: String
        /// Whether it is the BUNDLE-tagged section, which has more lines.
        let isHead: Bool
    }

    /// The client's answer to the current text of the m-line.
    struct Answered: Sendable {
        /// A hash of the answer's text. After a collision, a change of the client's own answer goes unnoticed; no more.
        let digest: Int
        /// Condensed: without the parts that only the first reading needs.
        let section: RemoteSection
    }

    let kind: MediaKind
    var mid: MID { didSet { text = nil } }
    var use: Use {
        didSet {
            hasSlot = false
            text = nil
        }
    }
    /// Whether the client accepted the track, so that it has a slot.
    var hasSlot = false
    /// `nil` when the m-line changed since it was serialized.
    var text: Text? { didSet { answered = nil } }
    /// `nil` when the next answer to the m-line has to be parsed.
    var answered: Answered?

    init(kind: MediaKind, mid: MID, use: Use) {
        self.kind = kind
        self.mid = mid
        self.use = use
    }

    /// Whether the m-line is offered with port 0.
    var isClosed: Bool {
        switch use {
        case .sentByClient(let isRefused), .declined(_, let isRefused): isRefused
        case .closing, .free: true
        case .empty, .playing, .parked: false
        }
    }

    /// The track that the m-line is assigned to.
    var key: TrackKey? {
        switch use {
        case .playing(let placement): placement.key
        case .declined(let key, _): key
        case .sentByClient, .empty, .parked, .closing, .free: nil
        }
    }

    var isVacant: Bool {
        switch use {
        case .empty, .free: true
        default: false
        }
    }
}

/// Generates MIDs that do not repeat within a connection, without storing them.
struct MIDGenerator: Sendable {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    /// The number of strings of six characters: 62⁶.
    private static let period: UInt64 = 56_800_235_584
    /// Coprime to the period (2⁶ · 31⁶), so that every string occurs once per period.
    private static let step: UInt64 = 35_105_003_461
    private var state: UInt64

    init(using generator: inout some RandomNumberGenerator) {
        state = UInt64.random(in: 0..<Self.period, using: &generator)
    }

    /// For example `audio_X7d9Qa`.
    mutating func next(_ kind: MediaKind) -> MID { next(kind.rawValue) }

    /// - Parameter prefix: a token.
    mutating func next(_ prefix: String) -> MID {
        state = (state + Self.step) % Self.period
        var rest = state
        var name: [UInt8] = []
        for _ in 0..<6 {
            name.append(Self.alphabet[Int(rest % 62)])
            rest /= 62
        }
        guard let mid = MID("\(prefix)_\(String(decoding: name, as: UTF8.self))") else {
            preconditionFailure("letters and digits are a token")
        }
        return mid
    }
}

/// 128 random bits as 26 symbols of Crockford's base32.
func makeTrackIdentifier(using generator: inout some RandomNumberGenerator) -> String {
    Crockford.text(high: generator.next(), low: generator.next())
}

extension HeaderExtension {
    /// The identifier in all offers of the server.
    var offeredID: HeaderExtensionID {
        let number: UInt8 =
            switch self {
            case .audioLevel: 1
            case .absoluteSendTime: 2
            case .videoOrientation: 3
            case .mid: 4
            case .transportSequenceNumber: 5
            case .playoutDelay: 6
            case .dependencyDescriptor: 7
            case .videoContentType: 8
            case .rtpStreamID: 10
            case .repairedRTPStreamID: 11
            }
        guard let id = HeaderExtensionID(rawValue: number) else { preconditionFailure("no number is 0") }
        return id
    }

    /// The extensions to offer in a section, by ascending identifier.
    static func offered(
        _ kind: MediaKind,
        codecs: [CodecParameters],
        hasLayers: Bool
    ) -> [ExtensionMapAttribute] {
        // Only scalable codecs describe their layers with it.
        let describesLayers = codecs.contains { $0.name == .av1 || $0.name == .vp9 }
        let known = hasLayers ? published(kind) : watched(kind)
        return known.filter { line in
            switch line {
            case .dependencyDescriptor: describesLayers
            case .absoluteSendTime: kind == .video
            default: true
            }
        }
        .map { ExtensionMapAttribute(id: $0.offeredID, uri: $0.uri) }
        .sorted { $0.id.rawValue < $1.id.rawValue }
    }
}
