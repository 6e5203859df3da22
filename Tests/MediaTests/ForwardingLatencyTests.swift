import Metrics
import Testing
import Wire

@testable import Media

struct ForwardingLatencyTests {
    private func instant(_ microseconds: Int) -> Instant {
        Instant(nanoseconds: 0) + .microseconds(microseconds)
    }

    @Test func `each datagram counts with the time since its own read`() {
        var latency = ForwardingLatency()
        latency.produce(becauseOf: instant(0), after: 0)
        latency.produce(becauseOf: instant(0), after: 3)
        latency.produce(becauseOf: instant(90), after: 5)
        latency.flushed(6, at: instant(100))
        #expect(latency.histogram.count == 6)
        #expect(latency.histogram.sumNanoseconds == 5 * 100_000 + 10_000)
    }

    @Test func `what no read brought forth is not counted`() {
        var latency = ForwardingLatency()
        latency.produce(becauseOf: instant(0), after: 0)
        latency.produce(becauseOf: nil, after: 2)
        latency.flushed(10, at: instant(50))
        #expect(latency.histogram.count == 2)
    }

    @Test func `a flush in the middle of a read keeps the read's time for the rest`() {
        var latency = ForwardingLatency()
        latency.produce(becauseOf: instant(0), after: 0)
        latency.flushed(4, at: instant(10))
        latency.flushed(2, at: instant(30))
        #expect(latency.histogram.count == 6)
        #expect(latency.histogram.sumNanoseconds == 4 * 10_000 + 2 * 30_000)
    }

    @Test func `a read that brought nothing forth counts nothing`() {
        var latency = ForwardingLatency()
        latency.produce(becauseOf: instant(0), after: 0)
        latency.produce(becauseOf: instant(5), after: 0)
        latency.flushed(0, at: instant(9))
        #expect(latency.histogram.count == 0)
    }
}
