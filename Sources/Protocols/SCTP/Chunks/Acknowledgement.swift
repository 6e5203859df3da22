import Base

/// SACK (RFC 9260 §3.3.4).
struct Acknowledgement: Equatable {
    /// Offsets from the cumulative number, both inclusive.
    struct Gap: Equatable {
        var start: UInt16
        var end: UInt16
    }

    var cumulative: UInt32
    /// The room left in the receiver's window, in bytes.
    var window: UInt32
    var gaps: [Gap] = []
    var duplicates: [UInt32] = []
    /// Whether a gap block was not allowed, which ends the list before it.
    var hasBrokenGap = false

    /// The most gap blocks, and duplicates, that we send.
    static let listMax = 20
    /// The most gap blocks that we read: what fits into a packet.
    private static let gapsMax = 300

    init(cumulative: UInt32, window: UInt32, gaps: [Gap] = [], duplicates: [UInt32] = []) {
        self.cumulative = cumulative
        self.window = window
        self.gaps = gaps
        self.duplicates = duplicates
    }

    /// - Returns: `nil` when the chunk is shorter than what it says it has.
    init?(_ chunk: ChunkRange, in packet: RawSpan) {
        let start = chunk.body.lowerBound
        guard chunk.body.count >= 12 else { return nil }
        cumulative = packet.bigEndianUInt32(at: start)
        window = packet.bigEndianUInt32(at: start + 4)
        let gapCount = Int(packet.bigEndianUInt16(at: start + 8))
        let duplicateCount = Int(packet.bigEndianUInt16(at: start + 10))
        guard chunk.body.count >= 12 + 4 * (gapCount + duplicateCount) else { return nil }
        var previousEnd: UInt16 = 0
        for index in 0..<min(gapCount, Self.gapsMax) {
            let gap = Gap(
                start: packet.bigEndianUInt16(at: start + 12 + 4 * index),
                end: packet.bigEndianUInt16(at: start + 14 + 4 * index)
            )
            // The number after the cumulative one is missing, or it would be the cumulative one. Blocks rise; ones that
            // touch are accepted, because some senders split what they could join.
            guard gap.start >= 2, gap.end >= gap.start, gap.start > previousEnd else {
                hasBrokenGap = true
                return
            }
            gaps.append(gap)
            previousEnd = gap.end
        }
        // The duplicates have no meaning for us.
    }

    var byteCount: Int { 16 + 4 * (gaps.count + duplicates.count) }

    /// - Parameter offset: where the chunk starts; ``byteCount`` bytes must be there.
    func write(at offset: Int, into packet: inout MutableRawSpan) {
        packet.store(ChunkType.sack.rawValue, at: offset)
        packet.store(0 as UInt8, at: offset + 1)
        packet.store(bigEndian: UInt16(truncatingIfNeeded: byteCount), at: offset + 2)
        packet.store(bigEndian: cumulative, at: offset + 4)
        packet.store(bigEndian: window, at: offset + 8)
        packet.store(bigEndian: UInt16(truncatingIfNeeded: gaps.count), at: offset + 12)
        packet.store(bigEndian: UInt16(truncatingIfNeeded: duplicates.count), at: offset + 14)
        var place = offset + 16
        for gap in gaps {
            packet.store(bigEndian: gap.start, at: place)
            packet.store(bigEndian: gap.end, at: place + 2)
            place += 4
        }
        for duplicate in duplicates {
            packet.store(bigEndian: duplicate, at: place)
            place += 4
        }
    }
}
