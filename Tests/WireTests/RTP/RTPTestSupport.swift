import Wire

/// SplitMix64: the seed of a failing run is in its arguments.
struct RTPTestGenerator: RandomNumberGenerator {
    var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Calls `body` with `valid` cut at every length, then with `rounds` copies that have a few bytes changed and may be
/// cut or grown as well.
func forEachDamage(of valid: [UInt8], seed: UInt64, rounds: Int, _ body: ([UInt8]) -> Void) {
    for length in 0...valid.count { body(Array(valid.prefix(length))) }
    var generator = RTPTestGenerator(seed: seed)
    for _ in 0..<rounds {
        var bytes = valid
        var dice = generator.next()
        if dice & 3 == 0 { bytes.removeLast(Int(dice >> 8 & 0xFF) % (bytes.count + 1)) }
        if dice & 12 == 0 { bytes.append(UInt8(truncatingIfNeeded: dice >> 16)) }
        if !bytes.isEmpty {
            for _ in 0...Int(dice >> 24 & 3) {
                dice = generator.next()
                bytes[Int(dice >> 16 & 0xFFFF) % bytes.count] = UInt8(truncatingIfNeeded: dice)
            }
        }
        body(bytes)
    }
}
