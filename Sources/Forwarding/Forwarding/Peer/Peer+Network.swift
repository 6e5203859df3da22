import Base
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
            if slot.reporter.reports.areNew(at: now) {
                slot.reporter.reports.add(to: &new)
                noteReport(on: slot)
            }
            guard slot.reporter.reports.areFresh(at: now), let report = slot.reporter.reports.newest else { continue }
            slot.reporter.reports.add(to: &down)
            guard slot.parameters.kind == .audio else { continue }
            // Jitter that the source's packets had when they arrived is not this network's.
            let inherited = slot.source?.streams.first?.statistics.jitterTicks ?? 0
            let added = report.jitter - min(report.jitter, inherited)
            sample.jitter = max(sample.jitter, Interval(ticks: added, of: .audio))
        }
        noteRoundTrip(at: now)
        if new.sent > 0 {
            sendRate?.receivedReport(lost: new.lost, expected: new.sent, roundTrip: reporting.roundTrip, at: now)
        }
        sample.fractionLost = max(up.fractionLost, down.fractionLost)
        if let roundTripAt = reporting.roundTripAt, now - roundTripAt < SlotReports.ageMax {
            sample.roundTrip = reporting.roundTrip ?? .zero
        }
        if let level = network.rate(sample) { core.emit(.networkChanged(level: level), of: id) }
        rateLinks(up, down, roundTrip: sample.roundTrip == .zero ? nil : sample.roundTrip, at: now)
    }

    /// Counts what the receiver reported of a slot.
    private func noteReport(on slot: SendSlot) {
        let kind = slot.parameters.kind
        guard let report = slot.reporter.reports.newest, let lost = slot.reporter.reports.fractionLost else { return }
        core.counters.downlink.note(.lossRatio, kind, lost)
        let jitter = Double(report.jitter) / Double(kind.clockRate)
        core.counters.downlink.note(.jitter, kind, min(jitter, Self.jitterMax))
    }

    /// Longer jitter is no measurement, and would outweigh all others in the average.
    private static let jitterMax = 10.0

    /// Counts the round trip, once for each kind that was reported on.
    private func noteRoundTrip(at now: Instant) {
        guard let roundTrip = reporting.roundTrip else { return }
        for kind in MediaKind.allCases {
            let isNew = slots.contains { $0.parameters.kind == kind && $0.reporter.reports.areNew(at: now) }
            if isNew { core.counters.downlink.note(.roundTrip, kind, Double(roundTrip.nanoseconds) / 1e9) }
        }
    }

    /// Rates both directions by themselves.
    private func rateLinks(_ up: PacketTally, _ down: PacketTally, roundTrip: Interval?, at now: Instant) {
        let before = LinkQuality(uplink: uplink.level, downlink: downlink.level)
        let isSilent = lastHeardAt.map { now - $0 >= LinkMeter.silenceMax } ?? false
        // The node does not know what the peer's encoders would send over a better network.
        uplink.rate(
            LinkMeter.Sample(fractionLost: up.measuredFractionLost, roundTrip: roundTrip, isSilent: isSilent)
        )
        downlink.rate(
            LinkMeter.Sample(
                fractionLost: down.measuredFractionLost,
                roundTrip: roundTrip,
                rateShare: rateShare,
                isSilent: isSilent
            )
        )
        let after = LinkQuality(uplink: uplink.level, downlink: downlink.level)
        if after != before { core.emit(.qualityChanged(after), of: id) }
    }

    /// When anything of the peer arrived last: a connectivity check or media. `nil` without a selected pair.
    private var lastHeardAt: Instant? {
        transport.lastCheckedAt.map { streams.reduce($0) { max($0, $1.lastPacketAt) } }
    }

    /// What the peer's network carries of what is wanted, 0…1; `nil` where that is not known or nothing is wanted.
    private var rateShare: Double? {
        let sending = sendingStatistics()
        guard sending.demand > 0 else { return nil }
        switch (sending.state, sending.limit) {
        // Probes have not yet found out. Without reports the last estimate says nothing.
        case (.unlimited, _), (.start, _), (.stale, _), (_, .silence): return nil
        case (_, .demand), (_, .maximum): return 1
        case (_, .delay), (_, .loss), (_, .competition), (_, .receiver):
            return min(Double(sending.target) / Double(sending.demand), 1)
        }
    }
}
