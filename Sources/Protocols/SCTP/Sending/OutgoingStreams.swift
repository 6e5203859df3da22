import Base

/// The messages that wait for their first transmission, and which of them is next: the stream that had the least service for its
/// weight (RFC 8260 §3.6). With interleaving it decides for each fragment, else for each message.
///
/// Fragments are cut at the same places for every receiver of a message, and do not depend on the room in a packet.
struct OutgoingStreams: Sendable {
    struct Stream: Sendable {
        enum State: Hashable, Sendable {
            case open
            /// Sends what it has, then waits to be reset.
            case closing
            /// The request is on its way: nothing may be sent.
            case resetting
        }

        let id: StreamID
        var weight: Int
        var state = State.open
        var messages = Queue<OutgoingMessage>()
        /// Payload bytes that were never sent, without messages of control.
        var bufferedBytes = 0
        /// The same with messages of control.
        var queuedBytes = 0
        /// Of the first message.
        var sentBytes = 0
        var nextFragment: UInt32 = 0
        /// Of the first message, once its first fragment was sent.
        var message: UInt64?
        var messageNumber: UInt32 = 0
        var nextOrdered: UInt32 = 0
        var nextUnordered: UInt32 = 0
        /// The service that the stream had, in bytes for a weight of 256.
        var virtualTime: Int64 = 0
    }

    /// The default of DCEP (RFC 8831 §6.4).
    static let weightDefault = 256
    /// What a queued message costs besides its payload.
    static let messageOverhead = 64

    private(set) var streams: [Stream] = []
    /// Payloads and overhead of all queued messages.
    private(set) var queuedBytes = 0
    private(set) var bufferedBytes = 0
    var isInterleaved = false
    private var nextMessage: UInt64 = 0
    private var virtualTime: Int64 = 0
    /// Without interleaving: the stream whose first message has begun.
    private var begun: StreamID?

    var isEmpty: Bool { queuedBytes == 0 }
    var fragmentBytesMax: Int {
        PacketLayout.bytesMax - PacketLayout.headerBytes
            - (isInterleaved ? DataChunk.interleavedHeaderBytes : DataChunk.headerBytes)
    }

    func index(of id: StreamID) -> Int? { streams.firstIndex { $0.id == id } }
    subscript(_ id: StreamID) -> Stream? { index(of: id).map { streams[$0] } }

    /// - Returns: `false` when there are too many streams.
    mutating func open(_ id: StreamID, weight: Int? = nil, max: Int) -> Bool {
        if let index = index(of: id) {
            if let weight { streams[index].weight = Swift.max(weight, 1) }
            return true
        }
        guard streams.count < max else { return false }
        streams.append(Stream(id: id, weight: Swift.max(weight ?? Self.weightDefault, 1), virtualTime: virtualTime))
        return true
    }

    /// - Parameter id: an opened stream.
    mutating func append(_ message: OutgoingMessage, to id: StreamID) {
        guard let index = index(of: id) else { return }
        if streams[index].messages.isEmpty {
            streams[index].virtualTime = max(streams[index].virtualTime, virtualTime)
        }
        streams[index].messages.append(message)
        streams[index].queuedBytes += message.payload.count
        queuedBytes += message.payload.count + Self.messageOverhead
        if message.isCounted {
            streams[index].bufferedBytes += message.payload.count
            bufferedBytes += message.payload.count
        }
    }

    mutating func setState(_ state: Stream.State, of id: StreamID) {
        if let index = index(of: id) { streams[index].state = state }
    }

    /// Closes those of `ids` that are open.
    /// - Returns: which.
    mutating func close(_ ids: Set<StreamID>) -> [StreamID] {
        var closed: [StreamID] = []
        for index in streams.indices where streams[index].state == .open && ids.contains(streams[index].id) {
            streams[index].state = .closing
            closed.append(streams[index].id)
        }
        return closed
    }

    /// Holds the closing streams that have sent everything until they are reset.
    /// - Returns: which, at most as many as one request names.
    mutating func startResets() -> [StreamID] {
        var idle: [StreamID] = []
        for index in streams.indices where streams[index].state == .closing && streams[index].messages.isEmpty {
            guard idle.count < ReconfigurationParameter.streamsMax else { break }
            streams[index].state = .resetting
            idle.append(streams[index].id)
        }
        return idle
    }

    /// The streams were reset: their numbers start again, and they take no place any more.
    mutating func remove(_ ids: Set<StreamID>) {
        for index in streams.indices where ids.contains(streams[index].id) {
            while !streams[index].messages.isEmpty { removeFirstMessage(of: index) }
        }
        streams.removeAll { ids.contains($0.id) }
    }

    // MARK: - Sending

    /// The next fragment, if one waits and fits.
    /// - Parameters:
    ///   - room: the bytes left in the packet, for the chunk's header too.
    ///   - now: messages that expired are dropped unsent.
    mutating func next(room: Int, at now: Instant) -> SentChunk? {
        while let index = nextIndex() {
            guard let message = streams[index].messages.first else { return nil }
            if streams[index].sentBytes == 0, message.isExpired(at: now) {
                removeFirstMessage(of: index)
                continue
            }
            let start = streams[index].sentBytes
            let count = min(message.payload.count - start, fragmentBytesMax)
            let header = isInterleaved ? DataChunk.interleavedHeaderBytes : DataChunk.headerBytes
            guard header + PacketLayout.padded(count) <= room else { return nil }
            return take(start..<start + count, of: message, at: index, now)
        }
        return nil
    }

