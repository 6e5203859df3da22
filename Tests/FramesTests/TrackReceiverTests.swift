import Base
import MediaFormat
import Testing
import Wire

@testable import Frames

struct TrackReceiverTests {
    private static let opus: [UInt8] = [0xF8, 1, 2]

    /// The numbers of VP8 frames, by their contents.
    private func numbers(_ frames: [ReceivedFrame]) -> [Int] {
        frames.map { Int($0.frame.bytes[$0.frame.isKey ? 10 : 3]) }
    }

    private func feed(
        _ receiver: TrackReceiver,
        _ stream: inout TestStream,
        _ number: Int,
        isKey: Bool = false,
        isChosen: Bool = true,
        layer: (UInt8, UInt8, Bool)? = nil,
        isLost: Bool = false,
        content: Int? = nil
    ) {
        let frame = Packetising.vp8Frame(content ?? number, isKey: isKey, bytes: 5)
        let packets = stream.packets(
            Packetising.vp8(frame, 1_000, layer: layer),
            isChosen: isChosen,
            at: .at(number * 33)
        )
        if !isLost { for packet in packets { receiver.receive(packet, at: packet.arrivedAt) } }
    }

    // MARK: Losses

    @Test(
        arguments: [
            // Layers 0 2 1 2 in turn; the frame that is lost, and those that are kept back until the next key frame, number 12.
            (lost: 5, missing: [5, 7]), (lost: 6, missing: [6, 7, 11]), (lost: 4, missing: Array(4...11)),
        ]
    )
    func `a loss of an upper temporal layer keeps back that layer alone`(lost: Int, missing: [Int]) {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8)
        for number in 0..<16 {
            let layer = [0, 2, 1, 2][number % 4]
            feed(
                receiver,
                &stream,
                number,
                isKey: number % 12 == 0,
                // The first frame of an upper layer after the lowest one refers to that one alone.
                layer: (UInt8(layer), UInt8(number / 4), number % 4 == 1 || number % 4 == 2),
                isLost: number == lost
            )
        }
        receiver.advance(to: .at(3_000))
        #expect(numbers(receiver.takeFrames()) == (0..<16).filter { !missing.contains($0) })
    }

    @Test func `a missing packet is waited for three round trips, and half a second at most`() {
        for (roundTrip, patience) in [(40, 120), (1_000, 500), (1, 50)] {
            let receiver = TrackReceiver(kind: .audio, publisher: PublisherClock())
            receiver.roundTrip = .milliseconds(roundTrip)
            var stream = TestStream(codec: .opus, ticksPerFrame: 960)
            receiver.receiveReport(
                of: 1,
                senderNanoseconds: 5,
                timestamp: RTPTimestamp(rawValue: stream.timestamp),
                at: .at(0)
            )
            let packets = (0..<3).flatMap { stream.packets([Self.opus], at: .at($0 * 20)) }
            receiver.receive(packets[0], at: .at(0))
            receiver.receive(packets[2], at: .at(40))
            #expect(receiver.takeFrames().count == 1)
            #expect(receiver.nextDeadline == .at(40 + patience))
            receiver.advance(to: .at(40 + patience - 1))
            #expect(receiver.takeFrames().isEmpty)
            receiver.advance(to: .at(40 + patience))
            // Silence stands for what is lost.
            #expect(receiver.takeFrames().map(\.frame.bytes) == [[0xF8, 0xFF, 0xFE], Self.opus])
            #expect(receiver.lostPackets == 1)
            // It comes too late.
            receiver.receive(packets[1], at: .at(600))
            #expect(receiver.takeFrames().isEmpty)
        }
    }

    @Test func `packets of padding close holes`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8)
        feed(receiver, &stream, 0, isKey: true)
        for packet in stream.packets([[]], at: .at(10)) { receiver.receive(packet, at: .at(10)) }
        feed(receiver, &stream, 1)
        receiver.advance(to: .at(1_000))
        #expect(numbers(receiver.takeFrames()) == [0, 1])
        #expect(receiver.lostPackets == 0)
    }

    @Test func `a source that begins anew is followed from its next key frame on`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8)
        feed(receiver, &stream, 0, isKey: true)
        stream.sequence += 40_000
        feed(receiver, &stream, 1)
        feed(receiver, &stream, 2, isKey: true)
        receiver.advance(to: .at(1_200))
        #expect(numbers(receiver.takeFrames()) == [0, 2])
    }

    // MARK: Time

    @Test func `sound and picture of a publisher stay together`() throws {
        let publisher = PublisherClock()
        let audio = TrackReceiver(kind: .audio, publisher: publisher)
        let video = TrackReceiver(kind: .video, publisher: publisher)
        var sound = TestStream(codec: .opus, timestamp: 77, ticksPerFrame: 960)
        var picture = TestStream(codec: .vp8, timestamp: 999_999)
        // Both were captured at the publisher's second 1,000; the picture takes 300 ms longer.
        let second: Int64 = 1_000_000_000_000
        audio.receiveReport(of: 1, senderNanoseconds: second, timestamp: RTPTimestamp(rawValue: 77), at: .at(0))
        video.receiveReport(
            of: 1,
            senderNanoseconds: second,
            timestamp: RTPTimestamp(rawValue: 999_999),
            at: .at(300)
        )
        for packet in sound.packets([Self.opus], at: .at(0)) { audio.receive(packet, at: .at(0)) }
        feed(video, &picture, 0, isKey: true)
        let times = try [audio, video].map { try #require($0.takeFrames().first).frame.decodeTime }
        #expect(times[0] == times[1])
    }

    @Test func `frames wait a second for reports, and then go on by arrival`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8)
        for number in 0..<30 { feed(receiver, &stream, number, isKey: number == 0) }
        #expect(receiver.takeFrames().isEmpty)
        #expect(receiver.nextDeadline == .at(1_000))
        for number in 30..<32 { feed(receiver, &stream, number) }
        let frames = receiver.takeFrames()
        #expect(numbers(frames) == Array(0..<32))
        #expect(frames[0].frame.decodeTime == Interval(nanoseconds: Instant.at(0).nanoseconds))
        #expect(frames[30].frame.decodeTime - frames[0].frame.decodeTime == .seconds(1))
        // A report releases them at once.
        let other = TrackReceiver(kind: .video, publisher: PublisherClock())
        var again = TestStream(codec: .vp8)
        feed(other, &again, 0, isKey: true)
        other.receiveReport(of: 1, senderNanoseconds: 7, timestamp: RTPTimestamp(rawValue: 5), at: .at(40))
        #expect(other.takeFrames().count == 1)
    }

    @Test func `a clock that drifts is followed by a millisecond a frame, and a jump begins anew`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8, timestamp: 0)
        func report(_ number: Int, off milliseconds: Int64, at now: Instant) {
            receiver.receiveReport(
                of: 1,
                senderNanoseconds: Int64(number) * 100_000_000 / 3 + milliseconds * 1_000_000,
                timestamp: RTPTimestamp(rawValue: UInt32(number * 3_000)),
                at: now
            )
        }
        report(0, off: 0, at: .at(0))
        for number in 0..<3 { feed(receiver, &stream, number, isKey: number == 0) }
        _ = receiver.takeFrames()
        report(3, off: 50, at: .at(99))
        for number in 3..<60 { feed(receiver, &stream, number) }
        let frames = receiver.takeFrames()
        let steps = zip(frames, frames.dropFirst()).map { ($1.frame.decodeTime - $0.frame.decodeTime).nanoseconds }
        let frame: Int64 = 33_333_333
        #expect(steps.prefix(48).allSatisfy { abs($0 - frame - 1_000_000) <= 1 })
        #expect(steps.suffix(5).allSatisfy { abs($0 - frame) <= 1 })
        #expect(frames.allSatisfy { !$0.isDiscontinuity })
        report(60, off: 350, at: .at(60 * 33))
        feed(receiver, &stream, 60)
        #expect(receiver.takeFrames().map(\.isDiscontinuity) == [true])
    }

    @Test func `silence stands for missing sound up to five seconds, and a longer gap is told`() {
        let receiver = TrackReceiver(kind: .audio, publisher: PublisherClock())
        var stream = TestStream(codec: .opus, timestamp: 0, ticksPerFrame: 960)
        receiver.receiveReport(of: 1, senderNanoseconds: 0, timestamp: RTPTimestamp(rawValue: 0), at: .at(0))
        func send(at milliseconds: Int) {
            stream.timestamp = UInt32(milliseconds * 48)
            for packet in stream.packets([Self.opus], at: .at(milliseconds)) {
                receiver.receive(packet, at: packet.arrivedAt)
            }
        }
        send(at: 0)
        send(at: 20)
        send(at: 1_040)
        var frames = receiver.takeFrames()
        #expect(frames.count == 3 + 50)
        #expect(frames[2..<52].allSatisfy { $0.frame.bytes == [0xF8, 0xFF, 0xFE] })
        let times = frames.map(\.frame.decodeTime)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == .milliseconds(20) })
        send(at: 10_000)
        let outputs = receiver.takeOutputs()
        guard case .gap(let start, let end) = outputs.first else {
            Issue.record("the gap is told")
            return
        }
        #expect(end - start == .milliseconds(10_000 - 1_060))
        send(at: 10_020)
        frames = outputs.compactMap { if case .frame(let frame) = $0 { frame } else { nil } } + receiver.takeFrames()
        #expect(frames.map(\.isDiscontinuity) == [true, false])
    }

    // MARK: Layers and key frames

    @Test func `another layer plays from its first key frame on, and the one before until then`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var (low, high) = (TestStream(number: 1, codec: .vp8), TestStream(number: 2, codec: .vp8, timestamp: 5))
        feed(receiver, &low, 0, isKey: true)
        receiver.advance(to: .at(1_000))
        #expect(receiver.takeOutputs().contains(.plays(stream: 1)))
        for number in 31..<34 {
            feed(receiver, &low, number, isChosen: false)
            feed(receiver, &high, number, content: number + 100)
        }
        var outputs = receiver.takeOutputs()
        #expect(outputs.contains(.keyFrameRequest(stream: 2)))
        #expect(numbers(outputs.compactMap { if case .frame(let frame) = $0 { frame } else { nil } }) == [31, 32, 33])
        feed(receiver, &high, 34, isKey: true, content: 134)
        feed(receiver, &low, 34, isChosen: false)
        feed(receiver, &high, 35, content: 135)
        outputs = receiver.takeOutputs()
        #expect(outputs.contains(.plays(stream: 2)))
        let frames = outputs.compactMap { if case .frame(let frame) = $0 { frame } else { nil as ReceivedFrame? } }
        #expect(numbers(frames) == [134, 135])
    }

    @Test func `a layer that stops is left after a second`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var (low, high) = (TestStream(number: 1, codec: .vp8), TestStream(number: 2, codec: .vp8))
        feed(receiver, &high, 0, isKey: true)
        receiver.advance(to: .at(1_000))
        _ = receiver.takeOutputs()
        // It is still said to be the chosen one, because nothing comes of it.
        feed(receiver, &low, 35, isChosen: false)
        feed(receiver, &low, 36, isKey: true, isChosen: false)
        #expect(numbers(receiver.takeFrames()) == [36])
    }

    @Test func `key frames are asked for at the start, in time, and not too often`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock(), keyFrameInterval: .seconds(2))
        var stream = TestStream(codec: .vp8)
        var requests: [Int] = []
        for number in 0..<150 {
            feed(receiver, &stream, number, isKey: number == 40)
            for output in receiver.takeOutputs() {
                if case .keyFrameRequest = output { requests.append(number) }
            }
        }
        // Every half second without one, then two seconds after the key frame.
        #expect(requests == [0, 16, 32, 101, 117, 133, 149])
    }

    @Test func `frames that cannot be read for five seconds are told once`() {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .h264)
        var told: [Int] = []
        for number in 0..<300 {
            let payload: [UInt8] = [29, UInt8(truncatingIfNeeded: number), 3, 4]
            for packet in stream.packets([payload], at: .at(number * 33)) {
                receiver.receive(packet, at: packet.arrivedAt)
            }
            if receiver.takeOutputs().contains(.unreadable) { told.append(number) }
        }
        #expect(told == [152])
    }

    @Test func `rotation and parameters hold from their frame on`() throws {
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var stream = TestStream(codec: .vp8)
        var frames: [ReceivedFrame] = []
        for number in 0..<4 {
            var bytes = Packetising.vp8Frame(number, isKey: number % 2 == 0, bytes: 5)
            if number == 2 { bytes[6] = 0x40 }
            for var packet in stream.packets(Packetising.vp8(bytes, 1_000), at: .at(number * 400)) {
                if number == 1 { packet.rotation = .clockwise90 }
                receiver.receive(packet, at: packet.arrivedAt)
            }
            frames += receiver.takeFrames()
        }
        #expect(frames.map(\.rotation) == [.none, .clockwise90, .clockwise90, .clockwise90])
        let sizes = frames.map { $0.frame.configuration?.size }
        #expect(sizes == [PictureSize(width: 640, height: 360), nil, PictureSize(width: 576, height: 360), nil])
    }
}
