import Wire

/// Whose media a datagram is, for a send queue that cannot take all.
public struct SendShare: Hashable, Sendable, BitwiseCopyable {
    /// What the socket's capacity is shared between, such as channels. Media without one has 0.
    public var id: UInt64
    /// Audio leaves before the share's other media and is dropped after it.
    public var isAudio: Bool

    public init(id: UInt64 = 0, isAudio: Bool = false) {
        self.id = id
        self.isAudio = isAudio
    }
}

/// Datagrams of one socket that wait for room in the kernel's send buffer.
///
/// It is short: what waits longer than some milliseconds is late for a call anyway. Control datagrams (STUN, DTLS, RTCP)
/// leave before media, in their order: they are few, and without them a call ends. Media belongs to shares, which leave in
/// turns of equal bytes; of one share audio leaves first, else each in its order.
///
/// When the queue is full the share that holds the most of it makes room: its oldest media that is not audio, and audio
/// when it has nothing else. Control is dropped only when no media is left. Media that has waited for `ageMax` is dropped
/// when its turn comes, since its receiver has given it up.
@safe
final class SendQueue {
    /// Datagrams kept: about 20 ms of 1 Gbit/s of video packets.
    static let datagramsMax = 2048
    /// Bytes of datagrams kept.
    static let bytesMax = 2 << 20
    /// The longest that media waits: what a receiver's jitter buffer holds at worst.
    static let ageMax = Interval.milliseconds(200)
    /// Shares told apart; of more that wait at one time some count as one.
    static let sharesMax = 256
    /// Bytes that a share may send before the next one has its turn: at least one datagram.
    private static let turnBytes = 8 * DatagramBatch.slotBytes
    /// What a short datagram counts as where shares are compared: it takes a place like any other.
    private static let weightMin = bytesMax / datagramsMax

    enum Kind { case media, control }

    /// What was dropped to make room for a datagram, or that datagram itself.
    struct Drops: Equatable {
        /// Audio included.
        var media = 0
        var audio = 0
        var control = 0
    }

    /// A datagram's target; its bytes are at the entry's index times `DatagramBatch.slotBytes` in the block.
    private struct Entry {
        var remote: TransportAddress
        var queuedAt: Instant
        var length: UInt16
        var lane: UInt16
        /// The entry behind in its lane, or the next free one.
        var next = UInt16.max
    }

    /// First in, first out, linked through the entries.
    private struct Lane {
        var head = UInt16.max
        var tail = UInt16.max
        var isEmpty: Bool { head == .max }
    }

    private struct Share {
        var id: UInt64 = 0
        /// How much of the queue its media takes.
        var weight = 0
        /// Bytes that it may send in this turn.
        var credit = 0
        var isActive = false
    }

    private let block: UnsafeMutableRawPointer
    private let entries: UnsafeMutablePointer<Entry>
    /// Lane 0 is control; a share's audio and other media are the two from `audioLane` on.
    private let lanes: UnsafeMutablePointer<Lane>
    private let shares: UnsafeMutablePointer<Share>
    /// The shares that have media, the one whose turn it is first.
    private var active: ContiguousArray<UInt16> = []
    /// What was taken out to be sent, in the order in which it leaves.
    private var taken: ContiguousArray<UInt16> = []
    private var firstFree: UInt16 = 0
    private(set) var count = 0
    /// Those of the datagrams that are control.
    private(set) var controlCount = 0
    private(set) var byteCount = 0

    init() {
        unsafe block = .allocate(byteCount: Self.datagramsMax * DatagramBatch.slotBytes, alignment: 64)
        unsafe entries = .allocate(capacity: Self.datagramsMax)
        unsafe lanes = .allocate(capacity: 1 + 2 * Self.sharesMax)
        unsafe lanes.initialize(repeating: Lane(), count: 1 + 2 * Self.sharesMax)
        unsafe shares = .allocate(capacity: Self.sharesMax)
        unsafe shares.initialize(repeating: Share(), count: Self.sharesMax)
        for index in 0..<Self.datagramsMax {
            unsafe (entries + index).initialize(
                to: Entry(
                    remote: TransportAddress(ip: .anyV4, port: 0),
                    queuedAt: Instant(nanoseconds: 0),
                    length: 0,
                    lane: 0,
                    next: index + 1 < Self.datagramsMax ? UInt16(index + 1) : .max
                )
            )
        }
        active.reserveCapacity(Self.sharesMax)
        taken.reserveCapacity(Self.datagramsMax)
    }

