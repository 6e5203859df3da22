import Base
public import MediaTypes
public import Wire

/// The session description of a connection in which the server makes all offers (RFC 9429), as Sora signaling does.
///
/// The server makes a new offer whenever remote streams join or leave, and the client answers it. An m-line keeps its
/// position: the client's own tracks come first, then one m-line for each track of each remote stream. When a track ends,
/// its m-line is offered with port 0, and a later track may reuse it with another MID.
///
/// This is a value without I/O. The owner decides which streams to offer, and when.
public struct OfferedDescription: Sendable {
    /// A simulcast layer of the client's video.
    public struct Layer: Hashable, Sendable {
        public var rid: RID
        /// Whether the client starts with the layer active.
        public var isActive: Bool

        public init(rid: RID, isActive: Bool = true) {
            self.rid = rid
            self.isActive = isActive
        }
    }

    /// The media that the client sends. Without audio and video it only receives.
    public struct ClientMedia: Hashable, Sendable {
        public var audio: CodecParameters?
        public var video: CodecParameters?
        /// Simulcast layers of the video, lowest first; empty without simulcast. At most eight, each once.
        public var layers: [Layer]
        /// The maximum bit rate of audio; `nil` for no limit.
        public var audioKbps: Int?
        /// The maximum bit rate of all video layers together; `nil` for no limit.
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

    /// A track that another participant publishes.
    public struct RemoteTrack: Hashable, Sendable {
        public var kind: MediaKind
        /// The MID at the publisher, which identifies the track within its stream.
        public var mid: MID
        /// The formats that the publisher may send; their payload types have no meaning.
        public var formats: [CodecParameters]

        public init(kind: MediaKind, mid: MID, formats: [CodecParameters]) {
            self.kind = kind
            self.mid = mid
            self.formats = formats
        }
    }

    /// The tracks of another participant.
    public struct RemoteStream: Hashable, Sendable {
        /// The MediaStream identifier in `a=msid`: the sender's connection ID, which clients rely on.
        public var id: String
        public var tracks: [RemoteTrack]

        public init(id: String, tracks: [RemoteTrack]) {
            self.id = id
            self.tracks = tracks
        }
    }

    /// A slot for a track that the client accepted.
    public struct NegotiatedSlot: Hashable, Sendable {
        /// The remote stream's `id`.
        public let streamID: String
        /// The track's MID at the publisher.
        public let track: MID
        public let parameters: SendTrackParameters
    }

    /// The changes of an applied answer.
    public struct Outcome: Hashable, Sendable {
        /// The client's side of the transport, from the first answer. Later answers must agree.
        public let remote: RemoteTransport
        /// The tracks that the client sends, from its first answer.
        public let receive: [ReceiveTrackParameters]
        public let added: [NegotiatedSlot]
        /// The MIDs of slots whose track ended or that the client now declines. They are not reused.
        public let removed: [MID]
        /// Tracks whose codecs the client does not support. Not those of m-lines that it answers `inactive`: it declines
        /// these tracks.
        public let unsupported: [UnsupportedTrack]
        /// The data channels, from the first answer; `nil` when they were not offered, or the client declines them.
        public let data: DataTransportParameters?
    }

    /// The m-line of data channels. It never moves, and stays open.
    struct DataLine: Hashable, Sendable {
        /// Its place among all m-lines.
        let index: Int
        let mid: MID
    }

    /// The maximum number of m-lines: the client's own, and audio and video of 127 senders. Further streams wait for a free
    /// m-line.
    public static let sectionsMax = SDPLimits.mediaSectionsMax

    /// The maximum number of formats of a track, besides RED: browsers publish a dozen, and an answer repeats each of them
    /// for each sender. The publisher's preferred formats come first.
    static let formatsPerTrackMax = 4

    let local: LocalTransport
    let clientMedia: ClientMedia
    let receivesMedia: Bool
    /// The kinds of media that the client receives.
    let kinds: Set<MediaKind>
    let sessionID: UInt64
    var payloadTypes: PayloadTypeTable
    /// With the payload types of this connection.
    let clientCodecs: [MediaKind: CodecParameters]
    /// The format of an m-line without a track.
    let placeholderCodecs: [MediaKind: CodecParameters]
    /// The m-lines of media.
    var sections: [OfferedSection] = []
    /// `nil` when no data channels are offered.
    private(set) var dataLine: DataLine?
    var data: DataTransportParameters?
    var mids: MIDGenerator
    var sources: SSRCSequence
    var version: UInt64 = 0
    /// Tracks without a format that the server can offer.
    var withoutFormats: Set<OfferedSection.TrackKey> = []
    /// The client's layers that the next offer asks it to pause, besides those that it starts inactive.
    public private(set) var pausedLayers: Set<RID> = []
    /// Slots whose m-line is closed in the outstanding offer.
    var closed: [MID] = []
    var remote: RemoteTransport?
    var receive: [ReceiveTrackParameters] = []

