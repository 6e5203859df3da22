/// Numbers on the wire wrap around; inside they are extended to 64 bits, so that plain comparison orders them.
enum SerialNumber {
    /// The number closest to `reference` whose low 32 bits are `raw`. One that is half the range away counts as older.
    static func extend(_ raw: UInt32, near reference: Int64) -> Int64 {
        reference &+ Int64(Int32(bitPattern: raw &- UInt32(truncatingIfNeeded: reference)))
    }

    /// The number closest to `reference` whose low 16 bits are `raw`. One that is half the range away counts as older.
    static func extend(_ raw: UInt16, near reference: Int64) -> Int64 {
        reference &+ Int64(Int16(bitPattern: raw &- UInt16(truncatingIfNeeded: reference)))
    }

    /// Where a direction starts: far enough from zero that no number below it is negative.
    static func start(_ raw: UInt32) -> Int64 { Int64(raw) &+ 1 << 32 }

    static func raw(_ number: Int64) -> UInt32 { UInt32(truncatingIfNeeded: number) }
}
