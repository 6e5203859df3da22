import Base
import Wire

/// The share of the send queue that a datagram belongs to.
package struct SendShare: Hashable, Sendable, BitwiseCopyable {
    /// Identifies what the socket's capacity is shared between, such as a channel; 0 for none.
    package var id: UInt64
    /// Audio is sent before the share's other media and dropped after it.
    package var isAudio: Bool
    /// Whether another client wrote the datagram, so that its bytes do not say what it is: it is media.
    package var isRelayed: Bool

    package init(id: UInt64 = 0, isAudio: Bool = false, isRelayed: Bool = false) {
        self.id = id
        self.isAudio = isAudio
        self.isRelayed = isRelayed
    }
}

/// The datagrams of one socket that wait for room in the kernel's send buffer.
///
/// The queue is short, because late media is useless. Control datagrams (STUN, DTLS handshakes, RTCP) are sent first: they
/// are few, and without them a connection ends. Media belongs to shares, which are scheduled by deficit round robin. Within
/// a share audio is sent first. Data of data channels is sent last, with a minimum share. Each of these classes is first in,
/// first out.
///
/// When the queue is full, data is dropped first, because its sender repeats it. Then the largest share drops its oldest
/// media that is not audio, or else its oldest audio. Control is dropped only when nothing else is left. Media that was
/// queued for `ageMax` is dropped, because its receiver no longer waits for it.
@safe
final class SendQueue {
    /// The most datagrams: about 20 ms of video packets at 1 Gbit/s.
    static let datagramsMax = 2048
    /// The most bytes.
    static let bytesMax = 2 << 20
    /// The most time that media waits: about the longest jitter buffer of a receiver.
    static let ageMax = Interval.milliseconds(200)
    /// The most shares that are distinguished; beyond that some are treated as one.
    static let sharesMax = 256
    /// The quantum of the round robin in bytes: at least one datagram.
    private static let turnBytes = 8 * DatagramBatch.slotBytes
    /// The least weight of a datagram when shares are compared: a short one also takes an entry.
    private static let weightMin = bytesMax / datagramsMax
    /// The most datagrams and bytes of data.
    static let dataDatagramsMax = 1024
    static let dataBytesMax = 1 << 20
    /// Data gets one of so many datagrams when there is always media.
    static let dataTurn = 20

    enum Kind { case media, control, data }

    /// Counts of the datagrams that were dropped for a new one, or of the new one itself.
    struct Drops: Equatable {
        /// All media, including audio.
        var media = 0
        var audio = 0
        var control = 0
        var data = 0
    }

    /// One datagram. Its bytes are at the entry's index times `DatagramBatch.slotBytes` in the block.
    private struct Entry {
        var remote: TransportAddress
        var queuedAt: Instant
        var length: UInt16
        var lane: UInt16
        /// The next entry of its lane, or of the free list.
        var next = UInt16.max
    }

    /// A first in, first out list, linked through the entries.
    private struct Lane {
        var head = UInt16.max
        var tail = UInt16.max
        var isEmpty: Bool { head == .max }
    }

    private struct Share {
        var id: UInt64 = 0
        /// The weight of its media in the queue.
        var weight = 0
        /// Its deficit counter: bytes that it may send in this round.
        var credit = 0
        var isActive = false
    }

    private let block: UnsafeMutableRawPointer
    private let entries: UnsafeMutablePointer<Entry>
    /// Lane 0 is control. Each share has a lane for audio, followed by one for other media. The last lane is data.
    private let lanes: UnsafeMutablePointer<Lane>
    private let shares: UnsafeMutablePointer<Share>
    /// The shares that have media; the first one is scheduled next.
    private var active: ContiguousArray<UInt16> = []
    /// The entries that are being sent, in order.
    private var taken: ContiguousArray<UInt16> = []
    private var firstFree: UInt16 = 0
    private(set) var count = 0
    /// How many of the datagrams are control.
    private(set) var controlCount = 0
    private(set) var byteCount = 0
    private var dataCount = 0
    private var dataByteCount = 0
    /// Datagrams of media that were taken out since the last one of data.
    private var takenSinceData = 0

