/// Gathers packet statuses for one transport-wide feedback packet, packing them as they come
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
public struct TransportFeedbackEncoder: Sendable {
    /// Ticks of 250 µs in a unit of the reference time, 64 ms.
    public static let ticksPerReference: Int64 = 256
    /// RTCP head and feedback head.
    private static let headLength = 20

    /// The most bytes that the finished packet may take.
    public let bytesMax: Int
    /// The first packet reported on.
    public let base: TransportSequenceNumber
    /// Packets reported on so far.
    public private(set) var statusCount = 0
    private let referenceTime: Int64
    private var previousTicks: Int64
    private var chunks: [UInt16] = []
    private var deltas: [UInt8] = []
    private var open = OpenChunk()

    /// - Parameters:
    ///   - base: the first packet that will be added, arrived or not.
    ///   - firstArrivalTicks: when the first one that arrived did, in ticks of 250 µs on the arrival clock.
    public init(base: TransportSequenceNumber, firstArrivalTicks: Int64, bytesMax: Int = 1200) {
        precondition(bytesMax >= 64)
        self.base = base
        self.bytesMax = bytesMax
        referenceTime = firstArrivalTicks.floorDivided(by: Self.ticksPerReference)
        previousTicks = referenceTime &* Self.ticksPerReference
    }

    /// Adds `missing` packets that did not arrive and the one behind them, which did.
    /// - Returns: `false`, and nothing added, when it would exceed a limit: `bytesMax`, the 16 bits of a delta, or those
    ///   of the count. It then goes into a next packet.
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
        let length = Self.headLength + chunkLength + deltas.count + (isSmall ? 1 : 2)
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
        // Closing keeps at most six symbols: with a large one there are seven, of which none stays.
        let added = open.append(symbol)
        precondition(added, "a closed chunk leaves room")
    }
}

/// The last chunk, while it is still open whether it becomes a run, 14 one-bit symbols or 7 two-bit ones.
private struct OpenChunk: Sendable {
    private static let oneBitCount = 14
    private static let twoBitCount = 7
    private static let runMax = 0x1FFF

    /// The first 14 symbols, two bits each, the oldest lowest.
    private var symbols: UInt32 = 0
    private var count = 0
    private var isRun = true
    private var hasLarge = false

    private func symbol(_ index: Int) -> UInt16 { UInt16(truncatingIfNeeded: symbols >> UInt32(2 * index)) & 0x3 }

    var isEmpty: Bool { count == 0 }

    /// Whether the symbol could be taken in with all the earlier ones in one chunk.
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

    /// Takes one chunk out. Symbols stay behind only when this is not the last chunk: behind the last one nothing
    /// tells how many of its symbols are used but the status count.
    mutating func close(isLast: Bool) -> UInt16 {
        precondition(count > 0)
        if isRun {
            let chunk = symbol(0) << 13 | UInt16(count)
            self = OpenChunk()
            return chunk
        }
        // From here `count` is at most 14: a longer run refuses a symbol that differs.
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
