import MediaTypes
import Wire

/// The SSRCs that a peer's slots have or had, none of which may be used again: SRTP would repeat key stream.
///
/// They are kept as stretches of the order in which a session chooses them, which makes one stretch of all that it chose
/// one after the other: others who come and go add to it without an end.
struct SSRCMemory: Sendable {
    /// Stretches kept: SSRCs that were chosen in another order are one each.
    static let stretchesMax = 65_536

    /// What turns a difference of SSRCs into a number of steps of `SSRCSequence`: the step's inverse modulo 2^32.
    private static let inverse: UInt32 = {
        // Newton's method doubles the correct bits in each round, from three on.
        var inverse = SSRCSequence.step
        for _ in 0..<5 { inverse = inverse &* (2 &- SSRCSequence.step &* inverse) }
        return inverse
    }()

    /// In order, with a gap between each two of them.
    private var stretches: ContiguousArray<ClosedRange<UInt32>> = []
    /// The first one that was remembered, where the order begins.
    private var first: SSRC?

    /// How many stretches are kept.
    var stretchCount: Int { stretches.count }

    func contains(_ ssrc: SSRC) -> Bool {
        guard let place = place(of: ssrc) else { return false }
        let index = index(after: place)
        return index > 0 && stretches[index - 1].contains(place)
    }

    mutating func insert(_ ssrc: SSRC) {
        if first == nil { first = ssrc }
        guard let place = place(of: ssrc) else { return }
        let index = index(after: place)
        var stretch = place...place
        var replaced = index..<index
        if index > 0 {
            let before = stretches[index - 1]
            guard !before.contains(place) else { return }
            if before.upperBound == place &- 1 {
                stretch = before.lowerBound...place
                replaced = index - 1..<index
            }
        }
        if index < stretches.count, stretches[index].lowerBound == place &+ 1, place != .max {
            stretch = stretch.lowerBound...stretches[index].upperBound
            replaced = replaced.lowerBound..<index + 1
        }
        stretches.replaceSubrange(replaced, with: CollectionOfOne(stretch))
    }

    private func place(of ssrc: SSRC) -> UInt32? {
        first.map { (ssrc.rawValue &- $0.rawValue) &* Self.inverse }
    }

    /// The index of the first stretch that begins after a place.
    private func index(after place: UInt32) -> Int {
        var (lower, upper) = (0, stretches.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if stretches[middle].lowerBound <= place { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}
