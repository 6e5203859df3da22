import Base
import CongestionControl
import MediaTypes

@testable import Forwarding

/// A fault of the server's adaptation: a bound that holds for every fault is worth nothing.
enum AdaptationFault: String, CaseIterable, Sendable {
    /// Every viewer is sent what it asks for.
    case neverEstimates
    case neverProbes, probesAlways
    case neverPaces
    /// The target rate is 300 kbit/s at most.
    case staysLow
    /// The target rate is 10 Mbit/s at least.
    case staysHigh
    /// The target rate is 300 kbit/s at most for one second of every five.
    case flaps
    /// Nothing is sent for one second of every ten.
    case pauses

    var sendRate: SendRateSettings {
        var settings = SendRateSettings()
        switch self {
        case .neverEstimates: settings.isEstimating = false
        case .neverProbes: settings.isProbing = false
        case .staysLow: settings.maximum = 300_000
        case .staysHigh:
            settings.minimum = 10_000_000
            settings.start = 10_000_000
        case .probesAlways, .neverPaces, .flaps, .pauses: break
        }
        return settings
    }

    /// Does to a peer what the settings cannot; called each 50 ms.
    func apply(to peer: Peer, at now: Instant) {
        let tick = now.nanoseconds / 50_000_000
        switch self {
        case .neverEstimates, .neverProbes, .staysLow, .staysHigh: break
        case .neverPaces: peer.setSendPolicy(.immediate, at: now)
        case .flaps: if tick % 20 == 0 { peer.setSendRateMax(tick % 100 == 0 ? 300_000 : nil, at: now) }
        case .pauses:
            let end = Instant(nanoseconds: (tick / 200 * 200 + 20) * 50_000_000)
            peer.setSendPolicy(now < end ? .deciding { _, now in now < end ? .later(end) : .now } : .paced, at: now)
        case .probesAlways:
            guard peer.probe == nil, tick % 4 == 0 else { return }
            let cluster = ProbeCluster(id: 200, rate: 4_000_000)
            peer.probe = ProbeProgress(
                cluster: cluster,
                startedAt: now,
                firstPacket: peer.transport.egress.packetsSent
            )
            peer.core.schedule.setSendTime(of: peer.id, to: now)
        }
    }
}
