/// A message that arrived.
public struct IncomingMessage: Hashable, Sendable {
    public let stream: StreamID
    public let payloadProtocol: PayloadProtocol
    public let isUnordered: Bool
    public let bytes: [UInt8]
}

/// Puts fragments together, and ordered messages into their order (RFC 9260 §6.5, §6.6, §6.9; RFC 8260 §2.2).
struct Reassembly: Sendable {
    private struct Key: Hashable {
        let stream: StreamID
        let isUnordered: Bool
    }

    /// One direction of a stream, and one kind of order.
    private struct Line: Sendable {
        /// The next ordered message.
        var next: Int64 = 0
        /// Parts of messages, by number; ordered DATA and all I-DATA. Rising.
        var partial = Queue<(number: Int64, runs: FragmentRuns)>()
        /// Whole ordered messages that wait for earlier ones. Rising.
        var waiting = Queue<(number: Int64, message: IncomingMessage, chunkCount: Int)>()
    }

    /// What holding one chunk costs besides its payload.
    static let chunkOverhead = 64
    /// How far ahead of the next message one may be.
    private static let aheadMax: Int64 = 1 << 16
    /// The most streams that a peer may use.
    static let streamsMax = 1_024

    private var lines: [Key: Line] = [:]
    /// Unordered DATA of all streams.
    private var unnumbered = FragmentRuns()
    var isInterleaved = false
    let messageBytesMax: Int
    /// Payload and overhead of all that is held.
    private(set) var heldBytes = 0
    private(set) var heldChunks = 0

    init(messageBytesMax: Int) { self.messageBytesMax = messageBytesMax }

    /// Whether another stream may be used.
    func accepts(_ stream: StreamID) -> Bool {
        lines.count < Self.streamsMax || lines[Key(stream: stream, isUnordered: false)] != nil
            || lines[Key(stream: stream, isUnordered: true)] != nil
    }

    /// Adds a chunk that has not arrived before.
    /// - Parameter ready: gets the messages that it completed or freed.
    mutating func insert(
        _ chunk: DataChunk,
        tsn: Int64,
        payload: [UInt8],
        into ready: inout Queue<AssociationEvent>,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) {
        let isUnordered = chunk.flags.contains(.unordered)
        let isWhole = chunk.flags.isSuperset(of: [.beginning, .end])
        if isUnordered, isWhole {
            ready.append(.message(message(chunk.stream, chunk.payloadProtocol, isUnordered: true, payload)))
            return
        }
        if isUnordered, !isInterleaved {
            let done = try unnumbered.insert(tsn, of: chunk, payload, bytesMax: messageBytesMax, &work)
            hold(payload.count, 1)
            guard let done else { return }
            release(done.byteCount, done.chunkCount)
            ready.append(.message(message(chunk.stream, done.payloadProtocol, isUnordered: true, done.bytes)))
            return
        }
        let key = Key(stream: chunk.stream, isUnordered: isUnordered)
        // Taken out and put back, so that it changes in place.
        var line = lines.removeValue(forKey: key) ?? Line()
        defer { if !isUnordered || !line.partial.isEmpty { lines[key] = line } }
        let number =
            isInterleaved
            ? SerialNumber.extend(chunk.messageNumber, near: line.next)
            : SerialNumber.extend(UInt16(truncatingIfNeeded: chunk.messageNumber), near: line.next)
        guard number <= line.next + Self.aheadMax || isUnordered else { throw .messageNumberTooFar }
        // A number that is over: a repetition under a new TSN, which says nothing.
        guard number >= line.next || isUnordered else { return }
        // Nearly all messages are one chunk, in order.
        if isWhole, number == line.next, line.waiting.isEmpty, line.partial.isEmpty {
            line.next += 1
            ready.append(.message(message(chunk.stream, chunk.payloadProtocol, isUnordered: false, payload)))
            return
        }
        hold(payload.count, 1)
        var bytes = payload
        var payloadProtocol = chunk.payloadProtocol
        var chunkCount = 1
        if !isWhole {
            let position = isInterleaved ? Int64(chunk.fragment) : tsn
            guard let done = try insertPartial(chunk, number, at: position, payload, into: &line, &work) else { return }
            bytes = done.bytes
            payloadProtocol = done.payloadProtocol
            chunkCount = done.chunkCount
        }
        let complete = message(chunk.stream, payloadProtocol, isUnordered: isUnordered, bytes)
        guard !isUnordered else {
            release(bytes.count, chunkCount)
            ready.append(.message(complete))
            return
        }
        guard number > line.next else {
            line.next += 1
            release(bytes.count, chunkCount)
            ready.append(.message(complete))
            deliver(&line, into: &ready, &work)
            return
        }
        let place = line.waiting.partitionIndex { $0.number < number }
        guard place == line.waiting.count || line.waiting[place].number != number else { throw .brokenFragments }
        work.addMove(of: line.waiting.count - place)
        line.waiting.insert((number, complete, chunkCount), at: place)
    }

