import Base
import Testing
import Wire

@Suite struct DatagramBatchTests {
    private func path(_ port: UInt16, socket: UInt16 = 0) -> NetworkPath {
        NetworkPath(socket: SocketIndex(rawValue: socket), remote: TransportAddress(ip: .loopbackV4, port: port))
    }

    /// Appends a datagram of `length` bytes with the value `byte`.
    private func append(_ length: Int, _ byte: UInt8 = 0, to path: NetworkPath, in batch: DatagramBatch) {
        let bytes = [UInt8](repeating: byte, count: length)
        batch.append(to: path, copying: unsafe bytes.span.bytes)
    }

    /// The lengths of each run's datagrams, from `withDatagram`.
    private func shape(_ batch: DatagramBatch) -> [[Int]] {
        var index = 0
        return batch.runs.map { run in
            (0..<run.count).map { _ in
                defer { index += 1 }
                return batch.withDatagram(index) { bytes, path in
                    #expect(path == run.path)
                    return bytes.byteCount
                }
            }
        }
    }

    @Test(arguments: [
        ([100], [[100]]),
        ([100, 100, 100], [[100, 100, 100]]),
        ([100, 100, 40], [[100, 100, 40]]),
        ([100, 40, 40], [[100, 40], [40]]),
        ([100, 40, 100], [[100, 40], [100]]),
        ([40, 100, 100], [[40], [100, 100]]),
        ([100, 100, 101], [[100, 100], [101]]),
        ([1536, 1536, 1], [[1536, 1536, 1]]),
    ])
    func `datagrams as long as the first form a run, and a shorter one closes it`(lengths: [Int], runs: [[Int]]) {
        let batch = DatagramBatch(capacity: 8)
        for length in lengths { append(length, to: path(1), in: batch) }
        #expect(shape(batch) == runs)
        #expect(batch.runs.map { $0.length } == runs.map { $0.reduce(0, +) })
        #expect(batch.runs.map { $0.segmentBytes } == runs.map { $0[0] })
        #expect(batch.count == lengths.count)
    }

    @Test func `another address or another socket breaks a run`() {
        let batch = DatagramBatch(capacity: 8)
        let paths = [path(1), path(1), path(2), path(1), path(1, socket: 1), path(1, socket: 1)]
        for path in paths { append(10, to: path, in: batch) }
        #expect(batch.runs.map { $0.count } == [2, 1, 1, 2])
        #expect(batch.runs.map { $0.path } == [path(1), path(2), path(1), path(1, socket: 1)])
    }

    @Test func `a run has at most 64 datagrams`() {
        let batch = DatagramBatch()
        for _ in 0..<130 { append(10, to: path(1), in: batch) }
        #expect(batch.runs.map { $0.count } == [64, 64, 2])
        #expect(batch.runs.map { $0.offset } == [0, 640, 1280])
    }

    @Test func `a run has at most 65,000 bytes`() {
        let batch = DatagramBatch()
        for _ in 0..<66 { append(1300, to: path(1), in: batch) }
        #expect(batch.runs.map { $0.count } == [50, 16])
        #expect(batch.runs[0].length == 65_000)
        batch.removeAll()
        for _ in 0..<54 { append(1200, to: path(1), in: batch) }
        append(200, to: path(1), in: batch)
        append(200, to: path(1), in: batch)
        #expect(batch.runs.map { $0.length } == [65_000, 200], "a shorter last datagram may fill the run")
    }

    @Test func `datagrams are packed, and each has its own bytes`() {
        let batch = DatagramBatch(capacity: 300)
        let lengths = (0..<300).map { 1 + $0 / 7 * 37 % DatagramBatch.slotBytes }
        for (index, length) in lengths.enumerated() {
            append(length, UInt8(truncatingIfNeeded: index), to: path(UInt16(index / 20)), in: batch)
        }
        for (index, length) in lengths.enumerated() {
            batch.withDatagram(index) { bytes, to in
                #expect(bytes.byteCount == length)
                #expect(to == path(UInt16(index / 20)))
                for place in 0..<bytes.byteCount where bytes.byte(at: place) != UInt8(truncatingIfNeeded: index) {
                    Issue.record("byte \(place) of datagram \(index)")
                }
            }
        }
        let runs = batch.runs
        for (run, next) in zip(runs, runs.dropFirst()) { #expect(run.offset + run.length == next.offset) }
        #expect(runs.reduce(0) { $0 + $1.length } == lengths.reduce(0, +))
    }

    @Test func `a reserved datagram is appended only by a commit`() {
        let batch = DatagramBatch(capacity: 4)
        let isSame = unsafe batch.reserve() == batch.reserve()
        #expect(isSame)
        #expect(batch.isEmpty)
        for (index, length) in [DatagramBatch.slotBytes, 12].enumerated() {
            guard let place = unsafe batch.reserve() else {
                Issue.record("there is room")
                return
            }
            unsafe place.initializeMemory(as: UInt8.self, repeating: UInt8(index + 1), count: length)
            batch.commit(length, to: path(1))
        }
        #expect(batch.count == 2)
        #expect(shape(batch) == [[DatagramBatch.slotBytes, 12]])
        #expect(batch.withDatagram(1) { bytes, _ in bytes.array() } == Array(repeating: 2, count: 12))
    }

    @Test func `a writer that returns nil appends nothing`() {
        let batch = DatagramBatch(capacity: 4)
        append(10, to: path(1), in: batch)
        for length in [nil, 0, -1, DatagramBatch.slotBytes + 1] {
            #expect(!batch.append(to: path(1)) { _ in length })
        }
        let long = [UInt8](repeating: 0, count: DatagramBatch.slotBytes + 1)
        #expect(!batch.append(to: path(1), copying: unsafe long.span.bytes))
        append(10, to: path(1), in: batch)
        #expect(shape(batch) == [[10, 10]])
        #expect(batch.overflowed == 0)
    }

    @Test func `a full batch calls onFull and counts dropped datagrams`() {
        let batch = DatagramBatch(capacity: 3)
        for _ in 0..<5 { append(DatagramBatch.slotBytes, to: path(1), in: batch) }
        #expect(batch.count == 3)
        #expect(batch.overflowed == 2)
        let isRefused = unsafe batch.reserve() == nil
        #expect(isRefused)
        #expect(batch.overflowed == 3)
        var flushed = 0
        batch.onFull = {
            flushed += $0.count
            $0.removeAll()
        }
        for _ in 0..<7 { append(10, to: path(1), in: batch) }
        #expect(flushed == 9)
        #expect(batch.count == 1)
        #expect(batch.overflowed == 3)
    }

    @Test func `an emptied batch starts again`() {
        let batch = DatagramBatch(capacity: 4)
        for _ in 0..<3 { append(10, to: path(1), in: batch) }
        batch.removeAll()
        #expect(batch.isEmpty)
        #expect(batch.runs.isEmpty)
        append(10, to: path(1), in: batch)
        #expect(batch.runs.map { $0.offset } == [0])
        #expect(shape(batch) == [[10]])
    }

    @Test func `an invalid length traps`() async {
        await #expect(processExitsWith: .failure) {
            let batch = DatagramBatch(capacity: 4)
            batch.commit(
                DatagramBatch.slotBytes + 1,
                to: NetworkPath(
                    socket: SocketIndex(rawValue: 0),
                    remote: TransportAddress(ip: .loopbackV4, port: 1)
                )
            )
        }
    }
}