    /// The size of the chunk that ``next(room:at:)`` would return, with padding.
    mutating func nextByteCount(at now: Instant) -> Int? {
        while let index = nextIndex() {
            guard let message = streams[index].messages.first else { return nil }
            if streams[index].sentBytes == 0, message.isExpired(at: now) {
                removeFirstMessage(of: index)
                continue
            }
            let header = isInterleaved ? DataChunk.interleavedHeaderBytes : DataChunk.headerBytes
            return header + PacketLayout.padded(min(message.payload.count - streams[index].sentBytes, fragmentBytesMax))
        }
        return nil
    }

    private func nextIndex() -> Int? {
        if !isInterleaved, let begun, let index = index(of: begun) { return index }
        var best: Int?
        for index in streams.indices
        where !streams[index].messages.isEmpty && streams[index].state != .resetting {
            if let chosen = best, streams[chosen].virtualTime <= streams[index].virtualTime { continue }
            best = index
        }
        return best
    }

    private mutating func take(
        _ range: Range<Int>,
        of message: OutgoingMessage,
        at index: Int,
        _ now: Instant
    ) -> SentChunk {
        if range.lowerBound == 0 { begin(message, at: index) }
        var flags: DataFlags = message.isOrdered ? [] : .unordered
        if range.lowerBound == 0 { flags.insert(.beginning) }
        if range.upperBound == message.payload.count { flags.insert(.end) }
        let chunk = SentChunk(
            payload: message.payload,
            range: range,
            stream: streams[index].id,
            flags: flags,
            payloadProtocol: message.payloadProtocol,
            messageNumber: streams[index].messageNumber,
            fragment: streams[index].nextFragment,
            message: streams[index].message ?? 0,
            retransmissionsMax: message.retransmissionsMax,
            expiresAt: message.expiresAt,
            sentAt: now
        )
        virtualTime = max(virtualTime, streams[index].virtualTime)
        streams[index].virtualTime += Int64(range.count * Self.weightDefault / streams[index].weight) + 1
        if flags.contains(.end) {
            removeFirstMessage(of: index)
        } else {
            streams[index].sentBytes = range.upperBound
            streams[index].nextFragment &+= 1
            subtract(range.count, isCounted: message.isCounted, at: index)
        }
        return chunk
    }

    /// Numbers the first message of a stream.
    private mutating func begin(_ message: OutgoingMessage, at index: Int) {
        streams[index].message = nextMessage
        nextMessage &+= 1
        streams[index].nextFragment = 0
        begun = streams[index].id
        if message.isOrdered {
            streams[index].messageNumber = streams[index].nextOrdered
            streams[index].nextOrdered &+= 1
        } else if isInterleaved {
            streams[index].messageNumber = streams[index].nextUnordered
            streams[index].nextUnordered &+= 1
        } else {
            streams[index].messageNumber = 0
        }
    }

    private mutating func subtract(_ count: Int, isCounted: Bool, at index: Int) {
        queuedBytes -= count
        streams[index].queuedBytes -= count
        guard isCounted else { return }
        bufferedBytes -= count
        streams[index].bufferedBytes -= count
    }

    private mutating func removeFirstMessage(of index: Int) {
        guard let message = streams[index].messages.removeFirst() else { return }
        subtract(message.payload.count - streams[index].sentBytes, isCounted: message.isCounted, at: index)
        queuedBytes -= Self.messageOverhead
        if streams[index].message != nil, begun == streams[index].id { begun = nil }
        streams[index].sentBytes = 0
        streams[index].message = nil
    }

    // MARK: - Giving up

    /// Drops the unsent rest of a message of which a fragment was given up.
    /// - Returns: whether there was one, so that its last fragment will never be sent.
    mutating func discardRest(of message: UInt64, on id: StreamID) -> Bool {
        guard let index = index(of: id), streams[index].message == message else { return false }
        removeFirstMessage(of: index)
        return true
    }

    /// Drops the oldest messages of a stream of which nothing was sent, until `bytes` are left at most.
    /// - Returns: how many were dropped.
    mutating func discardUnsent(on id: StreamID, downTo bytes: Int) -> Int {
        guard let index = index(of: id), streams[index].queuedBytes > bytes else { return 0 }
        // A message that has begun is finished; it is the first.
        var kept = Queue<OutgoingMessage>()
        var dropped = 0
        while let message = streams[index].messages.first {
            let isBegun = streams[index].message != nil && kept.isEmpty && dropped == 0
            _ = streams[index].messages.removeFirst()
            if isBegun || streams[index].queuedBytes <= bytes {
                kept.append(message)
                continue
            }
            subtract(message.payload.count, isCounted: message.isCounted, at: index)
            queuedBytes -= Self.messageOverhead
            dropped += 1
        }
        streams[index].messages = kept
        return dropped
    }
}
