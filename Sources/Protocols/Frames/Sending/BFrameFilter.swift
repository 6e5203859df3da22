import Base
import MediaFormat

/// What becomes of pictures that are shown before one that was sent earlier: WebRTC's receivers show pictures in the order of
/// their arrival, and judder.
package enum BFramePolicy: String, Hashable, Sendable, CaseIterable {
    /// Those that no other picture refers to are left out. Once another one refers to one, video is held.
    case drop
    /// Video is held from the first one on.
    case hold
    /// The publisher is refused.
    case refuse
}

/// Lets pictures through that are shown in the order in which they are sent.
///
/// A picture is recognised by its times, whatever the codec: it is shown before one that was decoded earlier.
struct BFrameFilter {
    /// What becomes of a picture.
    enum Decision: Equatable {
        case send
        /// It is left out, and nothing refers to it.
        case drop
        /// Video is held.
        case hold
        case refuse
    }

    /// Video goes on after this time without such pictures, with a key frame.
    static let recoveryTime = Interval.seconds(10)

    let policy: BFramePolicy
    /// Whether video is held.
    private(set) var isHolding = false
    private var latest: Interval?
    private var reorderedAt: Interval?

    init(_ policy: BFramePolicy) { self.policy = policy }

    /// Times begin anew.
    mutating func discontinue() { (latest, reorderedAt) = (nil, nil) }

    mutating func decide(_ frame: MediaFrame) -> Decision {
        let isReordered = latest.map { frame.presentationTime < $0 } ?? false
        latest = max(latest ?? frame.presentationTime, frame.presentationTime)
        guard isReordered else {
            guard isHolding else { return .send }
            let rest = reorderedAt.map { frame.decodeTime - $0 } ?? Self.recoveryTime
            guard frame.isKey, rest >= Self.recoveryTime else { return .hold }
            isHolding = false
            return .send
        }
        reorderedAt = frame.decodeTime
        guard policy != .refuse else { return .refuse }
        if isHolding || policy == .hold || !frame.isDiscardable {
            isHolding = true
            return .hold
        }
        return .drop
    }
}
