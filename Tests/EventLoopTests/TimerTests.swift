import Base
import EventLoop
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct TimerTests {
    @Test func `the timer never fires early, and fires once`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: [Instant].self)
        await host.run { host in
            let loop = host.loop
            var deadlines = (1...5).map { EventLoop.now() + .microseconds($0 * 3_300) }
            loop.onTimer = { now in
                continuation.yield([deadlines.removeFirst(), now])
                if let next = deadlines.first { loop.setTimer(at: next) } else { continuation.finish() }
            }
            loop.setTimer(at: deadlines[0])
        }
        var pairs: [[Instant]] = []
        for await pair in stream { pairs.append(pair) }
        #expect(pairs.count == 5)
        for pair in pairs { #expect(pair[1] >= pair[0]) }
        #expect(pairs.map { $0[1] } == pairs.map { $0[1] }.sorted())
        await host.loop.stop()
    }

    @Test func `a past deadline does not make the loop spin`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: Instant.self)
        let start = EventLoop.now()
        await host.run { host in
            let loop = host.loop
            loop.onTimer = { now in
                continuation.yield(now)
                loop.setTimer(at: start)
            }
            loop.setTimer(at: Instant(nanoseconds: .min))
        }
        let times = try await stream.collect(20)
        // At least a millisecond each, except for the clock's granularity.
        #expect(times[19] - times[0] >= .milliseconds(15))
        await host.loop.stop()
    }

    @Test func `a deadline at the end of time does not trap, and a stopped timer does not fire`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        await host.run { host in
            let loop = host.loop
            loop.setTimer(at: Instant(nanoseconds: .max))
            loop.onTimer = { _ in continuation.yield(1) }
            loop.setTimer(at: EventLoop.now() + .milliseconds(5))
            loop.setTimer(at: nil)
        }
        await host.run { host in
            let loop = host.loop
            loop.onTimer = { _ in continuation.yield(2) }
            loop.setTimer(at: EventLoop.now() + .milliseconds(20))
        }
        #expect(try await stream.collect(1) == [2])
        await host.loop.stop()
    }

    @Test func `an earlier deadline replaces a later one`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: Instant.self)
        let later = EventLoop.now() + .seconds(3600)
        await host.run { host in
            host.loop.onTimer = { continuation.yield($0) }
            host.loop.setTimer(at: later)
            host.loop.setTimer(at: EventLoop.now() + .milliseconds(2))
        }
        #expect(try await stream.collect(1)[0] < later)
        await host.loop.stop()
    }

    @Test func `each turn is measured and ends after its events`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        let local = try await host.open().local
        await host.run { host in
            let loop = host.loop
            var isReceived = false
            loop.onDatagram = { _, _, _, _ in
                isReceived = true
                continuation.yield("datagram")
            }
            loop.onTurnEnd = { _ in if isReceived { continuation.yield("end") } }
            loop.onTurnMeasured = { length in
                guard isReceived else { return }
                isReceived = false
                continuation.yield(length > .zero ? "measured" : "not measured")
            }
        }
        await host.send([[1]], to: local)
        #expect(try await stream.collect(3) == ["datagram", "end", "measured"])
        await host.loop.stop()
    }
}
