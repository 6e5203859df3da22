import Base
package import Wire

/// Finds sent packets by their stream and RTP sequence number, as RFC 8888 feedback names them.
///
/// A hash table with chains through the last `SentPacketRing.capacity` packets of all streams. Stale entries need no removal: a
/// name is compared before its number is returned. Plain memory that its owner frees with `deallocate`.
@safe
package struct SentPacketIndex {
    private struct Entry {
        var ssrc: UInt32
        var sequence: UInt16
        /// How many numbers before this one the next packet of the chain took; 0 for none.
        var distance: UInt16
    }

    private static let bucketsCount = 2 * SentPacketRing.capacity
    /// Packets of a chain that are looked at. Consecutive packets of a stream are in consecutive buckets, so a chain is about as
    /// long as there are busy streams for two buckets.
    private static let chainMax = 16

    private var entries: UnsafeMutablePointer<Entry>?
    /// The low bits of the number that the newest packet of each chain took; behind the entries.
    private var buckets: UnsafeMutablePointer<UInt16>?

    package init() {}

    /// Bytes that the index holds of the machine's memory.
    package var footprintBytes: Int {
        guard unsafe entries != nil else { return 0 }
        return SentPacketRing.capacity * MemoryLayout<Entry>.stride + Self.bucketsCount * MemoryLayout<UInt16>.stride
    }

    @inline(never)
    private mutating func allocate() {
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: SentPacketRing.capacity)
        unsafe entries.initialize(
            repeating: Entry(ssrc: 0, sequence: 0, distance: 0),
            count: SentPacketRing.capacity
        )
        let buckets = UnsafeMutablePointer<UInt16>.allocate(capacity: Self.bucketsCount)
        unsafe buckets.initialize(repeating: 0, count: Self.bucketsCount)
        unsafe self.entries = entries
        unsafe self.buckets = buckets
    }

    package mutating func deallocate() {
        unsafe entries?.deallocate()
        unsafe buckets?.deallocate()
        unsafe entries = nil
        unsafe buckets = nil
    }

    private static func bucket(_ ssrc: UInt32, _ sequence: UInt16) -> Int {
        Int((ssrc &* 0x9E37_79B1) >> 16 &+ UInt32(sequence)) & (bucketsCount - 1)
    }

    /// Adds the packet that took a number of the ring.
    package mutating func insert(_ ssrc: UInt32, _ sequence: UInt16, number: UInt64) {
        if unsafe entries == nil { allocate() }
        guard let entries = unsafe entries, let buckets = unsafe buckets else { return }
        let bucket = Self.bucket(ssrc, sequence)
        let distance = unsafe UInt16(truncatingIfNeeded: number) &- buckets[bucket]
        unsafe entries[Int(truncatingIfNeeded: number) & (SentPacketRing.capacity - 1)] = Entry(
            ssrc: ssrc,
            sequence: sequence,
            distance: Int(distance) < SentPacketRing.capacity ? distance : 0
        )
        unsafe buckets[bucket] = UInt16(truncatingIfNeeded: number)
    }

    /// - Parameter newest: the newest number that the ring gave.
    /// - Returns: the number of the packet; `nil` when it is not one of the last `SentPacketRing.capacity`.
    package func number(of ssrc: SSRC, _ sequence: SequenceNumber, newest: UInt64) -> UInt64? {
        guard let entries = unsafe entries, let buckets = unsafe buckets else { return nil }
        let bucket = Self.bucket(ssrc.rawValue, sequence.rawValue)
        var age = unsafe Int(UInt16(truncatingIfNeeded: newest) &- buckets[bucket])
        for _ in 0..<Self.chainMax {
            guard age < SentPacketRing.capacity else { return nil }
            let number = newest &- UInt64(age)
            let entry = unsafe entries[Int(truncatingIfNeeded: number) & (SentPacketRing.capacity - 1)]
            if entry.ssrc == ssrc.rawValue, entry.sequence == sequence.rawValue { return number }
            guard entry.distance > 0 else { return nil }
            age += Int(entry.distance)
        }
        return nil
    }
}
