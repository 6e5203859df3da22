/// The natural logarithm of a positive, finite number, to about 1e-15, from additions and divisions only: it gives the
/// same bits on every machine, which a C library's does not promise.
func naturalLogarithm(_ value: Double) -> Double {
    precondition(value > 0 && value.isFinite, "the logarithm of a positive number")
    // value = significand · 2^exponent with the significand in √½…√2.
    var significand = value.significand
    var exponent = Double(value.exponent)
    if significand > 1.414213562373095 {
        significand /= 2
        exponent += 1
    }
    // ln s = 2 artanh((s - 1) / (s + 1)), whose argument is below 0.172.
    let x = (significand - 1) / (significand + 1)
    let square = x * x
    var power = x
    var sum = 0.0
    var divisor = 1.0
    while divisor < 21 {
        sum += power / divisor
        power *= square
        divisor += 2
    }
    return 2 * sum + exponent * 0.693147180559945309
}
