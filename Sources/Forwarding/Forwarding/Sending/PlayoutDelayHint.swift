import Base
import Wire

/// The least delay with which a receiver is to show a slot's video, by the header extension `playout-delay`.
///
/// A receiver of libwebrtc waits for a retransmission as long as its jitter and one round trip tell. On a path that loses runs of
/// packets, the end of the run comes first, and a retransmission may be lost as well: each of them would stop the picture. While
/// such a path needs copies of retransmissions, pictures are shown so much later that they come in time.
struct PlayoutDelayHint {
    /// Beyond a round trip: a run of sixteen packets at 200 a second, and the two copies of a retransmission.
    private static let beyondRoundTrip = Interval.milliseconds(120)
    private static let minimumMax = Interval.milliseconds(500)
    /// A smaller rise is not told.
    private static let step = Interval.milliseconds(20)
    /// After so long without such losses the receiver decides by itself again.
    private static let lossless = Interval.seconds(10)
    /// New packets that tell of a change: more than one run of losses takes.
    private static let packetsMax = 32
    /// The receiver is told so often, once a second, that it decides again.
    private static let endingsMax = 3

    private var minimum = Interval.zero
    private var wantedAt = Instant(nanoseconds: 0)
    private var packets = 0
    private var endings = 0

    /// The receiver was told, or is to be.
    var isTold: Bool { minimum > .zero }
    /// New packets have to tell of it.
    var isDue: Bool { packets > 0 }

    /// The path lost packets, and loses their retransmissions, too.
    mutating func want(roundTrip: Interval, at now: Instant) {
        wantedAt = now
        let wanted = min(roundTrip + Self.beyondRoundTrip, Self.minimumMax)
        guard endings > 0 || wanted > minimum + Self.step || !isTold else { return }
        endings = 0
        minimum = max(minimum, wanted)
        packets = Self.packetsMax
    }

    /// To be called about once a second.
    mutating func tick(at now: Instant) {
        guard isTold, now - wantedAt > Self.lossless else { return }
        if endings == Self.endingsMax {
            self = PlayoutDelayHint()
        } else {
            endings += 1
            packets = Self.packetsMax
        }
    }

    /// What a packet has to say; `nil` for nothing.
    /// - Parameter isNew: it is no retransmission. Those tell as long as there is something to tell.
    mutating func take(isNew: Bool) -> PlayoutDelay? {
        guard isTold, isDue || !isNew else { return nil }
        if isNew { packets -= 1 }
        let units = endings > 0 ? 0 : UInt16(clamping: minimum.milliseconds / 10)
        return PlayoutDelay(minimumUnits: units, maximumUnits: PlayoutDelay.unitsMax)
    }
}
