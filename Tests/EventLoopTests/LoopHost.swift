import Base
import EventLoop
import Wire

/// An actor pinned to its own loop, so that tests can run code on the loop.
actor LoopHost {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.executor.asUnownedSerialExecutor() }
    var numbers: [Int] = []
    /// The count of numbers that each turn appended.
    var turnSizes: [Int] = []

    init(_ name: String = "test", slice: Interval? = nil, isStarted: Bool = true) throws {
        loop = EventLoop(name: name, slice: slice)
        if isStarted { try loop.start() }
    }

    func run<Result: Sendable>(
        _ body: @Sendable (isolated LoopHost) throws -> Result
    ) rethrows -> Result {
        try body(self)
    }

    func noteTurn() { turnSizes.append(numbers.count - turnSizes.reduce(0, +)) }
    func append(_ number: Int) { numbers.append(number) }

    func stopFromInside() async {
        await loop.stop()
        numbers.append(1)
    }

    /// Opens a socket and returns its bound address.
    func open(_ text: String = "127.0.0.1:0", options: SocketOptions = SocketOptions()) throws -> SocketDescription {
        guard let address = TransportAddress(text) else { preconditionFailure("not an address: \(text)") }
        let index = try loop.addSocket(bind: address, options: options)
        guard let description = loop.description(of: index) else { preconditionFailure("the socket is there") }
        return description
    }

    /// Sends each of `payloads` from the loop's first socket.
    func send(_ payloads: [[UInt8]], to remote: TransportAddress) {
        let batch = DatagramBatch(capacity: max(payloads.count, 1))
        for payload in payloads {
            batch.append(to: NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote), payload)
        }
        loop.send(batch)
    }

    /// The datagrams that arrive at the loop from now on.
    func arrivals() -> AsyncStream<Arrival> {
        let (stream, continuation) = AsyncStream.makeStream(of: Arrival.self)
        loop.onDatagram = { slot, length, path, _ in
            continuation.yield(Arrival(bytes: slot.bytes.extracting(0..<length).array(), path: path))
        }
        return stream
    }

    var statistics: LoopCounters { loop.statistics }
}

/// A received datagram.
struct Arrival: Sendable, Equatable {
    let bytes: [UInt8]
    let path: NetworkPath
}

extension DatagramBatch {
    func append(to path: NetworkPath, _ bytes: [UInt8]) {
        append(to: path, copying: unsafe bytes.span.bytes)
    }
}
