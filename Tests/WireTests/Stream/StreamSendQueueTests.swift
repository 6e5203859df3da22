import Base
import TestSupport
import Testing
import Wire

struct StreamSendQueueTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    /// A queue with a connection that takes a limited number of bytes.
    private struct Connection {
        var queue = StreamSendQueue(.turn)
        var now = StreamSendQueueTests.start
        var sent: [UInt8] = []

        mutating func append(_ byte: UInt8, _ count: Int, _ kind: StreamPacketKind) -> StreamDropReason? {
            let packet = [UInt8](repeating: byte, count: count)
            return queue.append(unsafe packet.span.bytes, kind: kind, at: now)
        }

        mutating func video(_ byte: UInt8, frame: UInt32, key: Bool = false, _ count: Int = 1_000) -> StreamDropReason?
        {
            let kind = StreamPacketKind.video(
                SSRC(rawValue: 7),
                frame: RTPTimestamp(rawValue: frame),
                startsKeyFrame: key
            )
            return append(byte, count, kind)
        }

        /// Blocks the connection until another video has waited for so long that no more frames are taken.
        mutating func fallBehind() {
            _ = append(9, 100, .control)
            write(1)
            let frame = RTPTimestamp(rawValue: UInt32(truncatingIfNeeded: now.nanoseconds))
            _ = append(8, 100, .video(SSRC(rawValue: 8), frame: frame, startsKeyFrame: true))
            now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        }

        /// Writes until nothing waits or `room` bytes are written.
        mutating func write(_ room: Int) {
            var room = room
            while queue.prepareWrite(at: now) {
                let count = min(room, queue.unwritten.count)
                sent += queue.unwritten.prefix(count)
                queue.finishWrite(count)
                room -= count
                if queue.isBlocked { return }
            }
        }

        /// The kinds of packets that were sent, by their bytes.
        var order: [UInt8] {
            sent.reduce(into: []) { order, byte in if order.last != byte { order.append(byte) } }
        }
    }

    @Test func `control is written first, then audio, then video`() {
        var connection = Connection()
        #expect(connection.video(3, frame: 1, key: true) == nil)
        #expect(connection.append(4, 500, .repair) == nil)
        #expect(connection.append(2, 100, .audio) == nil)
        #expect(connection.append(1, 100, .control) == nil)
        connection.write(.max)
        #expect(connection.order == [1, 2, 3, 4])
        #expect(connection.queue.isEmpty && !connection.queue.isBlocked)
    }

    @Test func `frames of RFC 4571 get their length`() {
        var queue = StreamSendQueue(.rfc4571)
        let packet: [UInt8] = [7, 8, 9]
        queue.append(unsafe packet.span.bytes, kind: .control, at: Self.start)
        let isReady = queue.prepareWrite(at: Self.start)
        #expect(isReady)
        #expect(Array(queue.unwritten) == [0, 3, 7, 8, 9])
    }

    @Test func `a frame that was begun is completed, the next ones are dropped up to a key frame`() {
        var connection = Connection()
        #expect(connection.video(1, frame: 1, key: true) == nil)
        connection.write(10)
        #expect(connection.queue.isBlocked)
        #expect(connection.video(1, frame: 1) == nil)
        connection.now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        #expect(connection.video(1, frame: 1) == nil, "the rest of the frame")
        #expect(connection.video(2, frame: 2) == .blocked)
        #expect(connection.video(2, frame: 2) == .blocked)
        #expect(connection.queue.nextKeyFrameRequest() == nil, "a key frame might be dropped too")
        connection.write(.max)
        #expect(connection.sent == [UInt8](repeating: 1, count: 3_000), "what was begun is written completely")
        #expect(connection.queue.nextKeyFrameRequest() == SSRC(rawValue: 7))
        #expect(connection.queue.nextKeyFrameRequest() == nil, "one request")
        #expect(connection.video(2, frame: 2) == .awaitsKeyFrame)
        #expect(connection.video(3, frame: 3) == .awaitsKeyFrame)
        #expect(connection.video(4, frame: 4, key: true) == nil)
        #expect(connection.video(4, frame: 4) == nil)
        #expect(connection.video(5, frame: 5) == nil)
        connection.write(.max)
        #expect(connection.order == [1, 4, 5])
        #expect(connection.queue.drops(.blocked) == 2)
        #expect(connection.queue.drops(.awaitsKeyFrame) == 2)
    }

    @Test func `the frames behind a key frame that the connection cannot take at once are sent`() {
        var connection = Connection()
        for _ in 0..<40 { #expect(connection.video(1, frame: 1, key: true) == nil) }
        for frame in 2...5 as ClosedRange<UInt8> {
            connection.write(8_000)
            #expect(connection.queue.isBlocked)
            connection.now += .milliseconds(20)
            #expect(connection.video(frame, frame: UInt32(frame)) == nil)
        }
        connection.write(.max)
        #expect(connection.order == [1, 2, 3, 4, 5])
        #expect(connection.queue.nextKeyFrameRequest() == nil, "nothing was dropped")
    }

    @Test func `a key frame that is dropped is requested again`() {
        var connection = Connection()
        for frame in 1...3 as ClosedRange<UInt32> {
            connection.fallBehind()
            #expect(connection.video(1, frame: frame, key: true) == .blocked)
            connection.write(.max)
            #expect(connection.queue.nextKeyFrameRequest() == SSRC(rawValue: 7))
            #expect(connection.queue.nextKeyFrameRequest() == nil)
        }
    }

    @Test func `a blocked connection takes frames while the oldest waiting video is at most 100 ms old`() {
        var connection = Connection()
        #expect(connection.append(9, 100, .control) == nil)
        connection.write(1)
        connection.now += .seconds(1)
        #expect(connection.video(1, frame: 1, key: true) == nil, "no video waits")
        connection.now += StreamSendQueue.videoWaitMax
        #expect(connection.video(2, frame: 2) == nil)
        connection.now += .nanoseconds(1)
        #expect(connection.video(3, frame: 3) == .blocked)
        connection.write(.max)
        #expect(connection.order == [9, 1, 2])
    }

    @Test func `the frames that a blocked connection takes have a limit in bytes`() {
        var connection = Connection()
        #expect(connection.append(9, 1_000, .control) == nil)
        connection.write(1)
        var frame: UInt32 = 1
        while connection.video(1, frame: frame) == nil { frame += 1 }
        #expect(connection.queue.drops(.full) == 1 && frame > 100)
        for frame in frame + 1...frame + 1_000 {
            #expect(connection.video(1, frame: frame, key: true) == .full)
            #expect(connection.video(1, frame: frame) == .awaitsKeyFrame)
        }
        #expect(connection.queue.byteCount <= 1_000 + StreamSendQueue.videoBytesMax)
    }

    @Test func `a repair is dropped while the connection is blocked, audio is not`() {
        var connection = Connection()
        #expect(connection.append(1, 100, .control) == nil)
        connection.write(50)
        #expect(connection.append(4, 100, .repair) == .blocked)
        #expect(connection.append(2, 100, .audio) == nil)
        connection.write(.max)
        #expect(connection.order == [1, 2])
    }

    @Test func `audio waits for 100 ms, video for 200 ms`() {
        var connection = Connection()
        #expect(connection.append(1, 100, .control) == nil)
        #expect(connection.queue.prepareWrite(at: connection.now) == true)
        #expect(connection.append(2, 100, .audio) == nil)
        #expect(connection.video(3, frame: 1, key: true) == nil)
        connection.now += StreamSendQueue.audioAgeMax
        var kept = connection
        kept.write(.max)
        #expect(kept.order == [1, 2, 3])
        var late = connection
        late.now += .nanoseconds(1)
        late.write(.max)
        #expect(late.order == [1, 3])
        late = connection
        late.now = Self.start + StreamSendQueue.videoAgeMax + .nanoseconds(1)
        late.write(.max)
        #expect(late.order == [1])
        #expect(late.queue.drops(.late) == 2)
        #expect(late.queue.nextKeyFrameRequest() != nil)
        #expect(late.video(3, frame: 1) == .awaitsKeyFrame, "the rest of the late frame")
    }

    @Test func `a frame of which a part was written is finished late, the frames behind it are dropped`() {
        var connection = Connection()
        for _ in 0..<40 { #expect(connection.video(1, frame: 1, key: true) == nil) }
        connection.write(8_000)
        #expect(connection.video(2, frame: 2) == nil)
        connection.now += StreamSendQueue.videoAgeMax + .nanoseconds(1)
        connection.write(16_000)
        connection.write(.max)
        #expect(connection.sent == [UInt8](repeating: 1, count: 40_000))
        #expect(connection.queue.drops(.late) == 1)
        #expect(connection.queue.nextKeyFrameRequest() == SSRC(rawValue: 7))
        #expect(connection.queue.isEmpty)
    }

    @Test func `each kind has a limit in bytes`() {
        var connection = Connection()
        #expect(connection.append(1, 1, .control) == nil)
        #expect(connection.queue.prepareWrite(at: connection.now) == true)
        while connection.append(1, 1_000, .control) == nil {}
        #expect(connection.queue.drops(.full) == 1)
        for _ in 0..<100 { #expect(connection.append(2, 1_000, .audio) == nil) }
        #expect(connection.queue.drops(.full) > 50, "the oldest audio makes room")
        #expect(connection.video(3, frame: 1, key: true) == nil)
        while connection.video(3, frame: 1) == nil {}
        #expect(connection.video(3, frame: 1) == .awaitsKeyFrame)
        #expect(connection.queue.nextKeyFrameRequest() != nil)
        #expect(connection.queue.byteCount <= 32_768 + 16_384 + 1, "the frame that did not fit is gone")
    }

    @Test func `videos are independent, and their number is bounded`() {
        var connection = Connection()
        #expect(connection.video(1, frame: 1, key: true) == nil)
        connection.write(10)
        #expect(connection.video(1, frame: 1) == nil)
        connection.now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        for ssrc in 100..<400 as Range<UInt32> {
            let kind = StreamPacketKind.video(
                SSRC(rawValue: ssrc),
                frame: RTPTimestamp(rawValue: 1),
                startsKeyFrame: false
            )
            #expect(connection.append(2, 100, kind) == .blocked)
        }
        connection.write(.max)
        var requested: Set<SSRC> = []
        while let ssrc = connection.queue.nextKeyFrameRequest() { requested.insert(ssrc) }
        #expect(requested.count == StreamSendQueue.videosMax)
    }

    /// A connection of varying speed for twenty seconds: what arrives is whole packets, whole frames and little delay.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a slow connection never gets a frame without its start, nor more memory`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = StreamSendQueue(.rfc4571)
        var wire: [UInt8] = []
        var awaitsKey = true
        var bytesMax = 0
        for frame in 0..<600 as Range<UInt32> {
            let now = Self.start + .milliseconds(Int(frame) * 33)
            let isKey = awaitsKey
            if isKey { awaitsKey = false }
            for index in 0..<UInt8.random(in: 1...(isKey ? 60 : 12), using: &generator) {
                // The frame, whether it is a key frame, and the packet's index.
                var packet = [UInt8](repeating: 0, count: Int.random(in: 20...1_200, using: &generator))
                packet[0] = UInt8(truncatingIfNeeded: frame >> 8)
                packet[1] = UInt8(truncatingIfNeeded: frame)
                packet[2] = isKey ? 1 : 0
                packet[3] = index
                let kind = StreamPacketKind.video(
                    SSRC(rawValue: 1),
                    frame: RTPTimestamp(rawValue: frame),
                    startsKeyFrame: isKey && index == 0
                )
                queue.append(unsafe packet.span.bytes, kind: kind, at: now)
                bytesMax = max(bytesMax, queue.byteCount)
            }
            var room = Int.random(in: 0...8_000, using: &generator)
            while room > 0, queue.prepareWrite(at: now) {
                let count = min(room, queue.unwritten.count)
                wire += queue.unwritten.prefix(count)
                queue.finishWrite(count)
                room -= count
            }
            if queue.nextKeyFrameRequest() != nil { awaitsKey = true }
        }
        #expect(bytesMax <= 196 << 10)
        var deframer = StreamDeframer(.rfc4571)
        var packets: [(frame: Int, isKey: Bool, index: UInt8)] = []
        do throws(StreamFramingError) {
            try deframer.append(unsafe wire.span.bytes) {
                packets.append((Int($0.bigEndianUInt16(at: 0)), $0.byte(at: 2) == 1, $0.byte(at: 3)))
            }
        } catch {
            Issue.record("the stream reads: \(error)")
        }
        #expect(packets.count > 100)
        for (before, after) in zip(packets, packets.dropFirst()) {
            if after.frame == before.frame {
                #expect(after.index == before.index + 1)
            } else {
                #expect(after.index == 0)
                #expect(after.isKey || after.frame == before.frame + 1, "frame \(after.frame) needs the one before")
            }
        }
    }
}
