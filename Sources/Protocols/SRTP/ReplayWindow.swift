/// The result of a replay check.
enum ReplayVerdict { case unseen, replayed, tooOld }

/// The replay list of one source: the packets received, up to `words` × 64 before the newest (RFC 3711 §3.3.2).
struct ReplayWindow<let words: Int>: BitwiseCopyable {
    /// The highest index inserted, 0 before the first.
    private(set) var newest: UInt64 = 0
    /// One bit per index, at the index modulo the window size, so that the window moves without a shift.
    private var seen = InlineArray<words, UInt64>(repeating: 0)

    private static var packets: UInt64 { UInt64(words) * 64 }

    @inline(__always)
    func check(_ index: UInt64) -> ReplayVerdict {
        if index > newest { return .unseen }
        if newest - index >= Self.packets { return .tooOld }
        return seen[Self.word(index)] & Self.bit(index) == 0 ? .unseen : .replayed
    }

    /// Adds an index that ``check(_:)`` found unseen.
    @inline(__always)
    mutating func insert(_ index: UInt64) {
        if index > newest {
            if index - newest >= Self.packets {
                seen = InlineArray(repeating: 0)
            } else {
                var skipped = newest + 1
                while skipped < index {
                    seen[Self.word(skipped)] &= ~Self.bit(skipped)
                    skipped += 1
                }
            }
            newest = index
        }
        seen[Self.word(index)] |= Self.bit(index)
    }

    private static func word(_ index: UInt64) -> Int { Int(index / 64 % UInt64(words)) }
    private static func bit(_ index: UInt64) -> UInt64 { 1 << (index % 64) }
}

/// The 48-bit index of an RTP packet: roll-over counter and sequence number (RFC 3711 §3.3.1).
enum PacketIndex {
    /// One more than the highest index.
    static let end: UInt64 = 1 << 48

    /// Estimates a packet's index from its sequence number and the newest index. Deviation: as in libsrtp, no index is
    /// estimated before the start until half of the sequence numbers were used, because there is no roll-over counter
    /// below 0.
    static func estimate(_ sequence: UInt16, newest: UInt64) -> UInt64 {
        guard newest > 0x8000 else { return UInt64(sequence) }
        let last = UInt16(truncatingIfNeeded: newest)
        let base = newest & ~0xFFFF
        let index = base | UInt64(sequence)
        if last < 0x8000 { return Int(sequence) - Int(last) > 0x8000 ? index - 0x1_0000 : index }
        return Int(last) - 0x8000 > Int(sequence) ? index + 0x1_0000 : index
    }
}
