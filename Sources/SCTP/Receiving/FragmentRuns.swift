/// Fragments on their way to messages: runs of fragments whose numbers follow each other, and their bytes. One for each message,
/// by fragment number; of unordered DATA one for a stream, by TSN, because nothing else joins its fragments.
struct FragmentRuns: Sendable {
    struct Run: Sendable {
        var numbers: ClosedRange<Int64>
        var bytes: [UInt8]
        var hasBeginning: Bool
        var hasEnd: Bool
        /// Of the first fragment.
        var payloadProtocol: PayloadProtocol?
        /// How many fragments it is of.
        var chunkCount: Int
    }

    private(set) var runs: [Run] = []

    var isEmpty: Bool { runs.isEmpty }
    var byteCount: Int { runs.reduce(0) { $0 + $1.bytes.count } }
    var chunkCount: Int { runs.reduce(0) { $0 + $1.chunkCount } }

    /// - Returns: the message that the fragment completed, which is not held any more, and its chunks.
    /// - Throws: when the fragment does not fit what is there, or the message gets too long.
    mutating func insert(
        _ number: Int64,
        _ flags: DataFlags,
        _ payloadProtocol: PayloadProtocol?,
        _ bytes: [UInt8],
        bytesMax: Int
    ) throws(ProtocolViolation) -> Run? {
        var index = runs.count
        while index > 0, runs[index - 1].numbers.lowerBound > number { index -= 1 }
        var run = Run(
            numbers: number...number,
            bytes: [],
            hasBeginning: flags.contains(.beginning),
            hasEnd: flags.contains(.end),
            payloadProtocol: payloadProtocol,
            chunkCount: 1
        )
        if index > 0 {
            let last = runs[index - 1].numbers.upperBound
            guard last < number else { throw .brokenFragments }
            if last == number - 1 {
                guard runs[index - 1].hasEnd == run.hasBeginning else { throw .brokenFragments }
                if !run.hasBeginning {
                    // Taken out, so that its bytes grow in place.
                    index -= 1
                    run = runs.remove(at: index)
                    run.numbers = run.numbers.lowerBound...number
                    run.hasEnd = flags.contains(.end)
                    run.chunkCount += 1
                }
            }
        }
        if run.bytes.isEmpty { run.bytes = bytes } else { run.bytes += bytes }
        if index < runs.count, runs[index].numbers.lowerBound == number + 1 {
            guard runs[index].hasBeginning == run.hasEnd else { throw .brokenFragments }
            if !run.hasEnd {
                let next = runs.remove(at: index)
                run.numbers = run.numbers.lowerBound...next.numbers.upperBound
                run.bytes += next.bytes
                run.hasEnd = next.hasEnd
                run.chunkCount += next.chunkCount
            }
        }
        guard run.bytes.count <= bytesMax else { throw .messageTooLong }
        if run.hasBeginning, run.hasEnd { return run }
        runs.insert(run, at: index)
        return nil
    }

    /// Drops the runs that begin at or below `number`: their messages are given up.
    mutating func removeAll(upTo number: Int64) {
        runs.removeAll { $0.numbers.lowerBound <= number }
    }
}
