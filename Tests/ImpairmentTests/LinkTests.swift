import Base
import Impairment
import Testing

/// A run of a link in virtual time.
private struct Run {
    var link: ImpairedLink<Int>
    /// Payloads with their times of arrival.
    var arrivals: [(payload: Int, at: Instant)] = []
    private var sent = 0

    init(_ text: String, seed: UInt64 = 1) throws {
        link = ImpairedLink(try LinkConditions(parsing: text), seed: seed, start: Instant(nanoseconds: 0))
    }

    /// Sends packets of `bytes` at `packetsPerSecond` from `from` to `to`, in seconds.
    mutating func send(bytes: Int = 1_200, packetsPerSecond: Int, from: Int = 0, to: Int) {
        for index in 0..<(to - from) * packetsPerSecond {
            let now = at(Double(from) + Double(index) / Double(packetsPerSecond))
            receive(until: now)
            link.send(sent, bytes: bytes, at: now)
            sent += 1
        }
    }

    mutating func receive(until now: Instant) {
        while let deadline = link.nextDeadline, deadline <= now {
            while let (payload, time) = link.receive(at: deadline) { arrivals.append((payload, time)) }
        }
    }

    func megabits(from: Double, to: Double, bytes: Int = 1_200) -> Double {
        Double(arrivals.count { $0.at >= at(from) && $0.at < at(to) } * bytes * 8) / (to - from) / 1e6
    }
}

private func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64((seconds * 1e9).rounded())) }

struct LinkTests {
    @Test func `without conditions a packet arrives at once`() throws {
        var run = try Run("delay=0")
        run.link.send(7, bytes: 1_000, at: at(3))
        run.receive(until: at(3))
        #expect(run.arrivals.map(\.payload) == [7])
        #expect(run.arrivals.map(\.at) == [at(3)])
        #expect(run.link.nextDeadline == nil)
    }

    @Test func `the rate holds within 1 % over every step`() throws {
        var run = try Run("rate=1M/2.5M@40s/600k@60s,queue=50ms")
        run.send(packetsPerSecond: 500, to: 80)
        run.receive(until: at(90))
        for (from, to, rate) in [(1.0, 40.0, 1.0), (41, 60, 2.5), (61, 80, 0.6)] {
            let measured = run.megabits(from: from, to: to)
            #expect(abs(measured - rate) <= rate / 100, "\(measured) Mbit/s at \(rate) Mbit/s")
        }
        #expect(run.link.statistics.queueDrops > 0)
    }

    @Test(arguments: ["queue=300ms", "queue=37500B", "queue=31p"])
    func `a queue delays by no more than its limit, and drops the rest`(_ limit: String) throws {
        var run = try Run("rate=1M,\(limit)")
        run.send(packetsPerSecond: 200, to: 5)
        run.receive(until: at(10))
        // 31 packets of 1,200 bytes take 297.6 ms.
        let longest = run.link.statistics.queueDelayMax
        #expect((.milliseconds(280)...(.milliseconds(300))).contains(longest), "\(longest)")
        #expect(run.link.statistics.queueDrops > 0)
        #expect(run.arrivals.map(\.payload) == run.arrivals.map(\.payload).sorted())
    }

    @Test func `a packet larger than the queue passes when the link is idle`() throws {
        var run = try Run("rate=100k,queue=10ms")
        run.send(packetsPerSecond: 5, to: 4)
        run.receive(until: at(10))
        #expect(run.arrivals.count == 20)
    }

    @Test func `a rate of zero holds packets until the next step`() throws {
        var run = try Run("rate=1M/0@1s/1M@3s,queue=100p")
        run.send(packetsPerSecond: 10, to: 4)
        run.receive(until: at(10))
        #expect(run.arrivals.count == 40)
        #expect(!run.arrivals.contains { $0.at > at(1.01) && $0.at < at(3) })
    }

    @Test func `delay and jitter keep the order`() throws {
        var run = try Run("delay=50ms,jitter=30ms")
        run.send(packetsPerSecond: 200, to: 10)
        run.receive(until: at(20))
        #expect(run.arrivals.map(\.payload) == Array(0..<2_000))
        let delays = run.arrivals.map { $0.at - at(Double($0.payload) / 200) }
        #expect(delays.allSatisfy { $0 >= .milliseconds(50) && $0 <= .milliseconds(80) })
        #expect(Set(delays).count > 1_000)
    }

    @Test func `the share of losses is the requested one`() throws {
        var run = try Run("loss=2%")
        run.send(packetsPerSecond: 1_000, to: 100)
        let share = Double(run.link.statistics.lost) / 100_000
        #expect(abs(share - 0.02) < 0.002, "\(share)")
    }

