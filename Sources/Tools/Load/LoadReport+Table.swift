/// A number with a fixed count of decimals.
func decimal(_ value: Double, _ places: Int) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
    var scale: Int64 = 1
    for _ in 0..<places { scale *= 10 }
    let scaled = Int64((abs(value) * Double(min(scale, 1_000))).rounded())
    let unit = min(scale, 1_000)
    let sign = value < 0 && scaled != 0 ? "-" : ""
    guard unit > 1 else { return "\(sign)\(scaled)" }
    let fraction = String(scaled % unit)
    let digits = String(unit).count - 1
    return "\(sign)\(scaled / unit).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
}

extension LoadReport {
    /// The report as lines of text, for a terminal of 100 columns.
    package var table: String {
        var lines = ["Load on \(url), channel \(channel)\(isInterrupted ? " (interrupted)" : "")"]
        lines.append(
            "  clients      \(publishersConnected) of \(publishers) publishers and \(subscribersConnected) of "
                + "\(subscribers) subscribers connected"
        )
        if let connectMilliseconds { lines.append("  connecting   \(Self.line(connectMilliseconds))") }
        for (reason, count) in failures.sorted(by: { $0.value > $1.value }) {
            lines.append("  failed       \(count) × \(reason)")
        }
        for (reason, count) in disconnections.sorted(by: { $0.value > $1.value }) {
            lines.append("  left         \(count) × \(reason)")
        }
        if let returned { lines.append("  returned     \(returned) times") }
        if let returnMilliseconds { lines.append("               \(Self.line(returnMilliseconds))") }
        if !steps.isEmpty { lines += ["", "Steps"] + Self.rows(steps) }
        if let ramp { lines += ["", ramp.message] + ramp.reasons.dropFirst().map { "Also: \($0)" } }
        if let window {
            lines.append("")
            lines.append(steps.isEmpty ? "Window" : "Last step")
            lines += Self.lines(window)
        }
        for warning in warnings { lines += ["", "Warning: \(warning)"] }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A row for each step, in columns that are wide enough for all of them.
    private static func rows(_ steps: [Window]) -> [String] {
        var rows = [
            [
                "subscribers", "packets/s", "Mbit/s", "loss %", "p50 ms", "p99 ms", "server %", "µs/packet", "MiB",
                "generator %", "goals",
            ]
        ]
        for step in steps {
            let latency = (step.video ?? step.audio)?.latencyMilliseconds
            rows.append([
                "\(step.subscribers)", decimal(step.packetsPerSecond, 0), decimal(step.megabitsPerSecond, 1),
                decimal(step.lossPercent, 3), latency.map { decimal($0.p50, 2) } ?? "-",
                step.p99Milliseconds.map { decimal($0, 2) } ?? "-",
                step.server.map { decimal($0.cores * 100, 0) } ?? "-",
                step.server?.cpuMicrosecondsPerPacket.map { decimal($0, 2) } ?? "-",
                step.server.map { decimal(Double($0.residentBytes) / 1_048_576, 0) } ?? "-",
                decimal(step.generator.busyShare * 100, 0),
                step.goalsMissed?.isEmpty ?? true ? "met" : "missed",
            ])
        }
        return columns(rows)
    }

    private static func columns(_ rows: [[String]]) -> [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            zip(row, widths).map { String(repeating: " ", count: $1 - $0.count + 2) + $0 }.joined()
        }
    }