    init() {
        unsafe block = .allocate(byteCount: Self.datagramsMax * DatagramBatch.slotBytes, alignment: 64)
        unsafe entries = .allocate(capacity: Self.datagramsMax)
        unsafe lanes = .allocate(capacity: Self.laneCount)
        unsafe lanes.initialize(repeating: Lane(), count: Self.laneCount)
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

    /// The first byte of a DTLS record with application data (RFC 6347 §4.1).
    private static let applicationData: UInt8 = 23

    /// Media is what is demultiplexed as RTP or RTCP (RFC 7983 §7) and not as RTCP by its second byte (RFC 5761 §4).
    /// SRTP and SRTCP do not encrypt these bytes. To a TURN client they are behind the header of a channel or a Data indication.
    static func kind(of bytes: UnsafeRawBufferPointer) -> Kind {
        guard let first = unsafe bytes.first else { return .control }
        let start =
            PacketProtocol(firstByte: first) == .turnChannel ? 4 : unsafe indicationHeaderBytes(of: bytes) ?? 0
        guard bytes.count > start else { return .control }
        let inner = unsafe bytes[start]
        guard inner != applicationData else { return .data }
        guard PacketProtocol(firstByte: inner) == .rtp else { return .control }
        guard bytes.count > start + 1 else { return .media }
        return unsafe (192...223).contains(bytes[start + 1]) ? .control : .media
    }

    /// What is before the data of a TURN server's Data indication (RFC 8656 §11.3): the header, XOR-PEER-ADDRESS of 8 or 20
    /// bytes, and the type and length of DATA. `nil` for anything else.
    private static func indicationHeaderBytes(of bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count > 36, unsafe bytes[0] == 0, unsafe bytes[1] == 0x17, unsafe bytes[22] == 0 else { return nil }
        return switch unsafe bytes[23] {
        case 8: 36
        case 20: 48
        default: nil
        }
    }

    // MARK: - Enqueue

    /// Appends a copy of 1...`DatagramBatch.slotBytes` bytes, or drops them when nothing of lower priority can be
    /// dropped instead.
    /// - Parameter share: the share of media; not used for control.
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
        let kind = unsafe share.isRelayed ? .media : Self.kind(of: bytes)
        let place = kind == .media ? findShare(share.id) : nil
        var drops = Drops()
        if kind == .data {
            guard dataCount < Self.dataDatagramsMax, dataByteCount + bytes.count <= Self.dataBytesMax else {
                drops.data += 1
                return drops
            }
        }
        while count == Self.datagramsMax || byteCount + bytes.count > Self.bytesMax {
            if dataCount > 0 {
                drops.data += 1
                release(unlinkFirst(Self.dataLane))
                continue
            }
            guard kind != .data else {
                drops.data += 1
                return drops
            }
            guard makeRoom(for: bytes.count, of: place, isAudio: share.isAudio, &drops) else { return drops }
        }
        let index = firstFree
        unsafe firstFree = entries[Int(index)].next
        unsafe (block + Int(index) * DatagramBatch.slotBytes).copyMemory(from: base, byteCount: bytes.count)
        unsafe entries[Int(index)] = Entry(
            remote: remote,
            queuedAt: now,
            length: UInt16(bytes.count),
            lane: kind == .data ? Self.dataLane : place.map { Self.lane(of: $0, isAudio: share.isAudio) } ?? 0
        )
        link(index)
        count += 1
        byteCount += bytes.count
        switch kind {
        case .media: break
        case .control: controlCount += 1
        case .data:
            dataCount += 1
            dataByteCount += bytes.count
        }
        return drops
    }

    /// Drops one queued datagram to make room for a new one of `bytes` bytes.
    /// - Parameter place: the share of the new datagram; `nil` for control.
    /// - Returns: `false` when the new datagram must be dropped instead; it is then counted.
    private func makeRoom(for bytes: Int, of place: Int?, isAudio: Bool, _ drops: inout Drops) -> Bool {
        // On a tie the share of the new datagram makes room.
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
        // In a share with only audio left, new media that is not audio is dropped.
        if most == place, !isAudio { return false }
        drops.audio += 1
        release(unlinkFirst(Self.lane(of: most, isAudio: true)))
        return true
    }

    // MARK: - Dequeue

    /// Drops the media that was queued for `age` or longer.
    /// - Returns: how many datagrams were dropped.
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

