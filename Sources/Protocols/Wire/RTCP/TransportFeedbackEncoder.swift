import Base

/// Encodes the packet statuses of one transport-wide feedback packet incrementally
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
public struct TransportFeedbackEncoder: Sendable {
    /// Ticks of 250 µs in a unit of the reference time (64 ms).
    private static let ticksPerReference: Int64 = 256
    /// Bytes of the RTCP header and the feedback header.
    private static let headerLength = 20

    /// The most bytes of the finished packet.
    public let bytesMax: Int
    /// The first packet reported on.
    public let base: TransportSequenceNumber
    /// The packets reported on so far.
    public private(set) var statusCount = 0
    private let referenceTime: Int64
    private var previousTicks: Int64
    private var chunks: [UInt16] = []
    private var deltas: [UInt8] = []
    private var open = OpenChunk()

    /// - Parameters:
    ///   - base: the first packet reported on, received or not.
    ///   - firstArrivalTicks: the arrival time of the first received packet, in ticks of 250 µs on the arrival clock.
    public init(base: TransportSequenceNumber, firstArrivalTicks: Int64, bytesMax: Int = 1200) {
        precondition(bytesMax >= 64)
        self.base = base
        self.bytesMax = bytesMax
        referenceTime = firstArrivalTicks.floorDivided(by: Self.ticksPerReference)
        previousTicks = referenceTime &* Self.ticksPerReference
    }

    /// Adds `missing` packets that were not received, followed by one that was.
    /// - Returns: `false`, with nothing added, when that would exceed ``bytesMax``, a 16-bit delta or the 16-bit count.
    ///   The packets then belong to the next feedback.
    public mutating func append(missing: Int, arrivalTicks: Int64) -> Bool {
        precondition(missing >= 0)
        guard statusCount + missing < 0xFFFF else { return false }
        let delta = arrivalTicks &- previousTicks
        guard let narrow = Int16(exactly: delta) else { return false }
        let isSmall = (0...255).contains(narrow)
        let saved = (open: open, chunkCount: chunks.count)
        for _ in 0..<missing { append(symbol: TransportFeedbackSymbol.notReceived) }
        append(symbol: isSmall ? TransportFeedbackSymbol.smallDelta : TransportFeedbackSymbol.largeDelta)
        let chunkLength = 2 * (chunks.count + 1)
        let length = Self.headerLength + chunkLength + deltas.count + (isSmall ? 1 : 2)
        guard (length + 3) / 4 * 4 <= bytesMax else {
            open = saved.open
            chunks.removeLast(chunks.count - saved.chunkCount)
            return false
        }
        if isSmall {
            deltas.append(UInt8(narrow))
        } else {
            deltas.append(bigEndian: UInt16(bitPattern: narrow))
        }
        previousTicks = arrivalTicks
        statusCount += missing + 1
        return true
    }

    func write(feedbackCount: UInt8, to bytes: inout [UInt8]) {
        bytes.append(bigEndian: base.rawValue)
        bytes.append(bigEndian: UInt16(statusCount))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: referenceTime) << 8 | UInt32(feedbackCount))
        for chunk in chunks { bytes.append(bigEndian: chunk) }
        var rest = open
        if !rest.isEmpty { bytes.append(bigEndian: rest.close(isLast: true)) }
        bytes.append(contentsOf: deltas)
    }

    private mutating func append(symbol: UInt16) {
        guard !open.append(symbol) else { return }
        chunks.append(open.close(isLast: false))
        // Closing keeps at most six symbols, so there is room.
        let added = open.append(symbol)
        precondition(added, "a closed chunk leaves room")
    }
}

/// The last chunk while its encoding is undecided: a run, 14 one-bit symbols or 7 two-bit symbols.
private struct OpenChunk: Sendable {
    private static let oneBitCount = 14
    private static let twoBitCount = 7
    private static let runMax = 0x1FFF

    /// The first 14 symbols, two bits each, the oldest in the lowest bits.
    private var symbols: UInt32 = 0
    private var count = 0
    private var isRun = true
    private var hasLarge = false

    private func symbol(_ index: Int) -> UInt16 { UInt16(truncatingIfNeeded: symbols >> UInt32(2 * index)) & 0x3 }

    var isEmpty: Bool { count == 0 }

    /// Adds a symbol; `false` when it does not fit in one chunk with the earlier ones.
    mutating func append(_ symbol: UInt16) -> Bool {
        let isLarge = symbol == TransportFeedbackSymbol.largeDelta
        let continuesRun = isRun && (count == 0 || symbol == self.symbol(0))
        let fits =
            count < Self.twoBitCount || count < Self.oneBitCount && !hasLarge && !isLarge
            || count < Self.runMax && continuesRun
        guard fits else { return false }
        if count < Self.oneBitCount { symbols |= UInt32(symbol) << UInt32(2 * count) }
        count += 1
        isRun = continuesRun
        hasLarge = hasLarge || isLarge
        return true
    }

    /// Encodes one chunk and removes its symbols. Symbols remain only when this is not the last chunk, which may be
    /// partly filled.
    mutating func close(isLast: Bool) -> UInt16 {
        precondition(count > 0)
        if isRun {
            let chunk = symbol(0) << 13 | UInt16(count)
            self = OpenChunk()
            return chunk
        }
        // Here `count` is at most 14, because a longer run accepts no different symbol.
        if !hasLarge, isLast || count == Self.oneBitCount {
            var chunk: UInt16 = 0x8000
            for index in 0..<count { chunk |= symbol(index) << UInt16(Self.oneBitCount - 1 - index) }
            self = OpenChunk()
            return chunk
        }
        precondition(isLast || count >= Self.twoBitCount, "a vector inside the list is full")
        let taken = min(count, Self.twoBitCount)
        var chunk: UInt16 = 0xC000
        for index in 0..<taken { chunk |= symbol(index) << UInt16(2 * (Self.twoBitCount - 1 - index)) }
        var rest = OpenChunk()
        for index in taken..<count {
            let added = rest.append(symbol(index))
            precondition(added, "seven symbols fit")
        }
        self = rest
        return chunk
    }
}
