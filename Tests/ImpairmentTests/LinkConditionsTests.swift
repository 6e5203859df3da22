import Base
import Impairment
import Testing

struct LinkConditionsTests {
    @Test func `every key is read`() throws {
        let text =
            "rate=1M@0 2.5M@40 600k@60s,queue=64kB,delay=50ms,jitter=1.5ms,loss=2%,burst-loss=1%:8,policer=1M:32kB,"
            + "reorder=1%:5ms,duplicate=0.5%,outage=6s@30s/2s@50"
        let link = try LinkConditions(parsing: text)
        #expect(link.rates.map(\.bitsPerSecond) == [1_000_000, 2_500_000, 600_000])
        #expect(link.rates.map(\.start) == [.zero, .seconds(40), .seconds(60)])
        #expect(link.queueLimit == .bytes(64_000))
        #expect(link.delay == .milliseconds(50))
        #expect(link.jitter == .microseconds(1_500))
        #expect(link.loss == 0.02)
        #expect(link.burstLoss == LinkConditions.BurstLoss(share: 0.01, meanLength: 8))
        #expect(link.policer == LinkConditions.Policer(bitsPerSecond: 1_000_000, bucketBytes: 32_000))
        #expect(link.reordering == 0.01)
        #expect(link.reorderDelay == .milliseconds(5))
        #expect(link.duplication == 0.005)
        #expect(link.outages == [.seconds(30)..<(.seconds(36)), .seconds(50)..<(.seconds(52))])
    }

    @Test func `the examples of the keys are valid`() throws {
        for (name, example) in LinkConditions.keys {
            for value in example.replacing(" or ", with: ", ").split(separator: ", ") {
                #expect(throws: Never.self) { try LinkConditions(parsing: "\(name)=\(value)") }
            }
        }
    }

    @Test func `a change keeps the conditions that it does not name`() throws {
        var link = try LinkConditions(parsing: "rate=1M,delay=50ms,loss=2%,outage=6s@1s,policer=1M,burst-loss=1%")
        try link.apply("rate=unlimited, loss=0, outage=none, policer=0, burst-loss=0")
        var expected = LinkConditions()
        expected.delay = .milliseconds(50)
        #expect(link == expected)
    }

    @Test(arguments: [
        ("", "\"\" is not NAME=VALUE, such as rate=1M or delay=50ms."),
        ("1M", "\"1M\" is not NAME=VALUE, such as rate=1M or delay=50ms."),
        ("rate=1M,", "\"\" is not NAME=VALUE, such as rate=1M or delay=50ms."),
        ("rate=fast", "rate=fast cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        ("rate=-1M", "rate=-1M cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        ("rate=1", "rate=1 cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        ("rate=0", "rate=0 cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        ("rate=1M/2M", "rate=1M/2M cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        ("delay=50", "delay=50 cannot be read: write delay=50ms."),
        ("delay=nanms", "delay=nanms cannot be read: write delay=50ms."),
        ("loss=0.02", "loss=0.02 cannot be read: write loss=2%."),
        ("loss=200%", "loss=200% cannot be read: write loss=2%."),
        ("queue=0p", "queue=0p cannot be read: write queue=300ms, 64kB or 50p."),
        ("outage=6s", "outage=6s cannot be read: write outage=6s@30s."),
        ("rate=1M,rate=2M", "rate is given twice."),
        (
            "speed=1M",
            "A link has no \"speed\": choose from rate, queue, delay, jitter, loss, burst-loss, policer, reorder, "
                + "duplicate, outage."
        ),
    ])
    func `a mistake is named, with what to write`(_ text: String, _ message: String) {
        #expect(throws: LinkConditionsError(message: message)) { try LinkConditions(parsing: text) }
    }

    @Test func `the summary names what applies`() throws {
        let link = try LinkConditions(parsing: "rate=1M/600k@10s,delay=50ms,loss=2.5%")
        #expect(link.summary(at: .zero) == "1 Mbit/s, 50 ms delay, 2.5% loss")
        #expect(link.summary(at: .seconds(10)) == "600 kbit/s, 50 ms delay, 2.5% loss")
        #expect(LinkConditions().summary(at: .zero) == "unlimited")
    }
}
