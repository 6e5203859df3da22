import Base
import CongestionControl
import Testing

@testable import Forwarding

@Suite struct ProbeProgressTests {
    private func progress() -> ProbeProgress {
        let cluster = ProbeCluster(id: 1, rate: 1_000_000)
        return ProbeProgress(cluster: cluster, startedAt: Instant(nanoseconds: 0), firstPacket: 0)
    }

    @Test func `a cluster to a peer without a record of packets ends`() {
        var progress = progress()
        for _ in 0..<100 where !progress.isComplete {
            progress.noteRecorded(0)
            progress.noteSent(224)
        }
        #expect(progress.isComplete)
        #expect(progress.packets == 9, "1,875 bytes of 15 ms at 1 Mbit/s")
    }

    @Test func `media that leave meanwhile are a part of the cluster`() {
        var progress = progress()
        progress.noteRecorded(1_600)
        for _ in 0..<5 { progress.noteSent(100) }
        #expect(progress.isComplete)
        progress.noteRecorded(2_100)
        #expect(progress.bytes == 2_100)
    }
}
