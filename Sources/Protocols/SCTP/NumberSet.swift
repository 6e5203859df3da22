/// A set of numbers within a window that only moves up: one bit for each. The owner removes a number before the window passes it.
struct NumberSet: Sendable {
    private static let wordBits = 64

    private let mask: Int64
    /// Empty until a number is inserted.
    private var words: [UInt64] = []
    private(set) var count = 0

    /// - Parameter window: how far apart numbers may be, a power of two, at least 64.
    init(window: Int) { mask = Int64(window) - 1 }

    var isEmpty: Bool { count == 0 }

    func contains(_ number: Int64) -> Bool {
        guard count > 0 else { return false }
        let (word, bit) = place(of: number)
        return words[word] & bit != 0
    }

    mutating func insert(_ number: Int64) {
        if words.isEmpty { words = [UInt64](repeating: 0, count: (Int(mask) + 1) / Self.wordBits) }
        let (word, bit) = place(of: number)
        guard words[word] & bit == 0 else { return }
        words[word] |= bit
        count += 1
    }

    mutating func remove(_ number: Int64) {
        guard count > 0 else { return }
        let (word, bit) = place(of: number)
        guard words[word] & bit != 0 else { return }
        words[word] &= ~bit
        count -= 1
    }

    mutating func removeAll() {
        words = []
        count = 0
    }

    private func place(of number: Int64) -> (word: Int, bit: UInt64) {
        let index = Int(number & mask)
        return (index / Self.wordBits, 1 << UInt64(index % Self.wordBits))
    }

    /// The lowest number of `range` that is in the set, or with `isMissing` the lowest that is not.
    /// - Parameter work: counts the words that are read.
    func first(in range: ClosedRange<Int64>, isMissing: Bool = false, _ work: inout WorkMeter) -> Int64? {
        guard count > 0 else { return isMissing ? range.lowerBound : nil }
        var number = range.lowerBound
        while number <= range.upperBound {
            work.add()
            let index = Int(number & mask)
            let shift = index % Self.wordBits
            let word = isMissing ? ~words[index / Self.wordBits] : words[index / Self.wordBits]
            let bits = word >> UInt64(shift)
            if bits != 0 {
                let found = number + Int64(bits.trailingZeroBitCount)
                return found <= range.upperBound ? found : nil
            }
            number += Int64(Self.wordBits - shift)
        }
        return nil
    }
}
