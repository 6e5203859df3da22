extension Array {
    /// A part of a list that fails like the whole, and of which no single element can be left out: delta debugging (Zeller,
    /// Hildebrandt: "Simplifying and Isolating Failure-Inducing Input", the algorithm ddmin).
    ///
    /// - Parameters:
    ///   - attemptsMax: the most calls of `fails`. The result of fewer calls than are needed fails too, and may be longer.
    ///   - fails: whether a part of the list fails. The list itself does.
    public func shortened(attemptsMax: Int = .max, whileFailing fails: ([Element]) -> Bool) -> [Element] {
        var attempts = 0
        func tryFailing(_ part: [Element]) -> Bool {
            guard attempts < attemptsMax else { return false }
            attempts += 1
            return fails(part)
        }
        if tryFailing([]) { return [] }
        var list = self
        var chunks = 2
        while list.count > 1, attempts < attemptsMax {
            let bounds = (0...chunks).map { $0 * list.count / chunks }
            let ranges = zip(bounds, bounds.dropFirst()).map { $0..<$1 }
            if let range = ranges.first(where: { tryFailing(Array(list[$0])) }) {
                list = Array(list[range])
                chunks = 2
            } else if chunks > 2, let range = ranges.first(where: { tryFailing(list.without($0)) }) {
                // With two chunks, the rest is the other chunk.
                list = list.without(range)
                chunks -= 1
            } else if chunks < list.count {
                chunks = Swift.min(chunks * 2, list.count)
            } else {
                break
            }
        }
        return list
    }

    private func without(_ range: Range<Int>) -> [Element] {
        Array(self[..<range.lowerBound] + self[range.upperBound...])
    }
}
