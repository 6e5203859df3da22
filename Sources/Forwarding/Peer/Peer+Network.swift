import MediaTypes
import Wire

// How stable the network to the peer is, by what both sides report anyway.

extension Peer {
    /// Rates the last second, after its reports were made.
    func rateNetwork(at now: Instant) {
        var sample = NetworkQuality.Sample()
        var up = PacketTally()
        for stream in streams {
            up.add(sent: stream.statistics.lastInterval.expected, lost: stream.statistics.lastInterval.lost)
            if stream.track.parameters.kind == .audio, stream.isFlowing(at: now) {
                sample.jitter = max(sample.jitter, Interval(ticks: stream.statistics.jitterTicks, of: .audio))
            }
        }
        var down = PacketTally()
        var new = PacketTally()
        for slot in slots {
            slot.reporter.reports.measure(at: now)
            if slot.reporter.reports.areNew(at: now) { slot.reporter.reports.add(to: &new) }
            guard slot.reporter.reports.areFresh(at: now), let report = slot.reporter.reports.newest else { continue }
            slot.reporter.reports.add(to: &down)
            guard slot.parameters.kind == .audio else { continue }
            // Jitter that the source's packets had when they arrived is not this network's.
            let inherited = slot.source?.streams.first?.statistics.jitterTicks ?? 0
            let added = report.jitter - min(report.jitter, inherited)
            sample.jitter = max(sample.jitter, Interval(ticks: added, of: .audio))
        }
        if new.sent > 0 {
            sendRate?.receivedReport(lost: new.lost, expected: new.sent, roundTrip: reporting.roundTrip, at: now)
        }
        sample.fractionLost = max(up.fractionLost, down.fractionLost)
        if let roundTripAt = reporting.roundTripAt, now - roundTripAt < SlotReports.ageMax {
            sample.roundTrip = reporting.roundTrip ?? .zero
        }
        if let level = network.rate(sample) { core.emit(.networkChanged(level: level), of: id) }
    }
}