    /// Dequeues the next datagrams. The caller sends them and then calls ``finish(sent:)``.
    /// - Returns: their number, at most `limit`.
    func take(_ limit: Int) -> Int {
        precondition(taken.isEmpty, "what was taken out was sent or put back")
        while taken.count < limit, let lane = nextLane() { taken.append(unlinkFirst(lane)) }
        return taken.count
    }

    /// A datagram of the last ``take(_:)``, in the order of sending; valid until ``finish(sent:)``.
    func datagram(at offset: Int) -> (bytes: UnsafeRawBufferPointer, remote: TransportAddress) {
        let index = Int(taken[offset])
        let bytes = unsafe UnsafeRawBufferPointer(
            start: block + index * DatagramBatch.slotBytes,
            count: Int(entries[index].length)
        )
        return unsafe (bytes, entries[index].remote)
    }

    /// Removes the first `sent` dequeued datagrams, and puts the others back to the front of their lanes.
    func finish(sent: Int) {
        precondition(sent >= 0 && sent <= taken.count, "no more leave than were taken out")
        for index in taken[..<sent] { release(index) }
        for index in taken[sent...].reversed() { putBack(index) }
        taken.removeAll(keepingCapacity: true)
    }

    /// The lane whose first datagram is sent next.
    private func nextLane() -> UInt16? {
        if unsafe !lanes[0].isEmpty { return 0 }
        let hasData = unsafe !lanes[Int(Self.dataLane)].isEmpty
        if hasData, active.isEmpty || takenSinceData >= Self.dataTurn {
            takenSinceData = 0
            return Self.dataLane
        }
        if hasData { takenSinceData += 1 }
        while let place = active.first.map(Int.init) {
            let audio = Self.lane(of: place, isAudio: true)
            let lane = unsafe lanes[Int(audio)].isEmpty ? audio + 1 : audio
            guard let head = first(of: lane) else { preconditionFailure("an active share has media") }
            let length = unsafe Int(entries[Int(head)].length)
            if unsafe shares[place].credit >= length {
                unsafe shares[place].credit -= length
                return lane
            }
            // The share's round is over; the next one adds a quantum.
            unsafe shares[place].credit += Self.turnBytes
            if active.count > 1 { active.append(active.removeFirst()) }
        }
        return nil
    }

    // MARK: - Shares and lanes

    private static func lane(of share: Int, isAudio: Bool) -> UInt16 { UInt16(1 + 2 * share + (isAudio ? 0 : 1)) }
    private static let laneCount = 2 + 2 * sharesMax
    private static let dataLane = UInt16(laneCount - 1)
    private static func weight(_ bytes: Int) -> Int { max(bytes, weightMin) }
    private static func share(of lane: UInt16) -> Int? { lane == 0 || lane == dataLane ? nil : (Int(lane) - 1) / 2 }

    /// The slot of a share, by open addressing. When all slots nearby are taken, the share is treated as another one.
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

    /// Appends an entry to its lane.
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

    /// Removes the first entry of a lane that is not empty.
    private func unlinkFirst(_ lane: UInt16) -> UInt16 {
        guard let head = first(of: lane) else { preconditionFailure("the lane has an entry") }
        unsafe lanes[Int(lane)].head = entries[Int(head)].next
        if unsafe lanes[Int(lane)].isEmpty { unsafe lanes[Int(lane)].tail = .max }
        guard let place = Self.share(of: lane) else { return head }
        unsafe shares[place].weight -= Self.weight(Int(entries[Int(head)].length))
        let audio = Self.lane(of: place, isAudio: true)
        if unsafe lanes[Int(audio)].isEmpty, unsafe lanes[Int(audio) + 1].isEmpty {
            // A share that becomes active again starts without credit.
            unsafe shares[place].credit = 0
            unsafe shares[place].isActive = false
            active.removeAll { $0 == UInt16(place) }
        }
        return head
    }

    /// Returns an unlinked entry to the free list.
    private func release(_ index: UInt16) {
        let length = unsafe Int(entries[Int(index)].length)
        byteCount -= length
        count -= 1
        switch unsafe entries[Int(index)].lane {
        case 0: controlCount -= 1
        case Self.dataLane:
            dataCount -= 1
            dataByteCount -= length
        default: break
        }
        unsafe entries[Int(index)].next = firstFree
        firstFree = index
    }
}
