import Base
import DTLS
import TestSupport
import Testing

struct LossTests {
    /// Every datagram of a lossless handshake at a small MTU.
    static let datagrams: [(Link.Side, Int)] = {
        guard let link = try? Link(mtuBytes: 256) else { return [] }
        link.start()
        link.run()
        return [Link.Side.client, .server].flatMap { side in
            (0..<(link.sent[side]?.count ?? 0)).map { (side, $0) }
        }
    }()

    @Test func `the flights of both sides take several datagrams`() {
        #expect(Self.datagrams.count { $0.0 == .client } >= 4)
        #expect(Self.datagrams.count { $0.0 == .server } >= 4)
    }

    @Test(arguments: LossTests.datagrams)
    func `the loss of any one datagram is recovered`(sender: Link.Side, number: Int) throws {
        let link = try Link(
            mtuBytes: 256,
            fate: { side, index, bytes in
                side == sender && index == number ? [] : [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
            }
        )
        link.start()
        link.run()
        #expect(link.isHealthy)
        #expect(link.now < Instant(nanoseconds: 0) + .seconds(1))
    }

    @Test(arguments: [1200, 300])
    func `a lost last flight is retransmitted when the peer retransmits its own`(mtuBytes: Int) throws {
        // The server sends its last flight in answer to the client's second one.
        var isServerDone = false
        var lost = 0
        let link = try Link(mtuBytes: mtuBytes)
        link.fate = { [unowned link] side, _, bytes in
            if side == .server, link.keys(.server) != nil || isServerDone || link.server.isEstablished {
                isServerDone = true
                lost += 1
                if lost <= 4 { return [] }
            }
            return [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
        }
        link.start()
        link.run()
        #expect(lost > 4)
        #expect(link.isHealthy)
    }

    @Test(arguments: 0..<60)
    func `a handshake succeeds with heavy loss, reordering and duplication`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link(
            mtuBytes: seed.isMultiple(of: 2) ? 1200 : 300,
            fate: { _, _, bytes in
                guard Int.random(in: 0..<100, using: &generator) >= 25 else { return [] }
                let copies = Int.random(in: 0..<100, using: &generator) < 20 ? 2 : 1
                return (0..<copies).map { _ in
                    let delay = Interval.milliseconds(Int.random(in: 5...80, using: &generator))
                    return Link.Delivery(bytes: bytes, delay: delay)
                }
            }
        )
        link.start()
        link.run()
        #expect(link.isHealthy, "seed \(seed)")
    }

    @Test(arguments: 0..<20)
    func `full reordering within a flight does not need a retransmission to succeed`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link(
            mtuBytes: 256,
            fate: { _, _, bytes in
                [Link.Delivery(bytes: bytes, delay: .milliseconds(Int.random(in: 1...20, using: &generator)))]
            }
        )
        link.start()
        link.run()
        #expect(link.isHealthy, "seed \(seed)")
        #expect(link.now < Instant(nanoseconds: 0) + .seconds(2), "seed \(seed)")
    }

    @Test func `a handshake succeeds when every datagram is delivered three times`() throws {
        let link = try Link(fate: { _, _, bytes in
            (1...3).map { Link.Delivery(bytes: bytes, delay: .milliseconds(10 * $0)) }
        })
        link.start()
        link.run()
        #expect(link.isHealthy)
    }
}
