public import MediaTypes
import Wire

/// Names one loop among a node's.
public struct LoopIndex: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// Names the mirror of a track on the loop that plays it; made there, and never used again soon.
public struct RelayID: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The mirror's place in the low half, how often the place was used before in the high half.
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    init(place: Int, generation: UInt16) {
        rawValue = UInt32(generation) << 16 | UInt32(truncatingIfNeeded: place & 0xFFFF)
    }
    var place: Int { Int(rawValue & 0xFFFF) }
    var generation: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 16) }
}

/// What a mirror needs to know of the track that it stands for.
public struct RelayedTrack: Sendable {
    public let id: TrackID
    public let parameters: ReceiveTrackParameters
}

/// One message from loop to loop, of fixed size; the bytes of a packet or of a layer table go beside it.
///
/// Each may get lost when the link has no room: a packet says of itself which stream it is of and which layer choices
/// that answers, clocks are told again with every sender report, key frames are asked for again while none comes, a
/// mirror repeats which layers it needs, and an unsubscription is repeated as long as packets come.
public struct RelayRecord: BitwiseCopyable, Sendable {
    enum Kind: UInt8, BitwiseCopyable {
        case packet, clock, layers, keyFrameRequest, repairRequest, hold, wish, unsubscribe
    }
    let kind: Kind
    let relay: RelayID
    /// The origin's number of the stream; of a key frame request 0 for all that the mirror plays.
    var streamID: UInt64 = 0
    var ssrc = SSRC(rawValue: 0)
    /// The stream's place among the track's layers; 255 without layers.
    var layer: UInt8 = .max
    /// Of a packet the layer choices that its stream answers, of a wish those that slots of the mirror made.
    var choices: LayerChoices = []
    /// Of a packet: the choices whose stream is what they name.
    var exact: LayerChoices = []
    /// Of a wish: layers that still play there, though they are not chosen any more.
    var layers: LayerSet = []
    var description = PacketDescription.none
    /// Of a clock record: the sender's time in nanoseconds since 1900, and the RTP timestamp at it.
    var senderNanoseconds: Int64 = 0
    var timestamp = RTPTimestamp(rawValue: 0)
    /// Our clock minus the sender's, in nanoseconds.
    var clockOffset: Int64 = 0

    /// Whether the record is not a packet, and so may use the room that a link keeps for such.
    public var isControl: Bool { kind != .packet }

    init(_ kind: Kind, _ relay: RelayID) {
        self.kind = kind
        self.relay = relay
    }
}

extension PacketDescription {
    static var none: Self {
        Self(
            sequence: ExtendedSequenceNumber(rawValue: 0),
            timestamp: RTPTimestamp(rawValue: 0),
            payloadType: PayloadType(wire: 0),
            marker: false,
            payloadOffset: 0,
            payloadLength: 0,
            receivedAt: Instant(nanoseconds: 0)
        )
    }
}

/// The way to another loop: a queue with a limit, which never waits. A class to derive from, so that a packet finds it
/// without counting references.
open class RelayLink {
    public init() {}

    /// Queues one record and a copy of its bytes, of which only a packet has any.
    /// - Returns: `false` when there is no room, which the link counts.
    open func send(_ record: RelayRecord, _ bytes: RawSpan) -> Bool { false }

    /// What was queued is all for now: the other loop may begin with it. Called once for each fan-out that sent something.
    open func flush() {}
}

/// One other loop that plays a track.
struct RelayExport {
    let relay: RelayID
    let loop: LoopIndex
    let link: Unretained<RelayLink>
    /// What the mirror needs; all until it says.
    var choices = LayerChoices.all
    /// Layers that still play there, by what the mirror said last and by what was the answer to a choice since then.
    var layers: LayerSet = []
}

/// A set of simulcast layers, by their places among the track's rids; all those beyond the last bit are one.
struct LayerSet: OptionSet, BitwiseCopyable, Sendable {
    let rawValue: UInt8
    init(rawValue: UInt8) { self.rawValue = rawValue }
    init(layer: UInt8) { rawValue = 1 << min(layer, 7) }
}

/// Where a mirror's track comes from.
package final class RelayOrigin {
    let relay: RelayID
    let loop: LoopIndex
    /// `nil` when the loop cannot be told anything, which then plays on until it learns it by itself.
    let link: RelayLink?
    let createdAt: Instant
    private var askedAllAt: Instant?
    /// What the origin was last told that the mirror needs, and when all of it was last looked at.
    private var told: (choices: LayerChoices, layers: LayerSet)?
    private var refreshedAt: Instant
    /// Requests closer than this are for one need: the origin spaces them further.
    static let requestSpacing = Interval.milliseconds(100)
    /// How often the origin is told anew, for it may not have heard.
    private static let refreshInterval = Interval.seconds(1)

    init(relay: RelayID, loop: LoopIndex, link: RelayLink?, at now: Instant) {
        self.relay = relay
        self.loop = loop
        self.link = link
        createdAt = now
        refreshedAt = now
    }

    /// Asks the origin for a key frame of one of its streams.
    /// - Returns: `false` when the link had no room.
    func requestKeyFrame(of stream: UInt64) -> Bool {
        var record = RelayRecord(.keyFrameRequest, relay)
        record.streamID = stream
        return send(record)
    }

    /// Asks the origin for a key frame of one of its streams, for somebody who played it already.
    func requestRepair(of stream: UInt64) {
        var record = RelayRecord(.repairRequest, relay)
        record.streamID = stream
        _ = send(record)
    }

    /// Asks the origin for a key frame of everything that the mirror plays, while what a slot is to play is not known.
    func requestKeyFrames(at now: Instant) {
        if let askedAllAt, now - askedAllAt < Self.requestSpacing { return }
        if requestKeyFrame(of: 0) { askedAllAt = now }
    }

    /// Tells the origin to leave a stream out for a while, as this loop is overloaded.
    func requestHold(of stream: UInt64) {
        var record = RelayRecord(.hold, relay)
        record.streamID = stream
        _ = send(record)
    }

    /// Tells the origin which layers the mirror needs, if that is more or other than what it was told last. A layer that
    /// ceased to play counts until the next refresh.
    func tellWish(of mirror: ReceivedTrack) {
        let (choices, layers) = (mirror.choices, mirror.playingLayers)
        guard told?.choices != choices || !layers.subtracting(told?.layers ?? []).isEmpty else { return }
        tell(choices, layers)
    }

    /// Tells it again once a second. It may be called at any time.
    func refreshWish(of mirror: ReceivedTrack, at now: Instant) {
        guard now - refreshedAt >= Self.refreshInterval else { return }
        refreshedAt = now
        tell(mirror.choices, mirror.playingLayers)
    }

    private func tell(_ choices: LayerChoices, _ layers: LayerSet) {
        var record = RelayRecord(.wish, relay)
        record.choices = choices
        record.layers = layers
        if send(record) { told = (choices, layers) }
    }

    func unsubscribe() { _ = send(RelayRecord(.unsubscribe, relay)) }

    private func send(_ record: RelayRecord) -> Bool { link?.send(record, RawSpan()) ?? false }
}