    private mutating func insertPartial(
        _ chunk: DataChunk,
        _ number: Int64,
        at position: Int64,
        _ payload: [UInt8],
        into line: inout Line,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) -> FragmentRuns.Run? {
        let place = line.partial.partitionIndex { $0.number < number }
        if place == line.partial.count || line.partial[place].number != number {
            work.addMove(of: line.partial.count - place)
            line.partial.insert((number, FragmentRuns()), at: place)
        }
        let done = try line.partial[place].runs.insert(position, of: chunk, payload, bytesMax: messageBytesMax, &work)
        guard let done else {
            guard line.partial[place].runs.byteCount <= messageBytesMax else { throw .messageTooLong }
            return nil
        }
        work.addMove(of: line.partial.count - place)
        let rest = line.partial.remove(at: place)
        // Fragments outside of a whole message contradict it.
        guard rest.runs.isEmpty else { throw .brokenFragments }
        return done
    }

    private mutating func deliver(
        _ line: inout Line,
        into ready: inout Queue<AssociationEvent>,
        _ work: inout WorkMeter
    ) {
        while let first = line.waiting.first, first.number <= line.next {
            work.add()
            _ = line.waiting.removeFirst()
            line.next = first.number + 1
            release(first.message.bytes.count, first.chunkCount)
            ready.append(.message(first.message))
        }
    }

    private func message(
        _ stream: StreamID,
        _ payloadProtocol: PayloadProtocol?,
        isUnordered: Bool,
        _ bytes: [UInt8]
    ) -> IncomingMessage {
        IncomingMessage(
            stream: stream,
            payloadProtocol: payloadProtocol ?? PayloadProtocol(rawValue: 0),
            isUnordered: isUnordered,
            bytes: bytes
        )
    }

    // MARK: - Skipping and resetting

    /// The sender gave up everything up to `tsn`, and these messages with it.
    mutating func forward(
        to tsn: Int64,
        _ numbers: ForwardedNumbers,
        into ready: inout Queue<AssociationEvent>,
        _ work: inout WorkMeter
    ) {
        for skipped in numbers.skipped {
            // It is read, looked up, taken out and put back.
            work.add(4)
            let key = Key(stream: skipped.stream, isUnordered: skipped.isUnordered)
            guard lines[key] != nil || (!skipped.isUnordered && accepts(skipped.stream)) else { continue }
            var line = lines.removeValue(forKey: key) ?? Line()
            let number =
                isInterleaved
                ? SerialNumber.extend(skipped.messageNumber, near: line.next)
                : SerialNumber.extend(UInt16(truncatingIfNeeded: skipped.messageNumber), near: line.next)
            while let first = line.partial.first, first.number <= number {
                work.add()
                _ = line.partial.removeFirst()
                drop(first.runs)
            }
            if !skipped.isUnordered {
                // Whole messages that are skipped too had arrived: they are delivered in their order.
                while let first = line.waiting.first, first.number <= number {
                    line.next = first.number
                    deliver(&line, into: &ready, &work)
                }
                line.next = max(line.next, number + 1)
                deliver(&line, into: &ready, &work)
            }
            if !skipped.isUnordered || !line.partial.isEmpty { lines[key] = line }
        }
        guard !isInterleaved else { return }
        // Unordered fragments are not listed: what is at or below the number is over.
        dropUnnumbered { $0.removeAll(upTo: tsn, &work) }
    }

    /// The peer reset its outgoing streams, or all: their numbers start again.
    mutating func reset(_ streams: Set<StreamID>?, _ work: inout WorkMeter) {
        guard let streams else {
            work.add(lines.count)
            return removeAll()
        }
        for stream in streams {
            for isUnordered in [false, true] {
                work.add()
                guard var line = lines.removeValue(forKey: Key(stream: stream, isUnordered: isUnordered)) else {
                    continue
                }
                while let (_, runs) = line.partial.removeFirst() { drop(runs) }
                while let waiting = line.waiting.removeFirst() {
                    release(waiting.message.bytes.count, waiting.chunkCount)
                }
            }
        }
        if !unnumbered.isEmpty { dropUnnumbered { $0.removeAll(of: streams, &work) } }
    }

    mutating func removeAll() {
        lines = [:]
        unnumbered = FragmentRuns()
        heldBytes = 0
        heldChunks = 0
    }

    private mutating func drop(_ runs: FragmentRuns) { release(runs.byteCount, runs.chunkCount) }

    /// Releases what `remove` takes out of the unordered DATA.
    private mutating func dropUnnumbered(_ remove: (inout FragmentRuns) -> Void) {
        let (bytes, chunks) = (unnumbered.byteCount, unnumbered.chunkCount)
        remove(&unnumbered)
        release(bytes - unnumbered.byteCount, chunks - unnumbered.chunkCount)
    }

    private mutating func hold(_ bytes: Int, _ chunks: Int) {
        heldBytes += bytes + chunks * Self.chunkOverhead
        heldChunks += chunks
    }

    private mutating func release(_ bytes: Int, _ chunks: Int) {
        heldBytes -= bytes + chunks * Self.chunkOverhead
        heldChunks -= chunks
    }
}
