import Base
import MediaTypes
import Wire

/// Retransmissions that leave more than once, on a path that loses packets at any rate.
///
/// A lost one costs its viewer another round trip, and mostly a freeze. Its copies leave a while apart, so that one burst of losses
/// does not take them all (case Bursts 5 of the server's scorecard: without copies 3 % of the time are frozen).
struct RetransmissionCopies {
    private struct Copy {
        let slot: SSRC
        let number: SequenceNumber
        /// Copies that follow this one.
        let following: Int
        let at: Instant
    }

    private static let copies = 2
    /// Both come before a receiver asks again on a path whose round trip takes 60 ms.
    private static let spacing = Interval.milliseconds(20)
    /// The oldest give way to more than these.
    private static let countMax = 128

    private var queue = Queue<Copy>()

    /// When the next one leaves.
    var nextAt: Instant? { queue.first?.at }

    /// Takes a retransmission that left.
    mutating func append(_ number: SequenceNumber, of slot: SSRC, at now: Instant) {
        append(Copy(slot: slot, number: number, following: Self.copies - 1, at: now + Self.spacing))
    }

    private mutating func append(_ copy: Copy) {
        if queue.count >= Self.countMax { queue.removeFirst() }
        queue.append(copy)
    }

    /// Returns one that leaves now.
    mutating func takeDue(at now: Instant) -> (slot: SSRC, number: SequenceNumber)? {
        guard let first = queue.first, first.at <= now else { return nil }
        queue.removeFirst()
        if first.following > 0 {
            let at = now + Self.spacing
            append(Copy(slot: first.slot, number: first.number, following: first.following - 1, at: at))
        }
        return (first.slot, first.number)
    }
}
