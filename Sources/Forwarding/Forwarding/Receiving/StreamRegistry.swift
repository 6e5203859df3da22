import MediaTypes

/// The received streams of one core, of its peers and of its mirrors, by their numbers.
struct StreamRegistry {
    private var streams: [StreamID: ReceivedStream] = [:]
    private var lastID: UInt64 = 0

    var isEmpty: Bool { streams.isEmpty }
    /// In no order.
    var all: Dictionary<StreamID, ReceivedStream>.Values { streams.values }
    subscript(id: StreamID) -> ReceivedStream? { streams[id] }

    mutating func makeID() -> StreamID {
        lastID += 1
        return StreamID(rawValue: lastID)
    }

    mutating func add(_ stream: ReceivedStream) { streams[stream.id] = stream }
    mutating func remove(_ stream: ReceivedStream) { streams[stream.id] = nil }
}
