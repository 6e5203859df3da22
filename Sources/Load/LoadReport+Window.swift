import Client
import EventLoop
import Wire

extension LoadReport.Times {
    init?(_ histogram: DelayHistogram) {
        func milliseconds(_ fraction: Double) -> Double? {
            histogram.quantile(fraction).map { Double($0.nanoseconds) / 1e6 }
        }
        guard let p50 = milliseconds(0.5), let p95 = milliseconds(0.95), let p99 = milliseconds(0.99),
            let p999 = milliseconds(0.999)
        else { return nil }
        self.init(p50: p50, p95: p95, p99: p99, p999: p999, max: Double(histogram.max.nanoseconds) / 1e6)
    }
}

/// What the counters and the processes' usage were at one moment.
struct LoadSnapshot: Sendable {
    var tally: LoadTally
    var server: ProcessUsage?
    var own: ProcessUsage?
}

extension LoadReport.Window {
    /// - Parameters:
    ///   - end: when the window ended, which rates and CPU time are of.
    ///   - settled: what had arrived once everything that was under way at `end` had the time to.
    init(
        from start: LoadSnapshot,
        to end: LoadSnapshot,
        settled: LoadTally,
        _ configuration: LoadConfiguration,
        subscribers: Int
    ) {
        let tally = end.tally.since(start.tally)
        let final = settled.since(start.tally)
        let seconds = max((end.tally.takenAt - start.tally.takenAt).seconds, 1e-3)
        let settledSeconds = max((settled.takenAt - start.tally.takenAt).seconds, 1e-3)
        self.init(
            seconds: seconds,
            subscribers: subscribers,
            packetsPerSecond: Double(tally.packets) / seconds,
            megabitsPerSecond: Double(tally.bytes) * 8 / seconds / 1e6,
            video: configuration.videoBitsPerSecond > 0
                ? LoadReport.Media(
                    final.video,
                    frames: tally.video.framesDecoded,
                    subscribers: subscribers,
                    seconds: seconds
                ) : nil,
            audio: configuration.sendsAudio
                ? LoadReport.Media(
                    final.audio,
                    frames: tally.audio.framesDecoded,
                    subscribers: subscribers,
                    seconds: seconds
                ) : nil,
            packetsRequestedAgain: final.nackedPackets,
            keyFrameRequests: final.keyFrameRequests,
            server: LoadReport.Server(from: start.server, to: end.server, packets: tally.packets, seconds: seconds),
            generator: LoadReport.Generator(
                threads: settled.loops,
                cpuSeconds: end.own.flatMap { end in start.own.map { end.cpuSeconds - $0.cpuSeconds } },
                busyShare: final.busy.seconds / settledSeconds / Double(max(settled.loops, 1)),
                turnMilliseconds: LoadReport.Times(tally.turns),
                latenessMilliseconds: LoadReport.Times(tally.lateness),
                sendDrops: Int(clamping: final.sendDrops),
                receiveDrops: Int(clamping: final.sockets.kernelReceiveDrops)
            )
        )
    }
}

extension LoadReport.Media {
    init(_ received: MediaTally, frames: Int, subscribers: Int, seconds: Double) {
        self.init(
            packetsSent: received.packetsMade,
            packetsReceived: received.packets,
            packetsLost: received.lost,
            packetsDuplicated: received.duplicates,
            packetsLate: received.late,
            packetsUnreadable: received.unreadable,
            subscribersSilent: received.silentTracks,
            framesPerSecond: Double(frames) / seconds / Double(max(subscribers, 1)),
            longestGapMilliseconds: Double(received.longestGap.nanoseconds) / 1e6,
            latencyMilliseconds: LoadReport.Times(received.delays)
        )
    }
}

extension LoadReport.Server {
    init?(from start: ProcessUsage?, to end: ProcessUsage?, packets: Int, seconds: Double) {
        guard let start, let end else { return nil }
        let cpu = max(end.cpuSeconds - start.cpuSeconds, 0)
        self.init(
            cpuSeconds: cpu,
            cores: cpu / seconds,
            cpuMicrosecondsPerPacket: packets > 0 ? cpu * 1e6 / Double(packets) : nil,
            residentBytes: end.residentBytes
        )
    }
}

extension LoadReport.Window {
    /// A loop that is busier than this has no room for a burst.
    private static let busyShareMax = 0.8
    /// Beyond this the generator's own delay is no longer small beside what a server adds under load.
    private static let lagMillisecondsMax = 10.0

    /// What the generator itself did to the figures.
    var warnings: [String] {
        var warnings: [String] = []
        if generator.sendDrops > 0 {
            warnings.append(
                "The generator could not send \(generator.sendDrops) packets: losses are its own, at least in part."
            )
        }
        if generator.receiveDrops > 0 {
            warnings.append(
                "The generator read too slowly, and the kernel dropped \(generator.receiveDrops) packets at its sockets: "
                    + "losses are its own, at least in part."
            )
        }
        if generator.busyShare > Self.busyShareMax {
            warnings.append(
                "The generator was busy \(Int(generator.busyShare * 100)) % of the time: latencies are its own, at "
                    + "least in part. Use fewer clients, or more cores."
            )
        }
        if let lag = generator.turnMilliseconds?.p99, lag > Self.lagMillisecondsMax {
            warnings.append(
                "The generator took \(decimal(lag, 1)) ms (p99) for a turn: latencies are its own, at least in part."
            )
        }
        if let lag = generator.latenessMilliseconds?.p99, lag > Self.lagMillisecondsMax {
            warnings.append(
                "The generator made media \(decimal(lag, 1)) ms late (p99), for want of CPU time: what it sent was less "
                    + "even than an encoder's."
            )
        }
        return warnings
    }
}
