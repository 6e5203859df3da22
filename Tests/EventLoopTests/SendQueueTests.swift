import Base
import Testing
import Wire

@testable import EventLoop

@Suite struct SendQueueTests {
    private let remote = TransportAddress(ip: .loopbackV4, port: 1)
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func append(_ bytes: [UInt8], to queue: SendQueue, at now: Int64 = 0) -> SendQueue.Drops {
        unsafe bytes.withUnsafeBytes { unsafe queue.append($0, to: remote, at: at(now)) }
    }

    private func append(_ bytes: [UInt8], of share: SendShare, to queue: SendQueue, at now: Int64 = 0)
        -> SendQueue.Drops
    {
        unsafe bytes.withUnsafeBytes { unsafe queue.append($0, to: remote, share: share, at: at(now)) }
    }

    private func contents(_ queue: SendQueue) -> [[UInt8]] {
        defer { queue.finish(sent: 0) }
        return (0..<queue.take(queue.count)).map { unsafe Array(queue.datagram(at: $0).bytes) }
    }

    /// Dequeues the next datagrams as if the kernel accepted them.
    private func send(_ count: Int, from queue: SendQueue) -> [[UInt8]] {
        let taken = queue.take(count)
        defer { queue.finish(sent: taken) }
        return (0..<taken).map { unsafe Array(queue.datagram(at: $0).bytes) }
    }

    @Test(arguments: [
        ([128, 96], true), ([191, 127], true), ([144, 0], true), ([128, 191], true), ([128, 224], true), ([128], true),
        ([128, 192], false), ([128, 200], false), ([191, 223], false), ([0, 1], false), ([3], false),
        ([20, 254], false), ([22, 254], false), ([63, 1], false), ([127, 96], false), ([192, 96], false),
        ([255], false),
    ])
    func `RTP is media, everything else is control`(bytes: [UInt8], isMedia: Bool) {
        let kind = unsafe bytes.withUnsafeBytes { unsafe SendQueue.kind(of: $0) }
        #expect((kind == .media) == isMedia)
    }

    /// A Data indication to a TURN client, with a peer of IPv4 or IPv6.
    private func indication(_ data: [UInt8], peerBytes: Int) -> [UInt8] {
        let header: [UInt8] = [0, 0x17, 0, UInt8(peerBytes + 8 + data.count), 0x21, 0x12, 0xA4, 0x42]
        let peer = [0, 0x12, 0, UInt8(peerBytes)] + [UInt8](repeating: 1, count: peerBytes)
        return header + [UInt8](repeating: 7, count: 12) + peer + [0, 0x13, 0, UInt8(data.count)] + data
    }

    @Test(arguments: [8, 20])
    func `what a Data indication carries decides on its kind`(peerBytes: Int) {
        func kind(_ bytes: [UInt8]) -> SendQueue.Kind {
            unsafe bytes.withUnsafeBytes { unsafe SendQueue.kind(of: $0) }
        }
        #expect(kind(indication([128, 96, 1, 2], peerBytes: peerBytes)) == .media)
        #expect(kind(indication([128, 200, 1, 2], peerBytes: peerBytes)) == .control)
        #expect(kind(indication([0, 1, 1, 2], peerBytes: peerBytes)) == .control)
        #expect(kind(indication([23, 254, 1, 2], peerBytes: peerBytes)) == .data)
        for count in 0..<(28 + peerBytes + 4) {
            #expect(kind(Array(indication([], peerBytes: peerBytes).prefix(count))) == .control)
        }
        #expect(kind(indication([128, 96, 1, 2], peerBytes: 9)) == .control)
    }

    @Test func `control is sent before media, and each in order`() {
        let queue = SendQueue()
        for datagram: [UInt8] in [[128, 0, 1], [20, 1], [128, 0, 2], [0, 2], [128, 200, 3]] {
            #expect(append(datagram, to: queue) == SendQueue.Drops())
        }
        #expect(contents(queue) == [[20, 1], [0, 2], [128, 200, 3], [128, 0, 1], [128, 0, 2]])
        #expect(queue.controlCount == 3)
        _ = send(4, from: queue)
        #expect(contents(queue) == [[128, 0, 2]])
        #expect(queue.byteCount == 3)
    }

