package import Base
package import Forwarding
package import MediaTypes
package import Wire

/// Takes a track that a gateway loop subscribed to. All calls come on the gateway's loop.
package protocol TrackSinkReceiver: AnyObject {
    /// A packet of the track: each once, in order of arrival. One that was lost and repaired comes late.
    /// - Parameters:
    ///   - packet: its stream, its extended sequence number, and whether the stream is the one that was chosen.
    ///   - description: what its media loop's parse found.
    ///   - bytes: the whole RTP packet, valid during the call only.
    func received(_ packet: SinkPacket, _ description: PacketDescription, _ bytes: RawSpan, at now: Instant)

    /// What a sender report of the publisher said of a stream.
    func received(_ anchor: SinkClockAnchor)

    /// The publisher, or its media loop, has left: nothing comes any more. It is called at most once.
    func ended()
}

/// What a sink learns of a packet beside its bytes.
package struct SinkPacket: Sendable {
    /// The number of the packet's stream, such as a simulcast layer; never 0.
    package let stream: UInt64
    /// The stream's index among the track's rids; 255 without simulcast.
    package let layer: UInt8
    /// Whether the stream is at present the one that the sink's choice names.
    package let isChosen: Bool
    /// The packet's sequence number, extended by the media loop.
    package let sequence: ExtendedSequenceNumber
}

/// A sender report's clock (RFC 3550 §6.4.1).
package struct SinkClockAnchor: Sendable {
    /// The number of the stream.
    package let stream: UInt64
    /// The publisher's time in nanoseconds since 1900.
    package let senderNanoseconds: Int64
    /// The stream's RTP timestamp at that time.
    package let timestamp: RTPTimestamp
}

/// A gateway loop's subscription to one track. It belongs to its ``TrackExchange``.
package final class TrackSink {
    package let track: TrackID
    let relay: MirrorID
    let link: LoopLink
    /// What the track carries: codecs, extensions and simulcast layers.
    package let parameters: ReceiveTrackParameters
    private let receiver: any TrackSinkReceiver
    private let choice: LayerChoice
    /// The layer that plays although it may not be the chosen one any more: it is sent until the next one has begun.
    private var layers: LayerSet = []
    private(set) var hasEnded = false

    init(
        _ track: MirroredTrack,
        as relay: MirrorID,
        over link: LoopLink,
        choosing choice: LayerChoice,
        receiver: any TrackSinkReceiver
    ) {
        self.track = track.id
        parameters = track.parameters
        self.relay = relay
        self.link = link
        self.choice = choice
        self.receiver = receiver
    }

    /// Tells the track's loop what is needed. Repeated once a second, because it may find no room in the ring.
    func subscribe() {
        let subscription = TransferMessage.Subscription(
            relay: relay,
            choices: choice.bits,
            layers: layers,
            wanted: choice.layersUpTo
        )
        _ = link.send(TransferRecord(.subscribe(subscription)), RawSpan())
    }

    /// A layer plays from now on. The one that the choice names comes beside it, until its key frame is there.
    /// - Parameter layer: the place among the track's rids, of ``SinkPacket/layer``; `nil` for none.
    package func notePlaying(_ layer: UInt8?) {
        let playing = layer.map { LayerSet(layer: $0) } ?? []
        guard playing != layers else { return }
        layers = playing
        subscribe()
    }

    /// Asks the publisher for a key frame of one stream, or of the chosen one. The media loop spaces such requests.
    package func requestKeyFrame(of stream: UInt64? = nil) {
        _ = link.send(TransferRecord(.keyFrameRequest(relay, stream: stream)), RawSpan())
    }

    func receive(_ packet: TransferMessage.Packet, _ description: PacketDescription, _ bytes: RawSpan, at now: Instant)
    {
        let seen = SinkPacket(
            stream: packet.stream,
            layer: packet.layer,
            isChosen: packet.choices & choice.bits != 0,
            sequence: packet.sequence
        )
        receiver.received(seen, description, bytes, at: now)
    }

    func receive(_ clock: TransferMessage.Clock) {
        receiver.received(
            SinkClockAnchor(
                stream: clock.stream,
                senderNanoseconds: clock.senderNanoseconds,
                timestamp: clock.timestamp
            )
        )
    }

    func end() {
        guard !hasEnded else { return }
        hasEnded = true
        receiver.ended()
    }
}
