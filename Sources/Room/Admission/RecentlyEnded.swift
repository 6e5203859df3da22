import ChannelTypes
import MediaTypes

/// The places that operators ended a short time ago. A client that comes back with the token of such a place is refused
/// with the reason, so that it does not undo the operator's decision by itself. The list is bounded.
struct RecentlyEnded: Sendable {
    /// The maximum number of places; beyond it the oldest is forgotten.
    static let countMax = 10_000

    private struct Place {
        let id: ParticipantID
        let endSecond: Int64
    }

    private var reasons: [ParticipantID: EndReason] = [:]
    /// In the order of their ends.
    private var queue = Queue<Place>()

    var count: Int { reasons.count }

    /// Remembers a place for as long as a lost member would have kept it. Ends that are no operator's decision about the
    /// member are not remembered; for bans there are blocks.
    mutating func insert(_ id: ParticipantID, reason: EndReason, at now: RoomTime, seconds: Int64) {
        switch reason {
        case .kicked, .disconnectedByOperator, .channelTerminated, .sessionTerminated: break
        default: return
        }
        forget(endedBy: now)
        if reasons.count >= Self.countMax { forgetFirst() }
        let (end, overflows) = now.second.addingReportingOverflow(max(seconds, 0))
        queue.append(Place(id: id, endSecond: overflows ? .max : end))
        reasons[id] = reason
    }

    /// Why a place was ended; `nil` for a place that was not, or long ago.
    mutating func reason(of id: ParticipantID, at now: RoomTime) -> EndReason? {
        forget(endedBy: now)
        return reasons[id]
    }

    private mutating func forget(endedBy now: RoomTime) {
        while let first = queue.first, first.endSecond <= now.second { forgetFirst() }
    }

    private mutating func forgetFirst() {
        guard let place = queue.removeFirst() else { return }
        reasons[place.id] = nil
    }
}