    /// The number of m-lines serialized and parsed so far. Unchanged m-lines are neither serialized nor parsed again.
    var work = (described: 0, read: 0)

    /// Whether an offer is not answered yet.
    public internal(set) var isOfferOutstanding = false

    /// - Parameters:
    ///   - local: The server's side of the transport.
    ///   - clientMedia: The media that the client sends. A format that the server cannot offer is replaced by the codec's
    ///     default one.
    ///   - receivesMedia: Whether the client receives remote streams.
    ///   - kinds: The kinds of media that it receives.
    ///   - offersData: Whether to offer data channels.
    ///   - generator: Chooses names and the session identifier of the `o=` line.
    public init(
        local: LocalTransport,
        clientMedia: ClientMedia,
        receivesMedia: Bool,
        kinds: Set<MediaKind> = [.audio, .video],
        offersData: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) {
        let rids = clientMedia.layers.map(\.rid)
        precondition(rids.count <= SimulcastAttribute.streamsMax && Set(rids).count == rids.count, "rids are distinct")
        self.local = local
        self.clientMedia = clientMedia
        self.receivesMedia = receivesMedia && !kinds.isEmpty
        self.kinds = kinds
        sessionID = UInt64.random(in: 1...UInt64.max, using: &generator)
        mids = MIDGenerator(using: &generator)
        sources = SSRCSequence(using: &generator)
        var table = PayloadTypeTable()
        var clientCodecs: [MediaKind: CodecParameters] = [:]
        var placeholderCodecs: [MediaKind: CodecParameters] = [:]
        for (kind, requested) in [(MediaKind.audio, clientMedia.audio), (.video, clientMedia.video)] {
            if let requested, requested.name.kind == kind {
                clientCodecs[kind] = table.number(requested) ?? table.number(.offered(requested.name))
            }
            placeholderCodecs[kind] = clientCodecs[kind] ?? table.number(.offered(kind == .audio ? .opus : .vp8))
        }
        payloadTypes = table
        self.clientCodecs = clientCodecs
        self.placeholderCodecs = placeholderCodecs
        for kind in MediaKind.allCases where clientCodecs[kind] != nil {
            sections.append(OfferedSection(kind: kind, mid: mids.next(kind), use: .sentByClient(isRefused: false)))
        }
        // A transport needs at least one m-line. The first remote tracks use these.
        if sections.isEmpty, !(offersData && kinds.isEmpty) {
            for kind in MediaKind.allCases where kinds.contains(kind) || kinds.isEmpty {
                sections.append(OfferedSection(kind: kind, mid: mids.next(kind), use: .empty))
            }
        }
        if offersData { dataLine = DataLine(index: sections.count, mid: mids.next("data")) }
    }

    /// The place of a section of media among all m-lines.
    func line(of index: Int) -> Int {
        guard let dataLine, index >= dataLine.index else { return index }
        return index + 1
    }

    /// The BUNDLE group: the tagged m-line first.
    var bundle: [MID] {
        var mids = sections.filter { !$0.isClosed }.map(\.mid)
        if let dataLine { mids.insert(dataLine.mid, at: mids.isEmpty ? 0 : 1) }
        return mids
    }

    /// Asks the client in the next offer to pause these simulcast layers (`~` in `a=simulcast`, RFC 8853 §5.2) and to send all
    /// others. libwebrtc sets the encodings' `active` by it; Firefox ignores it.
    ///
    /// - Precondition: No offer is outstanding.
    /// - Returns: Whether that changes the offer. Layers that the client does not have do not.
    public mutating func pauseLayers(_ rids: Set<RID>) -> Bool {
        precondition(!isOfferOutstanding, "an outstanding offer does not change")
        let paused = rids.intersection(clientMedia.layers.filter(\.isActive).map(\.rid))
        guard paused != pausedLayers else { return false }
        pausedLayers = paused
        for index in sections.indices where sections[index].kind == .video {
            if case .sentByClient(isRefused: false) = sections[index].use { sections[index].text = nil }
        }
        return true
    }

    /// The BUNDLE-tagged m-line, whose transport carries all others: the first one in use (RFC 9143 §7.2).
    var head: Int { sections.firstIndex { !$0.isClosed } ?? sections.endIndex }

    /// The m-lines that the client sends in; `nil` for a kind that it does not send.
    public var clientMIDs: (audio: MID?, video: MID?) {
        let mid = { (kind: MediaKind) in
            sections.first { section in
                if case .sentByClient = section.use { section.kind == kind } else { false }
            }?.mid
        }
        return (mid(.audio), mid(.video))
    }
}
