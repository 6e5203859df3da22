import Base
package import Wire

/// The last packets of one received stream, decrypted: every subscriber's packet is made from here, now or when it
/// asks again.
///
/// Bytes lie in one ring that starts small and doubles up to a limit, so a stream costs what its bitrate needs.
/// Bounded by bytes, by packets and, through `trim`, by time. It can also keep no packets and only tell duplicates.
@safe
package final class PacketHistory {
    /// The ring's first size: a second of audio or an idle video stream.
    static let bytesMin = 32 * 1024
    /// The ring's largest size: one second at 16 Mbit/s.
    static let bytesMax = 2 * 1024 * 1024
    /// Index slots: a power of two above the packets in one second at 16 Mbit/s.
    static let packetsMax = 2048

    private struct Entry {
        var description: PacketDescription
        /// Position in the endless byte stream that the ring is a window of.
        var position: Int
        var length: Int
    }

    /// The index, by sequence number modulo `entryCount`, a power of two. Plain memory, like the ring and `seen`: a packet
    /// touches each of them several times, and an array's owner would check every access.
    private var entries: UnsafeMutablePointer<Entry?>
    private var entryCount: Int
    private var storage: UnsafeMutableRawPointer
    private var capacity: Int
    /// One past the last byte written, in the endless byte stream.
    private var writePosition = 0
    private var newest: ExtendedSequenceNumber?
    /// Which of the last `packetsMax` numbers were taken in: one bit each. It outlives the packets, because a copy that
    /// comes after its packet was overwritten must not be forwarded a second time under the same SRTP index.
    private let seen: UnsafeMutablePointer<UInt64>
    private var lapStartedAt: Instant?
    private let bytesLimit: Int
    /// Whether packets themselves are kept, rather than the memory of which ones came.
    let keepsPackets: Bool

    /// - Parameter bytesLimit: what the ring may grow to, taken down to a power of two; 0 keeps no packets and only
    ///   remembers which ones came.
    package init(bytesLimit: Int = PacketHistory.bytesMax) {
        keepsPackets = bytesLimit > 0
        let limit = max(bytesLimit, Self.bytesMin)
        self.bytesLimit = 1 << (Int.bitWidth - 1 - limit.leadingZeroBitCount)
        capacity = keepsPackets ? Self.bytesMin : 0
        unsafe storage = .allocate(byteCount: max(capacity, 1), alignment: 64)
        entryCount = keepsPackets ? Self.entriesMin : 1
        unsafe entries = Self.makeIndex(entryCount)
        unsafe seen = .allocate(capacity: Self.packetsMax / 64)
        unsafe seen.initialize(repeating: 0, count: Self.packetsMax / 64)
    }

    private static let entriesMin = 64

    private static func makeIndex(_ count: Int) -> UnsafeMutablePointer<Entry?> {
        let index = UnsafeMutablePointer<Entry?>.allocate(capacity: count)
        unsafe index.initialize(repeating: nil, count: count)
        return unsafe index
    }

    deinit {
        unsafe storage.deallocate()
        unsafe entries.deallocate()
        unsafe seen.deallocate()
    }

    /// Bytes that the history holds of the machine's memory.
    package var footprintBytes: Int { capacity + entryCount * MemoryLayout<Entry?>.stride }

    /// Whether taking in `count` more bytes may overwrite or move bytes that were taken in before.
    @inline(__always)
    func disturbs(adding count: Int) -> Bool { capacity > 0 && startsNextLap(adding: count) }

    /// Keeps a copy of `packet`.
    /// - Returns: `false`, keeping nothing, when the packet was taken in before or is older than what is remembered.
    package func insert(_ packet: RawSpan, _ description: PacketDescription) -> Bool {
        unsafe keep(packet, description) != nil
    }

    /// Remembers that a packet came, in a history that keeps none.
    /// - Returns: `false` when it came before or is older than what is remembered.
    func note(_ sequence: ExtendedSequenceNumber) -> Bool {
        guard isNew(sequence) else { return false }
        remember(sequence)
        return true
    }

    /// Keeps a copy of `packet`.
    /// - Returns: where the copy lies until the next packet that `disturbs`; `nil`, keeping nothing, when the packet was
    ///   taken in before or is older than what is remembered.
    func keep(_ packet: RawSpan, _ description: PacketDescription) -> UnsafeRawPointer? {
        let sequence = description.sequence
        let now = description.receivedAt
        let count = packet.byteCount
        guard keepsPackets, count <= Self.bytesMin / 2, isNew(sequence) else { return nil }
        growIndexIfCrowded(for: sequence, at: now)
        let slot = index(of: sequence)
        if let present = unsafe entries[slot], present.description.sequence >= sequence { return nil }
        if lapStartedAt == nil { lapStartedAt = now }
        if startsNextLap(adding: count) {
            // A ring that grew goes on with the lap that it is in.
            if let lapStartedAt, now - lapStartedAt < Self.durationWanted, capacity < bytesLimit { grow() }
        }
        if startsNextLap(adding: count) {
            writePosition += capacity - place(writePosition)
            lapStartedAt = now
        }
        let target = unsafe storage + place(writePosition)
        unsafe packet.withUnsafeBytes { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe target.copyMemory(from: from, byteCount: count)
        }
        unsafe entries[slot] = Entry(description: description, position: writePosition, length: count)
        writePosition += count
        remember(sequence)
        return UnsafeRawPointer(target)
    }

    /// By how many packets one may be overtaken that counts as late. Each slot that waits for a beginning looks at so many, and
    /// the sender decides how many of its packets are behind one that it sent far ahead.
    private static let overtakenMax = 16

    /// Whether a packet that is kept came after one of the ``overtakenMax`` that follow it.
    func isLate(_ sequence: ExtendedSequenceNumber) -> Bool {
        guard let newest, sequence < newest, let position = position(of: sequence) else { return false }
        return (1...Self.overtakenMax).contains { step in
            self.position(of: sequence.advanced(by: step)).map { $0 < position } ?? false
        }
    }

    /// Where a packet that is kept lies in the endless byte stream.
    private func position(of sequence: ExtendedSequenceNumber) -> Int? {
        guard keepsPackets, let entry = unsafe entries[index(of: sequence)], entry.description.sequence == sequence
        else {
            return nil
        }
        return entry.position
    }

    private func isNew(_ sequence: ExtendedSequenceNumber) -> Bool {
        guard let newest else { return true }
        return sequence.rawValue > newest.rawValue - Int64(Self.packetsMax) && !contains(sequence)
    }

    private func remember(_ sequence: ExtendedSequenceNumber) {
        markSeen(sequence)
        newest = max(newest ?? sequence, sequence)
    }

    /// Where a position of the endless byte stream lies in the ring, whose size is a power of two.
    @inline(__always)
    private func place(_ position: Int) -> Int { position & (capacity - 1) }

    /// Whether the packet was taken in, so that another copy of it is a duplicate, whether or not it is still kept.
    package func contains(_ sequence: ExtendedSequenceNumber) -> Bool {
        guard let newest, sequence <= newest, sequence.rawValue > newest.rawValue - Int64(Self.packetsMax) else {
            return false
        }
        let (word, mask) = seenBit(sequence.rawValue)
        return unsafe seen[word] & mask != 0
    }

    private func seenBit(_ number: Int64) -> (word: Int, mask: UInt64) {
        let bit = Int(truncatingIfNeeded: number) & (Self.packetsMax - 1)
        return (bit >> 6, 1 << UInt64(bit & 63))
    }

    private func markSeen(_ sequence: ExtendedSequenceNumber) {
        if let newest, sequence > newest {
            // The bits of the numbers in between are those of numbers long past.
            var number = max(newest.rawValue, sequence.rawValue - Int64(Self.packetsMax)) + 1
            while number < sequence.rawValue {
                let (word, mask) = seenBit(number)
                unsafe seen[word] &= ~mask
                number += 1
            }
        }
        let (word, mask) = seenBit(sequence.rawValue)
        unsafe seen[word] |= mask
    }

    /// Lends a kept packet; `nil` when it is not there any more.
    package func withPacket<Result>(
        _ sequence: ExtendedSequenceNumber,
        _ body: (RawSpan, PacketDescription) -> Result
    ) -> Result? {
        guard keepsPackets, let entry = unsafe entries[index(of: sequence)], entry.description.sequence == sequence,
            isKept(entry)
        else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(start: storage + place(entry.position), count: entry.length)
        return body(unsafe bytes.bytes, entry.description)
    }

    /// A frame of more packets is measured in part.
    private static let framePacketsMax = 512

    /// Bytes of the packets of a frame that are kept.
    /// - Parameter first: the frame's first packet.
    func frameBytes(from first: ExtendedSequenceNumber, _ timestamp: RTPTimestamp) -> Int {
        var bytes = 0
        for offset in 0..<Int64(Self.framePacketsMax) {
            let sequence = ExtendedSequenceNumber(rawValue: first.rawValue &+ offset)
            guard let newest, sequence <= newest else { break }
            let isOther = withPacket(sequence) { packet, description in
                guard description.timestamp == timestamp else { return true }
                bytes += packet.byteCount
                return false
            }
            if isOther == true { break }
        }
        return bytes
    }

    /// Whether a frame and all packets after it are kept, and those after it have no more bytes than a limit.
    /// - Parameter first: the frame's first packet.
    func keepsAll(
        from first: ExtendedSequenceNumber,
        of timestamp: RTPTimestamp,
        bytesAfterMax: Int
    ) -> Bool {
        guard let newest, newest.rawValue &- first.rawValue < Int64(Self.framePacketsMax) else { return false }
        var bytes = 0
        var sequence = first
        while sequence <= newest {
            let count = withPacket(sequence) { packet, description in
                description.timestamp == timestamp ? 0 : packet.byteCount
            }
            guard let count else { return false }
            bytes += count
            // Each slot that waits asks with each packet, so what is too much is not counted to its end.
            guard bytes <= bytesAfterMax else { return false }
            sequence = sequence.advanced(by: 1)
        }
        return true
    }

    /// Gives memory back after a stream went quiet.
    package func trim() {
        guard keepsPackets, capacity > Self.bytesMin || entryCount > Self.entriesMin else { return }
        unsafe storage.deallocate()
        unsafe storage = .allocate(byteCount: Self.bytesMin, alignment: 64)
        capacity = Self.bytesMin
        writePosition = 0
        lapStartedAt = nil
        unsafe entries.deallocate()
        entryCount = Self.entriesMin
        unsafe entries = Self.makeIndex(entryCount)
    }

    private func index(of sequence: ExtendedSequenceNumber) -> Int {
        Int(truncatingIfNeeded: sequence.rawValue) & (entryCount - 1)
    }

    /// What a retransmission may be asked for: a ring that holds less than this grows.
    private static let durationWanted = Interval.seconds(1)

    private func isKept(_ entry: Entry) -> Bool { entry.position >= writePosition - capacity }

    /// Whether the next packet does not fit before the end of the ring and so begins at its start.
    private func startsNextLap(adding count: Int) -> Bool { place(writePosition) + count > capacity }

    private func grow() {
        let larger = min(capacity * 2, bytesLimit)
        let target = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 64)
        var position = 0
        let kept = unsafe UnsafeBufferPointer(start: entries, count: entryCount).compactMap { $0 }.filter(isKept)
            .sorted { $0.position < $1.position }
        unsafe entries.update(repeating: nil, count: entryCount)
        for entry in kept {
            unsafe (target + position).copyMemory(from: storage + place(entry.position), byteCount: entry.length)
            unsafe entries[index(of: entry.description.sequence)] = Entry(
                description: entry.description,
                position: position,
                length: entry.length
            )
            position += entry.length
        }
        unsafe storage.deallocate()
        unsafe storage = target
        capacity = larger
        writePosition = position
    }

    /// Doubles the index while the packet would push out one that is still wanted.
    private func growIndexIfCrowded(for sequence: ExtendedSequenceNumber, at now: Instant) {
        while entryCount < Self.packetsMax, let present = unsafe entries[index(of: sequence)],
            present.description.sequence < sequence, isKept(present),
            now - present.description.receivedAt < Self.durationWanted
        {
            let old = unsafe entries
            let oldCount = entryCount
            entryCount *= 2
            unsafe entries = Self.makeIndex(entryCount)
            for place in 0..<oldCount {
                guard let entry = unsafe old[place] else { continue }
                unsafe entries[index(of: entry.description.sequence)] = entry
            }
            unsafe old.deallocate()
        }
    }
}
