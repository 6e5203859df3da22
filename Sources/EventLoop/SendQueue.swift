import Wire

/// Datagrams of one socket that wait for room in the kernel's send buffer.
///
/// It is short: what waits longer than some milliseconds is late for a call anyway. Control datagrams (STUN, DTLS, RTCP)
/// leave before media, and each kind in its order: they are few, and without them a call ends. When the queue is full the
/// oldest media makes room; control is dropped only when no media is left. Media that has waited for `ageMax` is dropped
/// when its turn comes, since its receiver has given it up.
@safe
final class SendQueue {
    /// Datagrams kept: about 20 ms of 1 Gbit/s of video packets.
    static let datagramsMax = 2048
    /// Bytes of datagrams kept.
    static let bytesMax = 2 << 20
    /// The longest that media waits: what a receiver's jitter buffer holds at worst.
    static let ageMax = Interval.milliseconds(200)

    enum Kind { case media, control }

    /// What was dropped to make room for a datagram, or that datagram itself.
    struct Drops: Equatable {
        var media = 0
        var control = 0
    }

    /// A datagram's target and place: its bytes are at `slot * DatagramBatch.slotBytes` of the block.
    private struct Entry {
        var remote: TransportAddress
        var queuedAt: Instant
        var slot: UInt16
        var length: UInt16
    }

    /// First in, first out.
    @safe
    private struct Ring {
        private let entries: UnsafeMutablePointer<Entry>
        private var head = 0
        private(set) var count = 0

        init() { unsafe entries = .allocate(capacity: SendQueue.datagramsMax) }
        func deallocate() { unsafe entries.deallocate() }

        subscript(offset: Int) -> Entry {
            precondition(offset >= 0 && offset < count)
            return unsafe entries[(head + offset) % SendQueue.datagramsMax]
        }

        mutating func append(_ entry: Entry) {
            precondition(count < SendQueue.datagramsMax)
            unsafe (entries + (head + count) % SendQueue.datagramsMax).initialize(to: entry)
            count += 1
        }

        mutating func removeFirst() -> Entry? {
            guard count > 0 else { return nil }
            let first = self[0]
            head = (head + 1) % SendQueue.datagramsMax
            count -= 1
            return first
        }
    }

    private let block: UnsafeMutableRawPointer
    /// A stack of the slots that are free: the one used last is taken first.
    private let freeSlots: UnsafeMutablePointer<UInt16>
    private var control = Ring()
    private var media = Ring()
    private(set) var byteCount = 0

    init() {
        unsafe block = .allocate(byteCount: Self.datagramsMax * DatagramBatch.slotBytes, alignment: 64)
        unsafe freeSlots = .allocate(capacity: Self.datagramsMax)
        for slot in 0..<Self.datagramsMax {
            unsafe (freeSlots + slot).initialize(to: UInt16(Self.datagramsMax - 1 - slot))
        }
    }

    deinit {
        unsafe block.deallocate()
        unsafe freeSlots.deallocate()
        control.deallocate()
        media.deallocate()
    }

    var count: Int { control.count + media.count }
    var isEmpty: Bool { count == 0 }
    /// Those of the datagrams that are control.
    var controlCount: Int { control.count }

    /// Media is what RFC 7983 §7 takes for RTP or RTCP and whose second byte is no packet type of RTCP (RFC 5761 §4);
    /// SRTP and SRTCP leave these bytes in the clear.
    static func kind(of bytes: UnsafeRawBufferPointer) -> Kind {
        guard let first = unsafe bytes.first, (128...191).contains(first) else { return .control }
        guard bytes.count > 1 else { return .media }
        return unsafe (192...223).contains(bytes[1]) ? .control : .media
    }

    /// Appends a copy of 1...`DatagramBatch.slotBytes` bytes, which are dropped when only control waits and it takes all
    /// the room.
    func append(_ bytes: UnsafeRawBufferPointer, to remote: TransportAddress, at now: Instant) -> Drops {
        guard let base = bytes.baseAddress, bytes.count <= DatagramBatch.slotBytes else {
            preconditionFailure("a datagram fits its slot")
        }
        let kind = unsafe Self.kind(of: bytes)
        var drops = Drops()
        while count == Self.datagramsMax || byteCount + bytes.count > Self.bytesMax {
            if let oldest = media.removeFirst() {
                release(oldest)
                drops.media += 1
            } else {
                if kind == .media { drops.media += 1 } else { drops.control += 1 }
                return drops
            }
        }
        let slot = unsafe freeSlots[Self.datagramsMax - 1 - count]
        unsafe (block + Int(slot) * DatagramBatch.slotBytes).copyMemory(from: base, byteCount: bytes.count)
        let entry = Entry(remote: remote, queuedAt: now, slot: slot, length: UInt16(bytes.count))
        if kind == .media { media.append(entry) } else { control.append(entry) }
        byteCount += bytes.count
        return drops
    }

    /// Drops the media that has waited for `age` or longer.
    /// - Returns: how many datagrams that was.
    func dropMedia(thatWaited age: Interval = SendQueue.ageMax, at now: Instant) -> Int {
        var dropped = 0
        while media.count > 0, now - media[0].queuedAt >= age, let oldest = media.removeFirst() {
            release(oldest)
            dropped += 1
        }
        return dropped
    }

    /// The datagram at `offset` in the order in which they leave, valid until the queue changes.
    func datagram(at offset: Int) -> (bytes: UnsafeRawBufferPointer, remote: TransportAddress) {
        let entry = offset < control.count ? control[offset] : media[offset - control.count]
        let bytes = unsafe UnsafeRawBufferPointer(
            start: block + Int(entry.slot) * DatagramBatch.slotBytes,
            count: Int(entry.length)
        )
        return unsafe (bytes, entry.remote)
    }

    /// Removes the first `removed` in the order in which they leave.
    func removeFirst(_ removed: Int) {
        for _ in 0..<removed {
            guard let first = control.removeFirst() ?? media.removeFirst() else {
                preconditionFailure("no more leave than there are")
            }
            release(first)
        }
    }

    /// Gives back the slot of an entry that its ring has removed.
    private func release(_ entry: Entry) {
        byteCount -= Int(entry.length)
        unsafe freeSlots[Self.datagramsMax - 1 - count] = entry.slot
    }
}