    private static func lines(_ window: Window) -> [String] {
        var lines = [
            "  length       \(decimal(window.seconds, 1)) s, \(window.subscribers) subscribers",
            "  received     \(decimal(window.packetsPerSecond, 0)) packets/s, "
                + "\(decimal(window.megabitsPerSecond, 1)) Mbit/s",
        ]
        for (name, media) in [("video", window.video), ("audio", window.audio)] {
            guard let media else { continue }
            lines.append(
                "  \(name)        sent \(media.packetsSent), received \(media.packetsReceived), "
                    + "lost \(media.packetsLost) (\(decimal(media.lossPercent, 3)) %)"
                    + (media.packetsWithheld > 0 ? ", left out by the server \(media.packetsWithheld)" : "")
            )
            lines.append(
                "               duplicated \(media.packetsDuplicated), reordered \(media.packetsReordered), "
                    + "restored \(media.packetsRestored)"
            )
            if media.packetsUnreadable > 0 {
                lines.append("               \(media.packetsUnreadable) packets of other publishers")
            }
            if media.subscribersSilent > 0 {
                lines.append("               nothing arrived at \(media.subscribersSilent) subscribers")
            }
            if name == "video" {
                lines.append(
                    "               \(decimal(media.framesPerSecond, 1)) frames/s, longest gap "
                        + "\(decimal(media.longestGapMilliseconds, 0)) ms"
                )
            }
            if let latency = media.latencyMilliseconds { lines.append("    latency    \(line(latency))") }
        }
        lines.append(
            "  feedback     \(window.packetsRequestedAgain) packets requested by NACK, \(window.copiesDropped) copies "
                + "dropped, \(window.keyFrameRequests) key frame requests"
        )
        if let server = window.server {
            let each = server.cpuMicrosecondsPerPacket.map { "\(decimal($0, 2)) µs a forwarded packet, " } ?? ""
            lines.append(
                "  server       \(each)\(decimal(server.cores * 100, 0)) % of a core, "
                    + "\(decimal(Double(server.residentBytes) / 1_048_576, 0)) MiB"
                    + (server.residentBytesPerSubscriber.map { ", \(decimal($0 / 1_024, 0)) KiB a subscriber" } ?? "")
            )
            if let forwarded = server.packetsForwarded {
                lines.append(
                    "               forwarded \(forwarded) packets, sent \(server.retransmissionsSent ?? 0) again, "
                        + "dropped \(server.datagramsDropped ?? 0)"
                )
            }
        }
        let generator = window.generator
        let turns = generator.turnMilliseconds.map { ", turns p99 \(decimal($0.p99, 2)) max \(decimal($0.max, 1)) ms" }
        let waiting = generator.waitingShare.map { ", waiting \(decimal($0 * 100, 0)) %" }
        lines.append(
            "  generator    busy \(decimal(generator.busyShare * 100, 0)) %\(waiting ?? "")\(turns ?? ""), dropped "
                + "\(generator.sendDrops) out, \(generator.receiveDrops) in"
        )
        if let viewers = window.viewers { lines += Self.rows(viewers) }
        return lines
    }

    /// The most viewers in the table. The JSON report has all.
    private static let viewersMax = 20

    private static func rows(_ viewers: [Viewer]) -> [String] {
        var rows = [
            ["viewer", "kbit/s", "frames/s", "freezes", "frozen s", "layer changes", "link drops", "queue max ms"]
        ]
        for viewer in viewers.prefix(viewersMax) {
            rows.append([
                "\(viewer.number)", decimal(viewer.kilobitsPerSecond, 0), decimal(viewer.framesPerSecond, 1),
                "\(viewer.freezes)", decimal(viewer.freezeSeconds, 1), "\(viewer.layerChanges)", "\(viewer.linkDrops)",
                decimal(viewer.queueMillisecondsMax, 0),
            ])
        }
        let more = viewers.count - viewersMax
        return ["", "Viewers"] + columns(rows) + (more > 0 ? ["  … and \(more) more: --json lists all."] : [])
    }

    private static func line(_ times: Times) -> String {
        "p50 \(decimal(times.p50, 2))  p95 \(decimal(times.p95, 2))  p99 \(decimal(times.p99, 2))  "
            + "p99.9 \(decimal(times.p999, 2))  max \(decimal(times.max, 2)) ms"
    }
}

/// The progress of a run, once a second.
package struct LoadProgress: Sendable {
    package var seconds: Double
    package var connected: Int
    package var clients: Int
    package var failed: Int
    package var packetsPerSecond: Double
    package var megabitsPerSecond: Double
    /// Packets that are missing at present. Some may still arrive.
    package var missing: Int
    package var p50Milliseconds: Double?
    package var p99Milliseconds: Double?
    /// The share of the second that the generator was busy, 0…1.
    package var busyShare: Double
    /// The 99th percentile of the delay of its timers: latencies beside it are the machine's.
    package var timersP99Milliseconds: Double?

    /// One line for a terminal.
    package var line: String {
        var parts = ["\(decimal(seconds, 0)) s", "\(connected)/\(clients) connected"]
        if failed > 0 { parts.append("\(failed) failed") }
        parts.append("\(decimal(packetsPerSecond, 0)) packets/s")
        parts.append("\(decimal(megabitsPerSecond, 1)) Mbit/s")
        if let p50Milliseconds, let p99Milliseconds {
            parts.append("latency p50 \(decimal(p50Milliseconds, 2)) p99 \(decimal(p99Milliseconds, 2)) ms")
        }
        parts.append("\(missing) missing")
        let timers = timersP99Milliseconds.map { ", timers p99 \(decimal($0, 2)) ms late" } ?? ""
        parts.append("generator \(decimal(busyShare * 100, 0)) %\(timers)")
        return parts.joined(separator: "  ")
    }
}
