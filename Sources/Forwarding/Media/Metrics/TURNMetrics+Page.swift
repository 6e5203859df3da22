package import Metrics
import TURN

/// One media loop's TURN server in a scrape.
extension TURNMetrics {
    package func add(to page: inout MetricsPage, labels: [MetricLabel]) {
        for (transport, value) in [("udp", allocations - streamAllocations), ("tcp", streamAllocations)] {
            page.addGauge(
                "nagare_turn_allocations",
                help: "TURN allocations that exist, by the client's transport; tcp with and without TLS.",
                labels: labels + [MetricLabel("transport", transport)],
                value
            )
        }
        page.addGauge(
            "nagare_turn_calls",
            help: "One-to-one calls whose members have TURN credentials.",
            labels: labels,
            calls
        )
        page.addGauge(
            "nagare_turn_call_allocations",
            help: "TURN allocations of members of one-to-one calls; also counted in nagare_turn_allocations.",
            labels: labels,
            callAllocations
        )
        let counts: [(String, String, Int)] = [
            ("nagare_turn_allocations_created_total", "TURN allocations created.", counters.allocationsCreated),
            (
                "nagare_turn_allocations_expired_total", "TURN allocations that were not refreshed in time.",
                counters.allocationsExpired
            ),
            ("nagare_turn_bindings_total", "Addresses told to TURN clients (STUN).", counters.bindings),
            (
                "nagare_turn_call_datagrams_total",
                "Datagrams relayed from one member of a call to the other; also in nagare_turn_datagrams_total.",
                counters.callPackets
            ),
            (
                "nagare_turn_call_bytes_total", "Bytes of the datagrams that are relayed in calls, without headers.",
                counters.callBytes
            ),
        ]
        for (name, help, value) in counts {
            page.addCounter(name, help: help, labels: labels, UInt64(clamping: value))
        }
        let requests: [(String, Int)] = [
            ("success", counters.succeeded), ("challenge", counters.challenges),
            ("unauthorized", counters.unauthorized), ("stale_nonce", counters.staleNonces),
            ("refused", counters.refused),
        ]
        for (result, value) in requests {
            page.addCounter(
                "nagare_turn_requests_total",
                help: "TURN requests by their result.",
                labels: labels + [MetricLabel("result", result)],
                UInt64(clamping: value)
            )
        }
        for (direction, value) in [("in", counters.packetsIn), ("out", counters.packetsOut)] {
            page.addCounter(
                "nagare_turn_datagrams_total",
                help: "Datagrams of and to clients that were relayed by TURN.",
                labels: labels + [MetricLabel("direction", direction)],
                UInt64(clamping: value)
            )
        }
        for reason in TURNDropReason.allCases {
            page.addCounter(
                "nagare_turn_dropped_total",
                help: "TURN messages and relayed datagrams dropped.",
                labels: labels + [MetricLabel("reason", reason.label)],
                UInt64(clamping: counters.drops(reason))
            )
        }
    }
}

extension TURNDropReason {
    /// The `reason` label.
    fileprivate var label: String {
        switch self {
        case .malformed: "malformed"
        case .fingerprint: "fingerprint"
        case .unexpectedClass: "unexpected_class"
        case .responseTooLarge: "response_too_large"
        case .rateLimited: "rate_limited"
        case .noAllocation: "no_allocation"
        case .noChannel: "no_channel"
        case .noPermission: "no_permission"
        case .forbiddenPeer: "forbidden_peer"
        case .badIndication: "bad_indication"
        case .empty: "empty"
        case .tooLong: "too_long"
        case .overRate: "over_rate"
        }
    }
}
