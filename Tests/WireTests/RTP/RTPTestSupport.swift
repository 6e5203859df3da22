import TestSupport
import Wire

/// Calls `body` with every truncation of `valid`, then with `rounds` mutated copies, some of which are also shorter or
/// longer.
func forEachDamage(of valid: [UInt8], seed: UInt64, rounds: Int, _ body: ([UInt8]) -> Void) {
    for length in 0...valid.count { body(Array(valid.prefix(length))) }
    var generator = SeededGenerator(seed: seed)
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
