import EventLoop
import Forwarding
import Foundation
import Metrics
import Testing

@testable import Media
@testable import nagare

/// The metrics' names, which dashboards and alerts depend on.
@Suite struct NodeSnapshotTests {
    private static func snapshot() -> NodeSnapshot {
        var snapshot = NodeSnapshot(srtpBackend: .openssl)
        snapshot.process = ProcessMetrics.current()
        for _ in 0..<2 {
            snapshot.loops.append(
                MediaMetrics(
                    loop: LoopCounters(),
                    forwarder: ForwarderCounters(),
                    gauges: ForwarderGauges(),
                    turnTime: .shortTimes,
                    forwardingLatency: .shortTimes,
                    queuedDatagrams: 3,
                    batchOverflows: 0,
                    relay: RelayCounters()
                )
            )
        }
        return snapshot
    }

    /// Each family's name and kind.
    private static func families() -> [(name: String, kind: String)] {
        snapshot().page.text.matches(of: /# TYPE (\w+) (\w+)/).map { (String($0.1), String($0.2)) }
    }

    private static func contents(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func `names follow Prometheus' conventions`() {
        let families = Self.families()
        #expect(families.count > 40)
        for (name, kind) in families {
            #expect(name.hasPrefix("nagare_") || name.hasPrefix("process_"), "\(name)")
            #expect((kind == "counter") == name.hasSuffix("_total"), "\(name)")
            if kind == "histogram" { #expect(name.hasSuffix("_seconds"), "\(name)") }
        }
    }

    @Test func `every drop reason and every end has a series for each loop`() {
        let text = Self.snapshot().page.text
        for loop in 0..<2 {
            for reason in DropReason.allCases {
                #expect(
                    text.contains("\nnagare_packets_dropped_total{loop=\"\(loop)\",reason=\"\(reason.label)\"} 0\n")
                )
            }
            for reason in PeerCloseReason.allCases {
                #expect(
                    text.contains("\nnagare_peers_closed_total{loop=\"\(loop)\",reason=\"\(reason.rawValue)\"} 0\n")
                )
            }
            #expect(text.contains("\nnagare_send_queue_datagrams{loop=\"\(loop)\"} 3\n"))
        }
    }

    @Test func `the page tells what encrypts`() {
        #expect(Self.snapshot().page.text.contains("\nnagare_srtp_backend_info{backend=\"openssl\"} 1\n"))
    }

    @Test func `drop reasons are labelled in lower case`() {
        for reason in DropReason.allCases {
            #expect(reason.label.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F }, "\(reason.label)")
        }
        #expect(Set(DropReason.allCases.map(\.label)).count == DropReason.allCases.count)
    }

    @Test func `the dashboard asks for metrics that exist`() throws {
        let known = Self.families().flatMap { family in
            family.kind == "histogram"
                ? ["_bucket", "_sum", "_count"].map { family.name + $0 } : [family.name]
        }
        let dashboard = try Self.contents("ops/grafana.json")
        let asked = Set(dashboard.matches(of: /\b((?:nagare|process)_\w+)/).map { String($0.1) })
        #expect(asked.count > 30)
        #expect(asked.subtracting(known).isEmpty)
    }
}
