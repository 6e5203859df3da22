/// Fragments on their way to messages: runs of fragments whose numbers follow each other, and their bytes. One for each message,
/// by fragment number; of unordered DATA one for all streams, by TSN, because nothing else joins its fragments.
struct FragmentRuns: Sendable {
    struct Run: Sendable {
        let stream: StreamID
        fileprivate(set) var numbers: ClosedRange<Int64>
        fileprivate(set) var hasBeginning: Bool
        fileprivate(set) var hasEnd: Bool
        /// Of the first fragment.
        fileprivate(set) var payloadProtocol: PayloadProtocol?
        fileprivate(set) var byteCount: Int
        /// One for each fragment: put together once, when the message is complete.
        fileprivate var payloads: [[UInt8]]

        /// How many fragments it is of.
        var chunkCount: Int { payloads.count }

        var bytes: [UInt8] {
            if payloads.count == 1 { return payloads[0] }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(byteCount)
            for payload in payloads { bytes += payload }
            return bytes
        }

        /// Adds the payload of the fragment before it. `fragment` is a run without its payload.
        fileprivate mutating func prepend(_ fragment: Run, _ payload: [UInt8]) {
            numbers = fragment.numbers.lowerBound...numbers.upperBound
            hasBeginning = fragment.hasBeginning
            payloadProtocol = fragment.payloadProtocol
            byteCount += fragment.byteCount
            payloads.insert(payload, at: 0)
        }

        /// Adds the payload of the fragment that follows.
        fileprivate mutating func append(_ fragment: Run, _ payload: [UInt8]) {
            numbers = numbers.lowerBound...fragment.numbers.upperBound
            hasEnd = fragment.hasEnd
            byteCount += fragment.byteCount
            payloads.append(payload)
        }

        /// Adds the run that follows. The shorter list of payloads is moved to the longer one.
        fileprivate mutating func append(_ next: consuming Run) {
            numbers = numbers.lowerBound...next.numbers.upperBound
            hasEnd = next.hasEnd
            byteCount += next.byteCount
            if next.payloads.count > payloads.count {
                next.payloads.insert(contentsOf: payloads, at: 0)
                payloads = next.payloads
            } else {
                payloads += next.payloads
            }
        }
    }

    /// How many entries of a list of payloads take the room of a run.
    private static let payloadsPerRun = MemoryLayout<Run>.stride / MemoryLayout<[UInt8]>.stride

    private var runs = Queue<Run>()
    private(set) var byteCount = 0
    private(set) var chunkCount = 0

    var isEmpty: Bool { runs.isEmpty }

    /// - Returns: the message that the fragment completed, which is not held any more.
    /// - Throws: when the fragment does not fit what is there, or the message gets too long.
    mutating func insert(
        _ number: Int64,
        of chunk: DataChunk,
        _ payload: [UInt8],
        bytesMax: Int,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) -> Run? {
        // Without its payload: a list of one would cost an allocation for each fragment.
        var run = Run(
            stream: chunk.stream,
            numbers: number...number,
            hasBeginning: chunk.flags.contains(.beginning),
            hasEnd: chunk.flags.contains(.end),
            payloadProtocol: chunk.payloadProtocol,
            byteCount: payload.count,
            payloads: []
        )
        var index = runs.partitionIndex { $0.numbers.lowerBound <= number }
        let joinsPrevious = try joins(run, after: index - 1)
        let joinsNext = try joins(run, before: index)
        byteCount += payload.count
        chunkCount += 1
        switch (joinsPrevious, joinsNext) {
        case (false, false):
            work.addMove(of: runs.count - index)
            run.payloads = [payload]
            runs.insert(run, at: index)
        case (true, false):
            index -= 1
            runs[index].append(run, payload)
        case (false, true):
            work.addMove(of: runs[index].chunkCount / Self.payloadsPerRun)
            runs[index].prepend(run, payload)
        case (true, true):
            work.addMove(of: runs.count - index)
            let next = runs.remove(at: index)
            index -= 1
            work.add(min(next.chunkCount, runs[index].chunkCount))
            work.addMove(of: next.chunkCount / Self.payloadsPerRun)
            runs[index].append(run, payload)
            runs[index].append(next)
        }
        guard runs[index].byteCount <= bytesMax else { throw .messageTooLong }
        guard runs[index].hasBeginning, runs[index].hasEnd else { return nil }
        work.addMove(of: runs.count - index)
        let done = runs.remove(at: index)
        forget(done)
        return done
    }

    /// Whether a new fragment continues the run before it.
    private func joins(_ run: Run, after index: Int) throws(ProtocolViolation) -> Bool {
        guard index >= 0 else { return false }
        let last = runs[index].numbers.upperBound
        guard last < run.numbers.lowerBound else { throw .brokenFragments }
        guard last + 1 == run.numbers.lowerBound, runs[index].stream == run.stream else { return false }
        guard runs[index].hasEnd == run.hasBeginning else { throw .brokenFragments }
        return !run.hasBeginning
    }

    /// Whether the run behind a new fragment continues it.
    private func joins(_ run: Run, before index: Int) throws(ProtocolViolation) -> Bool {
        guard index < runs.count, runs[index].numbers.lowerBound == run.numbers.upperBound + 1,
            runs[index].stream == run.stream
        else { return false }
        guard runs[index].hasBeginning == run.hasEnd else { throw .brokenFragments }
        return !run.hasEnd
    }

    /// Drops the runs that begin at or below `number`: their messages are given up.
    mutating func removeAll(upTo number: Int64, _ work: inout WorkMeter) {
        while let first = runs.first, first.numbers.lowerBound <= number, let run = runs.removeFirst() {
            work.add()
            forget(run)
        }
    }

    /// Drops the runs of streams whose numbers start again.
    mutating func removeAll(of streams: Set<StreamID>, _ work: inout WorkMeter) {
        var kept = Queue<Run>()
        work.add(runs.count)
        while let run = runs.removeFirst() {
            if streams.contains(run.stream) { forget(run) } else { kept.append(run) }
        }
        runs = kept
    }

    private mutating func forget(_ run: Run) {
        byteCount -= run.byteCount
        chunkCount -= run.chunkCount
    }
}
