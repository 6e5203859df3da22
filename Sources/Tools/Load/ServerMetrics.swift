/// Metrics of a server's Prometheus page: CPU time and memory of any server, and the packets that Nagare sent.
struct ServerMetrics: Sendable, Equatable {
    var cpuSeconds: Double?
    var residentBytes: Double?
    /// RTP packets to subscribers, retransmissions not included.
    var packetsSent: Double?
    var retransmissionsSent: Double?
    /// Datagrams that the server's sockets dropped, in either direction.
    var datagramsDropped: Double?

    /// Reads the text format 0.0.4; samples of one name that differ in their labels are summed.
    init(_ text: String) {
        for sample in text.split(whereSeparator: \.isNewline) where !sample.hasPrefix("#") {
            guard sample.hasPrefix("process_") || sample.hasPrefix("nagare_"), let value = Self.value(of: sample) else {
                continue
            }
            switch sample.prefix(while: { $0 != "{" && $0 != " " }) {
            case "process_cpu_seconds_total": cpuSeconds = (cpuSeconds ?? 0) + value
            case "process_resident_memory_bytes": residentBytes = (residentBytes ?? 0) + value
            case "nagare_packets_sent_total" where sample.contains(#"protocol="rtp""#):
                packetsSent = (packetsSent ?? 0) + value
            case "nagare_retransmissions_sent_total": retransmissionsSent = (retransmissionsSent ?? 0) + value
            case "nagare_datagrams_dropped_total": datagramsDropped = (datagramsDropped ?? 0) + value
            default: continue
            }
        }
    }

    /// The number after the name and the labels, whose values may have any character. A timestamp may follow it.
    private static func value(of sample: Substring) -> Double? {
        let rest = sample.lastIndex(of: "}").map { sample[sample.index(after: $0)...] } ?? sample.drop { $0 != " " }
        guard let value = rest.split(separator: " ").first.flatMap({ Double($0) }), value.isFinite else { return nil }
        return value
    }
}
