/// Whether a packet may be one that was not seen before.
enum ReplayVerdict { case unseen, replayed, tooOld }

/// The packets of one source that were seen, up to `words` × 64 behind the newest (RFC 3711 §3.3.2).
struct ReplayWindow<let words: Int>: BitwiseCopyable {
    /// The highest index inserted, 0 before the first.
    private(set) var newest: UInt64 = 0
    /// One bit an index, at the index modulo the window's size, so that moving on clears bits instead of shifting.
    private var seen = InlineArray<words, UInt64>(repeating: 0)

    private static var packets: UInt64 { UInt64(words) * 64 }

    func check(_ index: UInt64) -> ReplayVerdict {
        if index > newest { return .unseen }
        if newest - index >= Self.packets { return .tooOld }
        return seen[Self.word(index)] & Self.bit(index) == 0 ? .unseen : .replayed
    }

    /// Notes an index that ``check(_:)`` found unseen.
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

/// The 48-bit index of an RTP packet: its roll-over counter and its sequence number (RFC 3711 §3.3.1).
enum PacketIndex {
    /// One more than the highest.
    static let end: UInt64 = 1 << 48

    /// The index that a sequence number most likely means next to the newest one. Deviation: as in libsrtp, nothing
    /// lies before the first roll-over until half of the numbers were used, because there is no counter below 0.
    static func estimate(_ sequence: UInt16, newest: UInt64) -> UInt64 {
        guard newest > 0x8000 else { return UInt64(sequence) }
        let last = UInt16(truncatingIfNeeded: newest)
        let base = newest & ~0xFFFF
        let index = base | UInt64(sequence)
        if last < 0x8000 { return Int(sequence) - Int(last) > 0x8000 ? index - 0x1_0000 : index }
        return Int(last) - 0x8000 > Int(sequence) ? index + 0x1_0000 : index
    }
}
