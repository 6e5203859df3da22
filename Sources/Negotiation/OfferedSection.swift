import MediaTypes
import Wire

/// One m-line of a session that the server describes, for as long as the session lasts.
struct OfferedSection: Sendable {
    /// What the line is for.
    enum Use: Sendable {
        /// The client sends in it; `isRefused` once it answered with port 0.
        case own(isRefused: Bool)
        /// Nobody had it yet: `inactive`, for the first sender who comes.
        case empty
        /// It plays a track of somebody else.
        case playing(Placement)
        /// The client does not want the track; `isRefused` when it answered with port 0.
        case declined(TrackKey, isRefused: Bool)
        /// Its sender has left, and it heads the bundle, which must not lose its head: `inactive` until the client
        /// refuses it.
        case parked
        /// Its sender has left: port 0, which the client has not answered yet.
        case closing
        /// Port 0 on both sides: the next track may have the line under another name (RFC 9429 §5.2.2), unless the line
        /// would take the place of the bundle's head.
        case free
    }

    /// A track in its line.
    struct Placement: Sendable {
        let key: TrackKey
        /// With the session's payload types.
        let codecs: [CodecParameters]
        let ssrc: SSRC
        let rtxSSRC: SSRC?
        /// One for all tracks of a stream.
        let cname: String
        /// The track's name in `a=msid`.
        let trackID: String
    }

    /// What makes a track the same one: a track of other formats is another.
    struct TrackKey: Hashable, Sendable {
        let streamID: String
        let track: OfferedSession.RemoteTrack

        var name: TrackName { TrackName(streamID: streamID, track: track.mid) }
    }

    /// What tells the tracks of one offer apart.
    struct TrackName: Hashable, Sendable {
        let streamID: String
        let track: MID
    }

    /// The line as it was described last.
    struct Text: Sendable {
        let value: String
        /// Whether it heads the bundle: then it says more.
        let isHead: Bool
    }

    /// What the client answered to the line as it is described.
    struct Answered: Sendable {
        /// Of the answer's text. A collision would only make the client's own change unnoticed.
        let digest: Int
        /// Without what a first reading alone needs.
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
    /// Whether the client has accepted the track that is played, so that there is a slot.
    var hasSlot = false
    /// `nil` when the line has changed since it was described.
    var text: Text? { didSet { answered = nil } }
    /// `nil` when the answer to the line as it is described has to be read.
    var answered: Answered?

    init(kind: MediaKind, mid: MID, use: Use) {
        self.kind = kind
        self.mid = mid
        self.use = use
    }

    /// Whether the line is offered with port 0.
    var isClosed: Bool {
        switch use {
        case .own(let isRefused), .declined(_, let isRefused): isRefused
        case .closing, .free: true
        case .empty, .playing, .parked: false
        }
    }

    /// The track that the line is given to.
    var key: TrackKey? {
        switch use {
        case .playing(let placement): placement.key
        case .declined(let key, _): key
        case .own, .empty, .parked, .closing, .free: nil
        }
    }

    var isVacant: Bool {
        switch use {
        case .empty, .free: true
        default: false
        }
    }
}

/// Makes names of m-lines that never come twice in a session, without remembering them.
struct MIDMaker: Sendable {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    /// Names of six characters: 62⁶.
    private static let period: UInt64 = 56_800_235_584
    /// Has no factor in common with the period (2⁶ · 31⁶), so every name comes once before one comes again.
    private static let step: UInt64 = 35_105_003_461
    private var state: UInt64

    init(using generator: inout some RandomNumberGenerator) {
        state = UInt64.random(in: 0..<Self.period, using: &generator)
    }

    /// Such as `audio_X7d9Qa`.
    mutating func next(_ kind: MediaKind) -> MID {
        state = (state + Self.step) % Self.period
        var rest = state
        var name: [UInt8] = []
        for _ in 0..<6 {
            name.append(Self.alphabet[Int(rest % 62)])
            rest /= 62
        }
        guard let mid = MID("\(kind.rawValue)_\(String(decoding: name, as: UTF8.self))") else {
            preconditionFailure("letters and digits are a token")
        }
        return mid
    }
}

/// A name of 128 random bits in 26 symbols of Crockford's alphabet.
func makeTrackIdentifier(using generator: inout some RandomNumberGenerator) -> String {
    Crockford.text(high: generator.next(), low: generator.next())
}

extension HeaderExtension {
    /// The number in every section of a session that the server describes.
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
            case .rtpStreamID: 10
            case .repairedRTPStreamID: 11
            }
        guard let id = HeaderExtensionID(rawValue: number) else { preconditionFailure("no number is 0") }
        return id
    }

    /// What is offered in a section, in the order of the numbers.
    static func offered(
        _ kind: MediaKind,
        codecs: [CodecParameters],
        hasLayers: Bool
    ) -> [ExtensionMapAttribute] {
        // Scalable streams tell their layers by it.
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
