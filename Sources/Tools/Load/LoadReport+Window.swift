import Base
import Client
import EventLoop
import Impairment

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

/// The server's CPU time and memory at one moment.
struct ServerUsage: Sendable {
    var process: ProcessUsage?
    var metrics: ServerMetrics?

    var residentBytes: Double? { process.map { Double($0.residentBytes) } ?? metrics?.residentBytes }

    /// From the process if known, because it is more precise than the metrics.
    func cpuSeconds(since earlier: Self) -> Double? {
        if let process, let before = earlier.process { return process.cpuSeconds(since: before) }
        guard let seconds = metrics?.cpuSeconds, let before = earlier.metrics?.cpuSeconds else { return nil }
        return max(seconds - before, 0)
    }
}

/// The counters and the processes' usage at one moment.
struct LoadSnapshot: Sendable {
    var tally: LoadTally
    var server: ServerUsage
    var own: ProcessUsage?
}

/// The parameters of a window's evaluation.
struct WindowContext: Sendable {
    var hasVideo: Bool
    var hasAudio: Bool
    var subscribers: Int
    /// Pairs of a publisher and a subscriber of it.
    var streams: Int
    /// The server before the first subscriber joined.
    var serverBefore: ServerUsage?
}

extension LoadReport.Window {
    /// - Parameters:
    ///   - end: the end of the window, for rates and CPU time.
    ///   - settled: the counts after packets under way at `end` had time to arrive, for losses.
    init(from start: LoadSnapshot, to end: LoadSnapshot, settled: LoadTally, _ context: WindowContext) {
        let tally = end.tally.since(start.tally)
        let final = settled.since(start.tally)
        let seconds = max((end.tally.takenAt - start.tally.takenAt).seconds, 1e-3)
        func media(_ received: MediaTally, frames: Int) -> LoadReport.Media {
            LoadReport.Media(received, frames: frames, streams: context.streams, seconds: seconds)
        }
        self.init(
            seconds: seconds,
            subscribers: context.subscribers,
            packetsPerSecond: Double(tally.packets) / seconds,
            megabitsPerSecond: Double(tally.bytes) * 8 / seconds / 1e6,
            lossPercent: Self.percent(final.lost, of: final.lost + final.packets),
            video: context.hasVideo ? media(final.video, frames: tally.video.framesDecoded) : nil,
            audio: context.hasAudio ? media(final.audio, frames: tally.audio.framesDecoded) : nil,
            packetsRequestedAgain: final.nackedPackets,
            copiesDropped: final.copiesDropped,
            keyFrameRequests: final.keyFrameRequests,
            server: LoadReport.Server(
                from: start.server,
                to: end.server,
                before: context.serverBefore,
                subscribers: context.subscribers,
                packets: tally.packets,
                seconds: seconds
            ),
            generator: LoadReport.Generator(from: start, to: end, settled: final, loops: settled.loops)
        )
    }

    fileprivate static func percent(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) * 100 : 0
    }
}

extension LoadReport.Media {
    init(_ received: MediaTally, frames: Int, streams: Int, seconds: Double) {
        self.init(
            packetsSent: received.packetsMade,
            packetsReceived: received.packets,
            packetsLost: received.lost,
            packetsWithheld: received.withheld,
            lossPercent: LoadReport.Window.percent(received.lost, of: received.lost + received.packets),
            packetsDuplicated: received.duplicates,
            packetsLate: received.reordered + received.restored,
            packetsReordered: received.reordered,
            packetsRestored: received.restored,
            packetsUnreadable: received.unreadable,
            subscribersSilent: received.silentTracks,
            framesPerSecond: Double(frames) / seconds / Double(max(streams, 1)),
            longestGapMilliseconds: Double(received.longestGap.nanoseconds) / 1e6,
            latencyMilliseconds: LoadReport.Times(received.delays)
        )
    }
}

extension LoadReport {
    /// What each subscriber with a link received between two moments.
    static func viewers(from start: [Int: ViewerTally], to end: [Int: ViewerTally], seconds: Double) -> [Viewer] {
        end.sorted { $0.key < $1.key }.map { number, end in
            let start = start[number] ?? ViewerTally()
            return Viewer(
                number: number + 1,
                kilobitsPerSecond: Double(end.bytes - start.bytes) * 8 / seconds / 1e3,
                framesPerSecond: Double(end.framesDecoded - start.framesDecoded) / seconds,
                freezes: end.freezes - start.freezes,
                freezeSeconds: (end.freezeTime - start.freezeTime).seconds,
                layerChanges: end.switches - start.switches,
                linkDrops: end.link.packetsDropped - start.link.packetsDropped,
                queueMillisecondsMax: end.link.queueDelayMax.seconds * 1e3
            )
        }
    }
}

extension LoadReport.Server {
    /// `nil` unless the CPU time is known at the start and at the end.
    init?(
        from start: ServerUsage,
        to end: ServerUsage,
        before: ServerUsage?,
        subscribers: Int,
        packets: Int,
        seconds: Double
    ) {
        guard let cpu = end.cpuSeconds(since: start) else { return nil }
        func difference(_ path: (ServerMetrics) -> Double?) -> Int? {
            guard let now = end.metrics.flatMap(path), let then = start.metrics.flatMap(path) else { return nil }
            return Int(exactly: max(now - then, 0).rounded())
        }
        let forwarded = difference(\.packetsSent)
        let divisor = forwarded ?? packets
        let resident = end.residentBytes ?? 0
        let growth = before?.residentBytes.map { resident - $0 }
        self.init(
            cpuSeconds: cpu,
            cores: cpu / seconds,
            cpuMicrosecondsPerPacket: divisor > 0 ? cpu * 1e6 / Double(divisor) : nil,
            residentBytes: Int(exactly: resident.rounded()) ?? 0,
            residentBytesPerSubscriber: subscribers > 0 ? growth.map { $0 / Double(subscribers) } : nil,
            packetsForwarded: forwarded,
            retransmissionsSent: difference(\.retransmissionsSent),
            datagramsDropped: difference(\.datagramsDropped)
        )
    }
}

extension LoadReport.Generator {
    init(from start: LoadSnapshot, to end: LoadSnapshot, settled: LoadTally, loops: Int) {
        let tally = end.tally.since(start.tally)
        let seconds = max((end.tally.takenAt - start.tally.takenAt).seconds, 1e-3) * Double(max(loops, 1))
        let cpu = end.own.flatMap { end in start.own.map { end.cpuSeconds(since: $0) } }
        let wait = end.own.flatMap { end in start.own.flatMap { end.waitSeconds(since: $0) } }
        self.init(
            threads: loops,
            cpuSeconds: cpu,
            residentBytes: end.own?.residentBytes,
            cpuMicrosecondsPerPacket: tally.packets > 0 ? cpu.map { $0 * 1e6 / Double(tally.packets) } : nil,
            busyShare: tally.busy.seconds / seconds,
            waitingShare: wait.map { $0 / seconds },
            turnMilliseconds: LoadReport.Times(tally.turns),
            latenessMilliseconds: LoadReport.Times(tally.lateness),
            sendDrops: Int(clamping: settled.sendDrops),
            receiveDrops: Int(clamping: settled.sockets.kernelReceiveDrops)
        )
    }
}
