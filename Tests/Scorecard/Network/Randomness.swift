import TestSupport

/// Numbers that have the same bits on every machine: additions, multiplications and divisions only, no C library.
extension SeededGenerator {
    /// 0 ..< 1.
    mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// About normally distributed with deviation 1: the sum of twelve uniform numbers.
    mutating func normal() -> Double {
        var sum = -6.0
        for _ in 0..<12 { sum += uniform() }
        return sum
    }

    /// Exponentially distributed.
    mutating func exponential(mean: Double) -> Double { -mean * naturalLogarithm(1 - uniform()) }
}

/// 2 to the power of a number, by the series of the exponential function.
func powerOfTwo(_ exponent: Double) -> Double {
    let whole = exponent.rounded()
    let x = (exponent - whole) * 0.693147180559945309
    var term = 1.0
    var sum = 1.0
    for divisor in 1...16 {
        term *= x / Double(divisor)
        sum += term
    }
    return Double(sign: .plus, exponent: Int(whole), significand: 1) * sum
}

func cubeRoot(_ value: Double) -> Double {
    guard value > 0 else { return 0 }
    var root = value > 1 ? value / 3 : value
    for _ in 0..<60 { root = (2 * root + value / (root * root)) / 3 }
    return root
}
