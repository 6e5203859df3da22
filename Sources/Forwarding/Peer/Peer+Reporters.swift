import SRTP
import Wire

/// The SSRCs under which a peer sends RTCP and nothing else.
///
/// Some browsers report on each m-section under an SSRC of its own. So a peer uses a new one whenever somebody joins, and
/// the table of its sources, which is bounded, would be full after some comings and goings of others.
extension Peer {
    /// Silence after which a reporter's place may be another source's: browsers report every few seconds.
    private static let reporterSilence = Interval.seconds(15)
    /// As many as the table of sources has places.
    private static let reportersMax = 64

    /// Notes who sent an RTCP packet that was authentic.
    func noteReporter(_ ssrc: SSRC, at now: Instant) {
        if let index = reporters.firstIndex(where: { $0.ssrc == ssrc }) {
            reporters[index].heardAt = now
        } else if reporters.count < Self.reportersMax, source(ssrc) == nil {
            reporters.append((ssrc, now))
        }
    }

    /// Gives the place of the reporter that was silent for the longest time to another source.
    ///
    /// Its old packets could be replayed from then on: what they ask for is bounded, and what they report is old.
    /// - Returns: whether there is a place now.
    func forgetSilentReporter(at now: Instant) -> Bool {
        reporters.removeAll { source($0.ssrc) != nil }
        guard let oldest = reporters.indices.min(by: { reporters[$0].heardAt < reporters[$1].heardAt }),
            now - reporters[oldest].heardAt >= Self.reporterSilence
        else { return false }
        transport.forgetSource(reporters.remove(at: oldest).ssrc)
        return true
    }
}