    @Test func `a full queue drops the oldest media, then new datagrams`() {
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

    @Test func `the bytes are bounded too`() {
        let queue = SendQueue()
        let long = [128, 0] + [UInt8](repeating: 7, count: DatagramBatch.slotBytes - 2)
        let fitting = SendQueue.bytesMax / long.count
        for _ in 0..<fitting { #expect(append(long, to: queue) == SendQueue.Drops()) }
        #expect(fitting < SendQueue.datagramsMax)
        #expect(append(long, to: queue) == SendQueue.Drops(media: 1, control: 0))
        #expect(queue.byteCount <= SendQueue.bytesMax)
        #expect(queue.count == fitting)
    }

    @Test func `media that was queued for 200 ms is dropped, control is not`() {
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

    @Test func `free entries are reused in any order`() {
        let queue = SendQueue()
        var expected: [[UInt8]] = []
        var seed: UInt32 = 7
        for step in 0..<20_000 {
            seed = seed &* 1_664_525 &+ 1_013_904_223
            if seed >> 30 == 0, !expected.isEmpty {
                let count = min(Int(seed >> 20 & 15), expected.count)
                _ = send(count, from: queue)
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

    /// A media datagram with its share and its number.
    private func media(_ share: UInt8, _ number: Int, bytes: Int = 1_200) -> [UInt8] {
        [128, 0, share, UInt8(number >> 8 & 255), UInt8(number & 255)] + Array(repeating: 0, count: bytes - 5)
    }

    @Test func `the largest share makes room`() {
        let queue = SendQueue()
        for number in 0..<20 { _ = append(media(1, number), of: SendShare(id: 1), to: queue) }
        var drops = SendQueue.Drops()
        for number in 0..<5_000 { drops.media += append(media(2, number), of: SendShare(id: 2), to: queue).media }
        // The new datagram belongs to the small share; the other one makes room.
        for number in 20..<40 {
            #expect(append(media(1, number), of: SendShare(id: 1), to: queue) == SendQueue.Drops(media: 1))
        }
        let left = contents(queue)
        #expect(left.filter { $0[2] == 1 } == (0..<40).map { media(1, $0) })
        #expect(left.filter { $0[2] == 2 }.last == media(2, 4_999), "the oldest of the other share was dropped")
        #expect(left.count == 20 + 5_000 - drops.media)
    }

    @Test func `shares are served in rounds, and each share in order`() {
        let queue = SendQueue()
        for number in 0..<1_000 { _ = append(media(1, number), of: SendShare(id: 1), to: queue) }
        for number in 0..<100 { _ = append(media(2, number), of: SendShare(id: 2), to: queue) }
        for number in 0..<100 { _ = append(media(3, number, bytes: 300), of: SendShare(id: 3), to: queue) }
        var sent: [[UInt8]] = []
        for _ in 0..<30 { sent += send(10, from: queue) }
        for share in [1, 2, 3] as [UInt8] {
            let numbers = sent.filter { $0[2] == share }.map { Int($0[3]) << 8 | Int($0[4]) }
            #expect(numbers == Array(0..<numbers.count), "share \(share)")
            #expect(numbers.count >= 80, "share \(share)")
        }
    }

    @Test func `datagrams that the kernel did not accept are put back in order`() {
        let queue = SendQueue()
        for number in 0..<50 {
            _ = append(media(UInt8(number % 3), number), of: SendShare(id: UInt64(number % 3)), to: queue)
        }
        _ = append([20], to: queue)
        let before = contents(queue)
        let bytes = queue.byteCount
        #expect(queue.take(30) == 30)
        queue.finish(sent: 10)
        #expect(queue.count == 41)
        #expect(queue.controlCount == 0)
        #expect(queue.byteCount == bytes - before.prefix(10).map(\.count).reduce(0, +))
        for share in [0, 1, 2] as [UInt8] {
            let expected = before.dropFirst(10).filter { $0[2] == share }
            #expect(contents(queue).filter { $0[2] == share } == Array(expected))
        }
    }

    @Test func `a share's audio is sent before its video and dropped after it`() {
        let queue = SendQueue()
        for number in 0..<2_000 { _ = append(media(1, number), of: SendShare(id: 1), to: queue) }
        let audio = (0..<100).map { media(1, $0, bytes: 100) }
        for datagram in audio {
            #expect(append(datagram, of: SendShare(id: 1, isAudio: true), to: queue).audio == 0)
        }
        for number in 0..<2_000 {
            #expect(append(media(1, number), of: SendShare(id: 1), to: queue) == SendQueue.Drops(media: 1))
        }
        #expect(send(100, from: queue) == audio)
        // In a share with only audio new audio replaces audio, and new video is dropped.
        let loud = SendQueue()
        for number in 0..<SendQueue.datagramsMax {
            _ = append(media(1, number, bytes: 100), of: SendShare(id: 1, isAudio: true), to: loud)
        }
        #expect(append(media(1, 0), of: SendShare(id: 1), to: loud) == SendQueue.Drops(media: 1))
        #expect(
            append(media(1, 0), of: SendShare(id: 1, isAudio: true), to: loud) == SendQueue.Drops(media: 1, audio: 1)
        )
    }

    @Test func `a small share loses nothing while another sends 42 Mbit/s to 80 subscribers`() {
        // In virtual time: the socket accepts 100 datagrams per millisecond, a third of the load.
        let queue = SendQueue()
        var random = UInt64(7)
        var neighbour = (sent: 0, arrived: 0)
        var giantAudio = (sent: 0, arrived: 0, dropped: 0)
        var dropped = 0
        for step in 0..<2_000 as Range<Int64> {
            dropped += queue.dropMedia(at: at(step))
            for datagram in send(100, from: queue) {
                if datagram[2] == 1 { neighbour.arrived += 1 }
                if datagram[2] == 3 { giantAudio.arrived += 1 }
            }
            random = random &* 6_364_136_223_846_793_005 &+ 1
            for number in 0..<(300 + Int(random >> 58)) {
                _ = append(media(2, number), of: SendShare(id: 2), to: queue, at: step)
            }
            if step % 20 == 0 {
                for number in 0..<80 {
                    giantAudio.sent += 1
                    giantAudio.dropped +=
                        append(media(3, number, bytes: 100), of: SendShare(id: 2, isAudio: true), to: queue, at: step)
                        .audio
                }
            }
            // 20 subscribers of 1 Mbit/s of video, and of audio.
            for number in 0..<2 {
                neighbour.sent += 1
                _ = append(media(1, number), of: SendShare(id: 1), to: queue, at: step)
            }
            neighbour.sent += 1
            _ = append(media(1, 0, bytes: 100), of: SendShare(id: 1, isAudio: true), to: queue, at: step)
        }
        #expect(neighbour.arrived >= neighbour.sent - 3)
        #expect(giantAudio.dropped == 0)
        #expect(giantAudio.arrived >= giantAudio.sent - 80)
        #expect(dropped == 0, "what cannot leave in time was dropped before")
    }

    @Test func `more shares than the queue distinguishes lose no datagrams`() {
        let queue = SendQueue()
        for number in 0..<1_000 {
            #expect(append(media(0, number), of: SendShare(id: UInt64(number)), to: queue) == SendQueue.Drops())
        }
        #expect(Set(contents(queue)).count == 1_000)
        #expect(send(1_000, from: queue).count == 1_000)
        #expect(queue.isEmpty)
        #expect(queue.byteCount == 0)
    }

    // MARK: - Data

    private func data(_ number: Int, count: Int = 3) -> [UInt8] {
        [23, UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
            + [UInt8](repeating: 0, count: max(count - 3, 0))
    }

    @Test func `data is sent after media, in order`() {
        let queue = SendQueue()
        for datagram: [UInt8] in [data(1), [128, 0, 1], data(2), [20, 1]] {
            #expect(append(datagram, to: queue) == SendQueue.Drops())
        }
        #expect(contents(queue) == [[20, 1], [128, 0, 1], data(1), data(2)])
        #expect(queue.controlCount == 1)
        #expect(send(4, from: queue).count == 4)
        #expect(queue.isEmpty && queue.byteCount == 0 && queue.controlCount == 0)
    }

    @Test func `data gets a part when there is always media`() {
        let queue = SendQueue()
        for number in 0..<200 { _ = append([128, 0, UInt8(number)], to: queue) }
        for number in 0..<20 { _ = append(data(number), to: queue) }
        let sent = send(105, from: queue)
        #expect(sent.count { $0[0] == 23 } == 5)
    }

    @Test func `data is bounded, and dropped before media and control`() {
        let queue = SendQueue()
        for number in 0..<SendQueue.dataDatagramsMax {
            #expect(append(data(number), to: queue) == SendQueue.Drops())
        }
        #expect(append(data(9_999), to: queue) == SendQueue.Drops(data: 1))
        let left = SendQueue.datagramsMax - SendQueue.dataDatagramsMax
        for number in 0..<left { _ = append([128, 0, UInt8(number & 255)], to: queue) }
        #expect(append([128, 0, 1], to: queue) == SendQueue.Drops(data: 1), "the oldest data makes room")
        #expect(append([0, 1], to: queue) == SendQueue.Drops(data: 1))
        #expect(queue.count == SendQueue.datagramsMax)
        #expect(append(data(7), to: queue) == SendQueue.Drops(data: 1), "new data replaces old")
        #expect(contents(queue).last == data(7))
        let other = SendQueue()
        for _ in 0..<(SendQueue.dataBytesMax / 1_024) { _ = append(data(0, count: 1_024), to: other) }
        #expect(append(data(0, count: 1_024), to: other) == SendQueue.Drops(data: 1))
    }
}
