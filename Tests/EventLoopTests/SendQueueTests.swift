import Testing
import Wire

@testable import EventLoop

@Suite struct SendQueueTests {
    private let remote = TransportAddress(ip: .loopbackV4, port: 1)
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func append(_ bytes: [UInt8], to queue: SendQueue, at now: Int64 = 0) -> SendQueue.Drops {
        unsafe bytes.withUnsafeBytes { unsafe queue.append($0, to: remote, at: at(now)) }
    }

    private func contents(_ queue: SendQueue) -> [[UInt8]] {
        (0..<queue.count).map { unsafe Array(queue.datagram(at: $0).bytes) }
    }

    @Test(arguments: [
        ([128, 96], true), ([191, 127], true), ([144, 0], true), ([128, 191], true), ([128, 224], true), ([128], true),
        ([128, 192], false), ([128, 200], false), ([191, 223], false), ([0, 1], false), ([3], false),
        ([20, 254], false), ([63, 1], false), ([127, 96], false), ([192, 96], false), ([255], false),
    ])
    func `media is what RTP looks like`(bytes: [UInt8], isMedia: Bool) {
        let kind = unsafe bytes.withUnsafeBytes { unsafe SendQueue.kind(of: $0) }
        #expect((kind == .media) == isMedia)
    }

    @Test func `control leaves before media, and each in its order`() {
        let queue = SendQueue()
        for datagram: [UInt8] in [[128, 0, 1], [20, 1], [128, 0, 2], [0, 2], [128, 200, 3]] {
            #expect(append(datagram, to: queue) == SendQueue.Drops())
        }
        #expect(contents(queue) == [[20, 1], [0, 2], [128, 200, 3], [128, 0, 1], [128, 0, 2]])
        #expect(queue.controlCount == 3)
        queue.removeFirst(4)
        #expect(contents(queue) == [[128, 0, 2]])
        #expect(queue.byteCount == 3)
    }

    @Test func `the oldest media makes room, then nothing does`() {
        let queue = SendQueue()
        let half = SendQueue.datagramsMax / 2
        func media(_ number: Int) -> [UInt8] { [128, 0, UInt8(number >> 8), UInt8(number & 255)] }
        for number in 0..<half { _ = append(media(number), to: queue) }
        for _ in 0..<half { _ = append([1], to: queue) }
        #expect(queue.count == SendQueue.datagramsMax)
        #expect(append(media(half), to: queue) == SendQueue.Drops(media: 1, control: 0))
        #expect(append([2], to: queue) == SendQueue.Drops(media: 1, control: 0))
        #expect(contents(queue).dropFirst(half + 1).first == media(2))
        for _ in 0..<half - 1 { #expect(append([3], to: queue) == SendQueue.Drops(media: 1, control: 0)) }
        #expect(queue.controlCount == SendQueue.datagramsMax)
        let before = contents(queue)
        #expect(append([4], to: queue) == SendQueue.Drops(media: 0, control: 1))
        #expect(append(media(0), to: queue) == SendQueue.Drops(media: 1, control: 0))
        #expect(contents(queue) == before)
    }

    @Test func `its bytes are bounded too`() {
        let queue = SendQueue()
        let long = [128, 0] + [UInt8](repeating: 7, count: DatagramBatch.slotBytes - 2)
        let fitting = SendQueue.bytesMax / long.count
        for _ in 0..<fitting { #expect(append(long, to: queue) == SendQueue.Drops()) }
        #expect(fitting < SendQueue.datagramsMax)
        #expect(append(long, to: queue) == SendQueue.Drops(media: 1, control: 0))
        #expect(queue.byteCount <= SendQueue.bytesMax)
        #expect(queue.count == fitting)
    }

    @Test func `media that waited for 200 ms is dropped, control is not`() {
        let queue = SendQueue()
        _ = append([128, 0, 1], to: queue, at: 0)
        _ = append([20], to: queue, at: 0)
        _ = append([128, 0, 2], to: queue, at: 1)
        #expect(queue.dropMedia(at: at(199)) == 0)
        #expect(queue.dropMedia(at: at(200)) == 1)
        #expect(contents(queue) == [[20], [128, 0, 2]])
        #expect(queue.dropMedia(at: at(10_000)) == 1)
        #expect(contents(queue) == [[20]])
        #expect(queue.byteCount == 1)
    }

    @Test func `places that become free are used again, whoever leaves when`() {
        let queue = SendQueue()
        var expected: [[UInt8]] = []
        var seed: UInt32 = 7
        for step in 0..<20_000 {
            seed = seed &* 1_664_525 &+ 1_013_904_223
            if seed >> 30 == 0, !expected.isEmpty {
                let count = min(Int(seed >> 20 & 15), expected.count)
                queue.removeFirst(count)
                expected.removeFirst(count)
            } else if expected.count < SendQueue.datagramsMax {
                let datagram = [0, UInt8(step & 255), UInt8(step >> 8 & 255)]
                #expect(append(datagram, to: queue) == SendQueue.Drops())
                expected.append(datagram)
            }
            if step % 1_000 == 0 { #expect(contents(queue) == expected) }
        }
        #expect(queue.byteCount == 3 * queue.count)
    }
}