    @Test func `burst loss has the requested share and mean length`() throws {
        var run = try Run("burst-loss=5%:8")
        run.send(packetsPerSecond: 1_000, to: 200)
        run.receive(until: at(300))
        let arrived = Set(run.arrivals.map(\.payload))
        let bursts = (1..<200_000).count { !arrived.contains($0) && arrived.contains($0 - 1) }
        let lost = 200_000 - arrived.count
        #expect(abs(Double(lost) / 200_000 - 0.05) < 0.01, "\(lost) lost")
        let mean = Double(lost) / Double(bursts)
        #expect(abs(mean - 8) < 1.5, "\(mean) packets in a burst")
    }

    @Test func `a policer keeps its rate, permits its burst and delays nothing`() throws {
        var run = try Run("policer=1M:12kB")
        for number in 0..<20 { run.link.send(number, bytes: 1_200, at: at(0)) }
        #expect(run.link.statistics.policerDrops == 10)
        run.send(packetsPerSecond: 400, from: 1, to: 21)
        run.receive(until: at(30))
        let rate = run.megabits(from: 2, to: 21)
        #expect(abs(rate - 1) <= 0.01, "\(rate)")
        #expect(run.link.statistics.queueDelayMax == .zero)
    }

    @Test func `reordering holds single packets back, and duplication repeats them`() throws {
        var run = try Run("reorder=5%:20ms,duplicate=10%")
        run.send(packetsPerSecond: 1_000, to: 10)
        run.receive(until: at(20))
        let late = zip(run.arrivals, run.arrivals.dropFirst()).count { $1.payload < $0.payload }
        #expect((350...650).contains(late), "\(late) late")
        #expect((800...1_200).contains(run.link.statistics.duplicates))
        #expect(run.arrivals.count == 10_000 + run.link.statistics.duplicates)
    }

    @Test func `an outage loses all packets of its time`() throws {
        var run = try Run("outage=6s@2s/1s@9s")
        run.send(packetsPerSecond: 100, to: 12)
        run.receive(until: at(20))
        #expect(run.link.statistics.outageDrops == 700)
        #expect(!run.arrivals.contains { $0.at >= at(2) && $0.at < at(8) })
        #expect(run.arrivals.count == 500)
    }

    @Test func `a change applies to the packets in the queue`() throws {
        var run = try Run("rate=1M,queue=1s")
        run.send(packetsPerSecond: 200, to: 2)
        var conditions = try LinkConditions(parsing: "rate=1M,queue=1s")
        try conditions.apply("rate=10M")
        run.link.change(to: conditions, at: at(2))
        run.receive(until: at(2.2))
        #expect(run.link.queueCount == 0)
        try conditions.apply("rate=unlimited,delay=10ms")
        run.link.change(to: conditions, at: at(3))
        run.link.send(-1, bytes: 1_200, at: at(3))
        run.receive(until: at(4))
        #expect(run.arrivals.last?.at == at(3.01))
    }

    @Test func `the same seed repeats a run, whenever the link is polled`() throws {
        let text = "rate=2M,queue=64kB,delay=20ms,jitter=15ms,loss=1%,burst-loss=1%:4,reorder=2%,duplicate=2%"
        var eager = try Run(text, seed: 9)
        eager.send(packetsPerSecond: 300, to: 10)
        eager.receive(until: at(20))
        // Polled only at the end.
        var lazy = try Run(text, seed: 9)
        for number in 0..<3_000 { lazy.link.send(number, bytes: 1_200, at: at(Double(number) / 300)) }
        lazy.receive(until: at(20))
        #expect(eager.arrivals.map(\.payload) == lazy.arrivals.map(\.payload))
        #expect(eager.arrivals.map(\.at) == lazy.arrivals.map(\.at))
        var other = try Run(text, seed: 10)
        other.send(packetsPerSecond: 300, to: 10)
        other.receive(until: at(20))
        #expect(eager.arrivals.map(\.payload) != other.arrivals.map(\.payload))
    }

    @Test func `two flows share one link in the order of their packets`() throws {
        var run = try Run("rate=2M,queue=100ms")
        run.send(packetsPerSecond: 600, to: 10)
        run.receive(until: at(20))
        // Odd packets are one flow, even ones the other.
        let odd = run.arrivals.count { $0.payload % 2 == 1 }
        #expect(abs(Double(odd) / Double(run.arrivals.count) - 0.5) < 0.05)
    }

    @Test func `the queue is bounded at a rate of zero`() throws {
        var run = try Run("rate=0/1M@1000s,queue=1s")
        run.send(packetsPerSecond: 1_000, to: 30)
        #expect(run.link.queueCount == ImpairedLink<Int>.packetsMax)
        #expect(run.link.statistics.queueDrops == 10_000)
    }
}