    deinit {
        unsafe block.deallocate()
        unsafe entries.deallocate()
        unsafe lanes.deallocate()
        unsafe shares.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    /// Media is RTP by its first byte, and its second byte is no packet type of RTCP (RFC 5761 §4); SRTP and SRTCP leave
    /// these bytes in the clear.
    static func kind(of bytes: UnsafeRawBufferPointer) -> Kind {
        guard let first = unsafe bytes.first, PacketProtocol(firstByte: first) == .rtp else { return .control }
        guard bytes.count > 1 else { return .media }
        return unsafe (192...223).contains(bytes[1]) ? .control : .media
    }

    // MARK: - In

    /// Appends a copy of 1...`DatagramBatch.slotBytes` bytes, which are dropped when what there is to make room has to
    /// stay before them.
    /// - Parameter share: whose media it is; not used for control.
    func append(
        _ bytes: UnsafeRawBufferPointer,
        to remote: TransportAddress,
        share: SendShare = SendShare(),
        at now: Instant
    ) -> Drops {
        precondition(taken.isEmpty, "what was taken out was sent or put back")
        guard let base = bytes.baseAddress, bytes.count <= DatagramBatch.slotBytes else {
            preconditionFailure("a datagram fits its slot")
        }
        let isMedia = unsafe Self.kind(of: bytes) == .media
        let place = isMedia ? findShare(share.id) : nil
        var drops = Drops()
        while count == Self.datagramsMax || byteCount + bytes.count > Self.bytesMax {
            guard makeRoom(for: bytes.count, of: place, isAudio: share.isAudio, &drops) else { return drops }
        }
        let index = firstFree
        unsafe firstFree = entries[Int(index)].next
        unsafe (block + Int(index) * DatagramBatch.slotBytes).copyMemory(from: base, byteCount: bytes.count)
        unsafe entries[Int(index)] = Entry(
            remote: remote,
            queuedAt: now,
            length: UInt16(bytes.count),
            lane: place.map { Self.lane(of: $0, isAudio: share.isAudio) } ?? 0
        )
        link(index)
        count += 1
        byteCount += bytes.count
        if place == nil { controlCount += 1 }
        return drops
    }

    /// Drops one datagram for another one of `bytes` that is to come.
    /// - Parameter place: the newcomer's share; `nil` for control.
    /// - Returns: `false` when the newcomer itself is what has to go, which is counted then.
    private func makeRoom(for bytes: Int, of place: Int?, isAudio: Bool, _ drops: inout Drops) -> Bool {
        // Where two hold as much, the newcomer's share makes room.
        var most = place
        var weight = place.map { unsafe shares[$0].weight + Self.weight(bytes) } ?? -1
        for candidate in active {
            guard unsafe shares[Int(candidate)].weight > weight else { continue }
            most = Int(candidate)
            unsafe weight = shares[Int(candidate)].weight
        }
        guard let most, unsafe shares[most].isActive else {
            if place == nil { drops.control += 1 } else { drops.media += 1 }
            if place != nil, isAudio { drops.audio += 1 }
            return false
        }
        let video = Self.lane(of: most, isAudio: false)
        if unsafe !lanes[Int(video)].isEmpty {
            drops.media += 1
            release(unlinkFirst(video))
            return true
        }
        drops.media += 1
        // Of a share that has only audio left other media gives way.
        if most == place, !isAudio { return false }
        drops.audio += 1
        release(unlinkFirst(Self.lane(of: most, isAudio: true)))
        return true
    }

    // MARK: - Out

    /// Drops the media that has waited for `age` or longer.
    /// - Returns: how many datagrams that was.
    func dropMedia(thatWaited age: Interval = SendQueue.ageMax, at now: Instant) -> Int {
        var dropped = 0
        for place in Array(active) {
            for isAudio in [true, false] {
                let lane = Self.lane(of: Int(place), isAudio: isAudio)
                while let head = first(of: lane), unsafe now - entries[Int(head)].queuedAt >= age {
                    release(unlinkFirst(lane))
                    dropped += 1
                }
            }
        }
        return dropped
    }

    /// Takes the next datagrams out to be sent; `finish` follows.
    /// - Returns: how many they are, `limit` at most.
    func take(_ limit: Int) -> Int {
        precondition(taken.isEmpty, "what was taken out was sent or put back")
        while taken.count < limit, let lane = nextLane() { taken.append(unlinkFirst(lane)) }
        return taken.count
    }

    /// One of the datagrams that were taken out, in the order in which they leave; valid until `finish`.
    func datagram(at offset: Int) -> (bytes: UnsafeRawBufferPointer, remote: TransportAddress) {
        let index = Int(taken[offset])
        let bytes = unsafe UnsafeRawBufferPointer(
            start: block + index * DatagramBatch.slotBytes,
            count: Int(entries[index].length)
        )
        return unsafe (bytes, entries[index].remote)
    }

    /// Removes the first `sent` of those that were taken out, and puts the others back where they were.
    func finish(sent: Int) {
        precondition(sent >= 0 && sent <= taken.count, "no more leave than were taken out")
        for index in taken[..<sent] { release(index) }
        for index in taken[sent...].reversed() { putBack(index) }
        taken.removeAll(keepingCapacity: true)
    }

    /// The lane whose first datagram leaves next.
    private func nextLane() -> UInt16? {
        if unsafe !lanes[0].isEmpty { return 0 }
        while let place = active.first.map(Int.init) {
            let audio = Self.lane(of: place, isAudio: true)
            let lane = unsafe lanes[Int(audio)].isEmpty ? audio + 1 : audio
            guard let head = first(of: lane) else { preconditionFailure("an active share has media") }
            let length = unsafe Int(entries[Int(head)].length)
            if unsafe shares[place].credit >= length {
                unsafe shares[place].credit -= length
                return lane
            }
            // The share's turn is over; the next one begins with more credit.
            unsafe shares[place].credit += Self.turnBytes
            if active.count > 1 { active.append(active.removeFirst()) }
        }
        return nil
    }

    // MARK: - Shares and lanes

    private static func lane(of share: Int, isAudio: Bool) -> UInt16 { UInt16(1 + 2 * share + (isAudio ? 0 : 1)) }
    private static func weight(_ bytes: Int) -> Int { max(bytes, weightMin) }
    private static func share(of lane: UInt16) -> Int? { lane == 0 ? nil : (Int(lane) - 1) / 2 }

    /// Where a share's media is kept. When all the places near its own are taken, it counts as one of the others.
    private func findShare(_ id: UInt64) -> Int {
        let home = Int(truncatingIfNeeded: id &* 0x9E37_79B9_7F4A_7C15 >> 32) & (Self.sharesMax - 1)
        var free: Int?
        for step in 0..<8 {
            let place = (home + step) & (Self.sharesMax - 1)
            if unsafe shares[place].isActive {
                if unsafe shares[place].id == id { return place }
            } else if free == nil {
                free = place
            }
        }
        guard let free else { return home }
        unsafe shares[free].id = id
        return free
    }

    private func first(of lane: UInt16) -> UInt16? {
        let head = unsafe lanes[Int(lane)].head
        return head == .max ? nil : head
    }

    /// Puts an entry at the end of its lane.
    private func link(_ index: UInt16) {
        let lane = unsafe Int(entries[Int(index)].lane)
        unsafe entries[Int(index)].next = .max
        if unsafe lanes[lane].isEmpty {
            unsafe lanes[lane].head = index
        } else {
            unsafe entries[Int(lanes[lane].tail)].next = index
        }
        unsafe lanes[lane].tail = index
        noteLinked(index, atFront: false)
    }

    private func putBack(_ index: UInt16) {
        let lane = unsafe Int(entries[Int(index)].lane)
        unsafe entries[Int(index)].next = lanes[lane].head
        if unsafe lanes[lane].isEmpty { unsafe lanes[lane].tail = index }
        unsafe lanes[lane].head = index
        noteLinked(index, atFront: true)
        if let place = Self.share(of: UInt16(lane)) { unsafe shares[place].credit += Int(entries[Int(index)].length) }
    }

    private func noteLinked(_ index: UInt16, atFront: Bool) {
        guard let place = unsafe Self.share(of: entries[Int(index)].lane) else { return }
        unsafe shares[place].weight += Self.weight(Int(entries[Int(index)].length))
        guard unsafe !shares[place].isActive else { return }
        unsafe shares[place].isActive = true
        if atFront { active.insert(UInt16(place), at: 0) } else { active.append(UInt16(place)) }
    }

    /// Takes the first entry out of a lane that has one.
    private func unlinkFirst(_ lane: UInt16) -> UInt16 {
        guard let head = first(of: lane) else { preconditionFailure("the lane has an entry") }
        unsafe lanes[Int(lane)].head = entries[Int(head)].next
        if unsafe lanes[Int(lane)].isEmpty { unsafe lanes[Int(lane)].tail = .max }
        guard let place = Self.share(of: lane) else { return head }
        unsafe shares[place].weight -= Self.weight(Int(entries[Int(head)].length))
        let audio = Self.lane(of: place, isAudio: true)
        if unsafe lanes[Int(audio)].isEmpty, unsafe lanes[Int(audio) + 1].isEmpty {
            // A share that comes back has no credit of before.
            unsafe shares[place].credit = 0
            unsafe shares[place].isActive = false
            active.removeAll { $0 == UInt16(place) }
        }
        return head
    }

    /// Gives back an entry that its lane has removed.
    private func release(_ index: UInt16) {
        byteCount -= unsafe Int(entries[Int(index)].length)
        count -= 1
        if unsafe entries[Int(index)].lane == 0 { controlCount -= 1 }
        unsafe entries[Int(index)].next = firstFree
        firstFree = index
    }
}
