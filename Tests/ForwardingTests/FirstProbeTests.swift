import Base
import CongestionControl
import MediaTypes
import Testing

@testable import Forwarding

@Suite struct FirstProbeTests {
    @Test func `the first probe of a peer keeps within what the peer may be sent`() throws {
        let start = Instant(nanoseconds: 1_000_000_000)
        let sendRate = SendRate(SendRateSettings(), numbering: .transportWide, maximum: 400_000, at: start)
        sendRate.setDemand(3_000_000, at: start)
        sendRate.prepare(at: start)
        let tick = start + .milliseconds(25)
        sendRate.handleTimeout(SentPacketRing(first: 0), isWithReport: false, at: tick)
        let cluster = try #require(sendRate.takeProbe(at: tick))
        #expect(cluster.rate <= 400_000)
    }
}
