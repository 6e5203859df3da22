import Base
import Wire

/// Where a mirror's packets come from, as the mirror and its slots see it: another loop, of this node or of another one.
///
/// Streams are named by their numbers at the origin. Every request may be lost, so callers repeat what they still need.
protocol TrackOrigin: AnyObject {
    /// Requests a key frame of one stream.
    /// - Returns: `false` when the request could not be sent.
    func requestKeyFrame(of stream: UInt64) -> Bool

    /// Requests a key frame of everything that the mirror plays, while the stream that a slot is to play is not known.
    func requestKeyFrames(at now: Instant)

    /// Requests a key frame of one stream, for a receiver that played it already.
    func requestRepair(of stream: UInt64)

    /// Requests that a stream's packets be dropped for a while, because this loop is overloaded.
    func requestHold(of stream: UInt64)

    /// Subscribes to the layers that the mirror needs, if those are more or other than at the last subscription. A layer
    /// that ceased to play stays subscribed until the next refresh.
    func subscribe(_ mirror: ReceivedTrack)

    /// The same when a slot begins to play a layer. It looks at the mirror's slots only if that is not subscribed.
    func subscribe(_ mirror: ReceivedTrack, playing layer: LayerSet)

    /// Repeats the subscription and the requests for repairs that are late once a second. It may be called at any time.
    func refreshSubscription(of mirror: ReceivedTrack, at now: Instant)

    /// Ends the subscription.
    /// - Returns: `false` when that could not be sent.
    func unsubscribe() -> Bool
}

/// The origin at the other end of a transfer link.
final class TransferOrigin: TrackOrigin {
    private let relay: MirrorID
    /// `nil` when there is no way back to the origin, which then sends until it learns of the end by itself.
    private let link: TransferLink?
    private var requestedAllAt: Instant?
    /// The newest subscription that was sent, and when it was refreshed last.
    private var subscribed: (choices: LayerChoices, layers: LayerSet, wanted: LayerSet)?
    private var refreshedAt: Instant

    /// Requests closer than this are for one need: the origin spaces them further.
    static let requestSpacing = Interval.milliseconds(100)
    /// A subscription that was lost is made up for after this time.
    private static let refreshInterval = Interval.seconds(1)

    init(relay: MirrorID, link: TransferLink?, at now: Instant) {
        self.relay = relay
        self.link = link
        refreshedAt = now
    }

    func requestKeyFrame(of stream: UInt64) -> Bool { send(.keyFrameRequest(relay, stream: stream)) }

    func requestKeyFrames(at now: Instant) {
        if let requestedAllAt, now - requestedAllAt < Self.requestSpacing { return }
        if send(.keyFrameRequest(relay, stream: nil)) { requestedAllAt = now }
    }

    func requestRepair(of stream: UInt64) { _ = send(.repairRequest(relay, stream: stream)) }

    func requestHold(of stream: UInt64) { _ = send(.hold(relay, stream: stream)) }

    func subscribe(_ mirror: ReceivedTrack) {
        let (choices, layers, wanted) = (mirror.choices, mirror.neededLayers, mirror.wantedLayers)
        guard
            subscribed?.choices != choices || !layers.subtracting(subscribed?.layers ?? []).isEmpty
                || !wanted.subtracting(subscribed?.wanted ?? []).isEmpty
        else { return }
        subscribe(choices, layers, wanted)
    }

    func subscribe(_ mirror: ReceivedTrack, playing layer: LayerSet) {
        if subscribed?.layers.isSuperset(of: layer) != true { subscribe(mirror) }
    }

    func refreshSubscription(of mirror: ReceivedTrack, at now: Instant) {
        guard now - refreshedAt >= Self.refreshInterval else { return }
        refreshedAt = now
        subscribe(mirror.choices, mirror.neededLayers, mirror.wantedLayers)
        for stream in mirror.streams { stream.repeatRepair(at: now) }
    }

    private func subscribe(_ choices: LayerChoices, _ layers: LayerSet, _ wanted: LayerSet) {
        let subscription = TransferMessage.Subscription(
            relay: relay,
            choices: choices.rawValue,
            layers: layers,
            wanted: wanted
        )
        if send(.subscribe(subscription)) { subscribed = (choices, layers, wanted) }
    }

    func unsubscribe() -> Bool { send(.unsubscribe(relay)) }

    private func send(_ message: TransferMessage) -> Bool { link?.send(message) ?? false }
}
