import Base
import Wire

/// Which packets the newest datagrams of a link carried, by the datagrams' counters: what a repair needs. The packets
/// themselves are in the histories of their streams.
///
/// It starts small and doubles while it holds less than ``durationWanted``, so a link costs what its rate needs.
@safe
struct SentRecords: ~Copyable {
    /// One packet of a datagram.
    struct Record: BitwiseCopyable {
        var relay: MirrorID
        /// How often the packet was repaired before.
        var repairs: UInt8
        var stream: UInt64
        var sequence: ExtendedSequenceNumber
    }

    private struct Datagram: BitwiseCopyable {
        /// 0 for none, and for one that was asked for before.
        var counter: UInt64 = 0
        /// The number of its first record, and its records.
        var first: UInt64 = 0
        var count: UInt64 = 0
    }

    /// A way through one of the rings.
    private struct Lap: BitwiseCopyable {
        private var first: UInt64 = 0
        private var began = Instant(nanoseconds: 0)

        /// Begins the next lap with a number.
        /// - Returns: whether a whole lap of the ring took less time than is wanted.
        mutating func begin(with number: UInt64, capacity: Int, at now: Instant) -> Bool {
            let isShort = number - first >= UInt64(capacity) && now - began < durationWanted
            first = number
            began = now
            return isShort
        }
    }

    /// The most datagrams, and the most packets.
    static let capacityMax = 8_192
    private static let capacityMin = 256
    private static let durationWanted = Interval.milliseconds(500)

    private var capacity = 0
    private var datagrams: UnsafeMutablePointer<Datagram>?
    private var records: UnsafeMutablePointer<Record>?
    /// The newest datagram with a packet.
    private var newest: UInt64 = 0
    /// The number of the next record.
    private var next: UInt64 = 0
    private var recordsLap = Lap()
    private var datagramsLap = Lap()

    init() {}

    deinit {
        unsafe datagrams?.deallocate()
        unsafe records?.deallocate()
    }

    /// The memory in bytes.
    var footprintBytes: Int { capacity * (MemoryLayout<Datagram>.stride + MemoryLayout<Record>.stride) }

    /// Notes a packet of a datagram.
    /// - Parameter counter: the datagram's, at least that of the packet before.
    @inline(__always)
    mutating func note(_ record: Record, in counter: UInt64, at now: Instant) {
        if capacity == 0 || isRecordsLapEnd || isDatagramsLapEnd(counter) { startLap(counter, at: now) }
        guard let datagrams = unsafe datagrams, let records = unsafe records else { return }
        let place = Int(truncatingIfNeeded: counter) & (capacity - 1)
        if newest != counter {
            newest = counter
            unsafe datagrams[place] = Datagram(counter: counter, first: next)
        }
        unsafe records[Int(truncatingIfNeeded: next) & (capacity - 1)] = record
        unsafe datagrams[place].count &+= 1
        next &+= 1
    }

    /// The numbers of a datagram's records, the first time that it is asked for; then none.
    mutating func take(_ counter: UInt64) -> Range<UInt64> {
        guard counter != 0, let datagrams = unsafe datagrams else { return 0..<0 }
        let place = Int(truncatingIfNeeded: counter) & (capacity - 1)
        let datagram = unsafe datagrams[place]
        guard datagram.counter == counter else { return 0..<0 }
        unsafe datagrams[place].counter = 0
        return datagram.first..<datagram.first &+ datagram.count
    }

    /// A record by its number; `nil` when it was overwritten.
    func record(_ number: UInt64) -> Record? {
        guard number < next, next - number <= UInt64(capacity), let records = unsafe records else { return nil }
        return unsafe records[Int(truncatingIfNeeded: number) & (capacity - 1)]
    }

    /// Whether the next record goes to the start of its ring.
    @inline(__always)
    private var isRecordsLapEnd: Bool { next & (UInt64(capacity) - 1) == 0 }

    /// Whether a datagram goes to the start of its ring.
    @inline(__always)
    private func isDatagramsLapEnd(_ counter: UInt64) -> Bool {
        counter & (UInt64(capacity) - 1) == 0 && counter != newest
    }

    /// A ring begins to overwrite itself. If that comes too soon, both double.
    private mutating func startLap(_ counter: UInt64, at now: Instant) {
        guard capacity > 0 else {
            _ = recordsLap.begin(with: next, capacity: 0, at: now)
            _ = datagramsLap.begin(with: counter, capacity: 0, at: now)
            grow()
            return
        }
        let (isRecords, isDatagrams) = (isRecordsLapEnd, isDatagramsLapEnd(counter))
        var isShort = false
        if isRecords { isShort = recordsLap.begin(with: next, capacity: capacity, at: now) }
        if isDatagrams { isShort = datagramsLap.begin(with: counter, capacity: capacity, at: now) || isShort }
        if isShort, capacity < Self.capacityMax { grow() }
    }

    private mutating func grow() {
        let larger = max(capacity * 2, Self.capacityMin)
        let newDatagrams = UnsafeMutablePointer<Datagram>.allocate(capacity: larger)
        unsafe newDatagrams.initialize(repeating: Datagram(), count: larger)
        let newRecords = UnsafeMutablePointer<Record>.allocate(capacity: larger)
        let none = Record(relay: MirrorID(rawValue: 0), repairs: 0, stream: 0, sequence: .init(rawValue: 0))
        unsafe newRecords.initialize(repeating: none, count: larger)
        if let datagrams = unsafe datagrams, let records = unsafe records {
            for index in 0..<capacity {
                let datagram = unsafe datagrams[index]
                guard datagram.counter != 0 else { continue }
                unsafe newDatagrams[Int(truncatingIfNeeded: datagram.counter) & (larger - 1)] = datagram
            }
            var number = next - min(next, UInt64(capacity))
            while number < next {
                let old = unsafe records[Int(truncatingIfNeeded: number) & (capacity - 1)]
                unsafe newRecords[Int(truncatingIfNeeded: number) & (larger - 1)] = old
                number += 1
            }
            unsafe datagrams.deallocate()
            unsafe records.deallocate()
        }
        unsafe datagrams = newDatagrams
        unsafe records = newRecords
        capacity = larger
    }
}
