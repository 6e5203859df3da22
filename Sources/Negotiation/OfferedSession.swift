public import MediaTypes
public import Wire

/// The m-lines of a session that the server describes, from its first offer to its last (RFC 9429).
///
/// The server offers, the client answers, and with every sender that comes or goes the same again. A line keeps its place
/// for the session's life: what the client sends comes first, then a line for each track of each remote stream. A line
/// whose sender left is offered with port 0, and may then be given to another track under another name.
///
/// A pure value: it knows nothing of who the senders are, nor when to offer.
public struct OfferedSession: Sendable {
    /// A simulcast layer that the client may send.
    public struct Layer: Hashable, Sendable {
        public var rid: RID
        /// Whether it is to be sent from the beginning.
        public var isActive: Bool

        public init(rid: RID, isActive: Bool = true) {
            self.rid = rid
            self.isActive = isActive
        }
    }

    /// What the client sends. Without either kind it only receives.
    public struct Own: Hashable, Sendable {
        public var audio: CodecParameters?
        public var video: CodecParameters?
        /// Simulcast layers of the video, lowest first; empty without simulcast. At most eight, each once.
        public var layers: [Layer]
        /// The most that the audio may take; `nil` for no limit.
        public var audioKbps: Int?
        /// The most that the video may take, all layers together; `nil` for no limit.
        public var videoKbps: Int?

        public init(
            audio: CodecParameters? = nil,
            video: CodecParameters? = nil,
            layers: [Layer] = [],
            audioKbps: Int? = nil,
            videoKbps: Int? = nil
        ) {
            self.audio = audio
            self.video = video
            self.layers = layers
            self.audioKbps = audioKbps
            self.videoKbps = videoKbps
        }
    }

    /// A track that somebody else publishes.
    public struct RemoteTrack: Hashable, Sendable {
        public var kind: MediaKind
        /// The publisher's, which tells its tracks apart.
        public var mid: MID
        /// What the publisher may send; payload types are of no meaning.
        public var formats: [CodecParameters]

        public init(kind: MediaKind, mid: MID, formats: [CodecParameters]) {
            self.kind = kind
            self.mid = mid
            self.formats = formats
        }
    }

    /// What somebody else sends.
    public struct RemoteStream: Hashable, Sendable {
        /// The stream's name in `a=msid`, by which clients know whose it is: the sender's connection.
        public var id: String
        public var tracks: [RemoteTrack]

        public init(id: String, tracks: [RemoteTrack]) {
            self.id = id
            self.tracks = tracks
        }
    }

    /// A slot that came of a line which the client accepted.
    public struct NegotiatedSlot: Hashable, Sendable {
        /// The remote stream's `id`.
        public let streamID: String
        /// The publisher's name of the track.
        public let track: MID
        public let parameters: SendTrackParameters
    }

    /// What came of an answer.
    public struct Outcome: Hashable, Sendable {
        /// Of the first answer; the later ones agree with it.
        public let remote: RemoteTransport
        /// What the client sends, as its first answer had it.
        public let receive: [ReceiveTrackParameters]
        public let added: [NegotiatedSlot]
        /// Slots whose sender left, or that the client refuses from now on. Their names are not used again.
        public let removed: [MID]
        /// Tracks that this answer refuses for their codec. A line that is answered `inactive` is not among them: there the
        /// client does not want the track.
        public let unsupported: [UnsupportedTrack]
    }

    /// Lines in a session: the own ones and 127 senders' audio and video. Streams beyond are left out until there is room.
    public static let sectionsMax = SDPLimits.mediaSectionsMax

    /// Formats of a track in its line, the publisher's preferred ones, and redundant audio: browsers publish with a dozen,
    /// and an answer repeats every one of them for each sender.
    static let formatsPerTrackMax = 4

    let local: LocalTransport
    let own: Own
    let receivesMedia: Bool
    /// What it receives of others.
    let kinds: Set<MediaKind>
    let sessionID: UInt64
    var payloadTypes: PayloadTypeTable
    /// With the session's payload types.
    let ownCodecs: [MediaKind: CodecParameters]
    /// What a line says that nobody sends in.
    let emptyCodecs: [MediaKind: CodecParameters]
    var sections: [OfferedSection] = []
    var mids: MIDMaker
    var sources: SSRCSequence
    var version: UInt64 = 0
    /// Tracks that the server can offer no format of.
    var withoutFormats: Set<OfferedSection.TrackKey> = []
    /// Slots whose line was closed in the offer that waits for an answer.
    var closed: [MID] = []
    var remote: RemoteTransport?
    var receive: [ReceiveTrackParameters] = []

    /// The lines that were described, and the lines of answers that were read, since the session began. What did not change
    /// is neither described nor read again.
    var work = (described: 0, read: 0)

    /// Whether an offer waits for its answer.
    public internal(set) var isOfferOutstanding = false

    /// - Parameters:
    ///   - local: The server's side of the transport.
    ///   - own: What the client sends. A format that the server cannot offer is replaced by the codec's usual one.
    ///   - receivesMedia: Whether the client receives what others send; otherwise remote streams are left out.
    ///   - kinds: What it receives of them; tracks of another kind are left out.
    ///   - generator: Chooses names and the session's identifier.
    public init(
        local: LocalTransport,
        own: Own,
        receivesMedia: Bool,
        kinds: Set<MediaKind> = [.audio, .video],
        using generator: inout some RandomNumberGenerator
    ) {
        let rids = own.layers.map(\.rid)
        precondition(rids.count <= SimulcastAttribute.streamsMax && Set(rids).count == rids.count, "rids are distinct")
        self.local = local
        self.own = own
        self.receivesMedia = receivesMedia && !kinds.isEmpty
        self.kinds = kinds
        sessionID = UInt64.random(in: 1...UInt64.max, using: &generator)
        mids = MIDMaker(using: &generator)
        sources = SSRCSequence(using: &generator)
        var table = PayloadTypeTable()
        var ownCodecs: [MediaKind: CodecParameters] = [:]
        var emptyCodecs: [MediaKind: CodecParameters] = [:]
        for (kind, wished) in [(MediaKind.audio, own.audio), (.video, own.video)] {
            if let wished, wished.name.kind == kind {
                ownCodecs[kind] = table.number(wished) ?? table.number(.offered(wished.name))
            }
            emptyCodecs[kind] = ownCodecs[kind] ?? table.number(.offered(kind == .audio ? .opus : .vp8))
        }
        payloadTypes = table
        self.ownCodecs = ownCodecs
        self.emptyCodecs = emptyCodecs
        for kind in MediaKind.allCases where ownCodecs[kind] != nil {
            sections.append(OfferedSection(kind: kind, mid: mids.next(kind), use: .own(isRefused: false)))
        }
        guard sections.isEmpty else { return }
        // Without any line there would be no transport. The first sender takes these.
        for kind in MediaKind.allCases where kinds.contains(kind) || kinds.isEmpty {
            sections.append(OfferedSection(kind: kind, mid: mids.next(kind), use: .empty))
        }
    }

    /// The line whose transport carries all others: the first one in use (RFC 9143 §7.2).
    var head: Int { sections.firstIndex { !$0.isClosed } ?? sections.endIndex }

    /// The lines that the client sends in; `nil` for what it does not send.
    public var ownMIDs: (audio: MID?, video: MID?) {
        let mid = { (kind: MediaKind) in
            sections.first { section in
                if case .own = section.use { section.kind == kind } else { false }
            }?.mid
        }
        return (mid(.audio), mid(.video))
    }
}
