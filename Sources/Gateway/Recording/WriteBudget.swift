/// Bounds the bytes that wait for the disk, of all recordings of a node together.
///
/// A disk that stalls costs recordings, and never memory or a packet of a call: over the budget, the file with the most waiting
/// bytes and the one whose bytes found no room get no more until half of the budget is free again.
package struct WriteBudget: Sendable {
    /// What becomes of bytes.
    package enum Decision: Hashable, Sendable {
        case write
        /// They are left out, up to the file's next key frame after ``WriteBudget/isHeld(_:)`` ends.
        case drop
    }

    private let bytesMax: Int
    private var waiting: [Int: Int] = [:]
    private var held: Set<Int> = []
    private var total = 0

    /// Files that were held since the start; one may count more than once.
    package private(set) var overruns = 0

    /// - Parameter bytesMax: of all files.
    package init(bytesMax: Int) { self.bytesMax = max(bytesMax, 0) }

    /// The bytes that wait.
    package var waitingBytes: Int { total }

    /// Whether a file gets no bytes at present.
    package func isHeld(_ file: Int) -> Bool { held.contains(file) }

    /// Bytes are to be written to a file.
    package mutating func add(_ bytes: Int, of file: Int) -> Decision {
        guard !held.contains(file) else { return .drop }
        guard total + bytes > bytesMax else {
            waiting[file, default: 0] += bytes
            total += bytes
            return .write
        }
        // Whoever has the most waiting is held, be it another file: its bytes are given to the disk already.
        let fullest = waiting.max { ($0.value, $1.key) < ($1.value, $0.key) }
        if let fullest, fullest.value > waiting[file, default: 0] + bytes { hold(fullest.key) }
        hold(file)
        return .drop
    }

    private mutating func hold(_ file: Int) { if held.insert(file).inserted { overruns &+= 1 } }

    /// Bytes of a file have reached the disk, or failed to.
    package mutating func remove(_ bytes: Int, of file: Int) {
        let known = waiting[file, default: 0]
        let removed = min(bytes, known)
        waiting[file] = known - removed > 0 ? known - removed : nil
        total -= removed
        if total <= bytesMax / 2 { held = [] }
    }

    /// A file is not written any more. What waits of it still counts until it has reached the disk.
    package mutating func close(_ file: Int) { held.remove(file) }
}

/// What the free space of the disk of recordings allows.
package struct DiskWatch: Sendable {
    package enum State: Hashable, Sendable {
        case free
        /// Recordings go on, and none begins.
        case low
        /// All recordings end, and their files are closed.
        case full
    }

    /// Below this all recordings end, whatever is set.
    package static let freeBytesMin: UInt64 = 256 << 20
    /// The file that is deleted when the disk is full, so that tables and reports can be written.
    package static let reserveBytes: UInt64 = 64 << 20
    /// Of what is set, more has to be free before recordings begin again.
    private static let hysteresis = 1.1

    private let freeShareMin: Double
    package private(set) var state = State.free

    /// - Parameter freeShareMin: of the disk, 0…1, below which no recording begins.
    package init(freeShareMin: Double) { self.freeShareMin = min(max(freeShareMin, 0), 1) }

    /// The disk was looked at.
    package mutating func measured(totalBytes: UInt64, freeBytes: UInt64) {
        let share = totalBytes == 0 ? 0 : Double(freeBytes) / Double(totalBytes)
        let factor = state == .free ? 1 : Self.hysteresis
        if Double(freeBytes) < Double(Self.freeBytesMin) * (state == .full ? Self.hysteresis : 1) {
            state = .full
        } else {
            state = share < freeShareMin * factor ? .low : .free
        }
    }

    /// A write found no space.
    package mutating func writeFailed() { state = .full }
}
