import Base
import Client
import DTLS
import EventLoop
import MediaTypes
import Negotiation
import Wire

/// One run: connects the clients, measures, and disconnects them.
package actor LoadRun {
    /// How long packets that are on their way at the end may take to arrive, retransmissions included.
    private static let settleMax = Interval.seconds(1)
    /// How long to wait for the first packet of each subscriber: some key frame requests.
    private static let firstMediaMax = Interval.seconds(3)

    /// Identifiers of a client's sessions are this far apart.
    private static let peersPerRun: UInt64 = 1 << 32

    enum Role { case publisher, subscriber }

    let configuration: LoadConfiguration
    private let signaling: any LoadSignaling
    /// Fetches the server's Prometheus page.
    private let readMetrics: (@Sendable (String) async throws(LoadError) -> String)?
    private let onProgress: @Sendable (LoadProgress) -> Void
    let certificate: DTLSCertificate
    /// Distinguishes this run's sources from those of another load generator.
    let firstSource = UInt32.random(in: 1...0x7FFF_0000)

    var loops: [LoadLoop] = []
    private var resources: [CreatedResource] = []
    /// `nil` for WHIP and WHEP.
    let sora: SoraSignaling?
    var members: [SoraMember] = []
    /// Senders and receivers of each channel, over Sora's signaling.
    var senders: [String: Int] = [:]
    var receivers: [String: Int] = [:]
    var isEnding = false
    /// Clients of Sora's signaling that were connected once.
    var joined: Set<PeerID> = []
    /// Those whose session ended before their join returned.
    var endedEarly: Set<PeerID> = []
    /// Clients whose session ended, on their way back.
    var returns: [Task<Void, Never>] = []
    var returning = 0
    var returnTimes = DelayHistogram()
    /// The publishers' identifiers, if the server names them.
    private var participants: [Int: String] = [:]
    var connectedPublishers: Set<Int> = []
    var report: LoadReport
    private var connectTimes = DelayHistogram()
    /// The server's usage before the first subscriber joined.
    private var serverBefore: ServerUsage?

    /// - Parameters:
    ///   - signaling: the signaling of WHIP and WHEP; unused when the configuration selects Sora's signaling.
    ///   - onProgress: called once a second.
    ///   - readMetrics: fetches the page at the configuration's `metricsURL`.
    /// - Throws: ``LoadError/usage(_:)`` for a configuration that is not valid.
    package init(
        _ configuration: LoadConfiguration,
        signaling: any LoadSignaling,
        onProgress: @escaping @Sendable (LoadProgress) -> Void = { _ in },
        readMetrics: (@Sendable (String) async throws(LoadError) -> String)? = nil
    ) throws(LoadError) {
        try configuration.validate()
        if let pid = configuration.serverPID, ProcessUsage.read(pid) == nil {
            throw .usage("The CPU time of process \(pid) cannot be read; give the pid of a process on this machine.")
        }
        do {
            certificate = try DTLSCertificate.generate()
        } catch {
            throw .failed("No certificate could be made: \(error).")
        }
        self.configuration = configuration
        self.signaling = signaling
        sora = configuration.signaling == .sora ? SoraSignaling(configuration) : nil
        self.readMetrics = readMetrics
        self.onProgress = onProgress
        report = LoadReport(configuration)
    }

    /// Runs to the end, or until the task is cancelled. In both cases all clients are disconnected when it returns.
    package func run() async throws(LoadError) -> LoadReport {
        let failure: LoadError?
        do throws(LoadError) {
            try await checkMetrics()
            try await startLoops()
            try await joinAndMeasure()
            failure = nil
        } catch {
            failure = error
        }
        report.isInterrupted = Task.isCancelled
        // In a task of its own, which is not cancelled with the run.
        await Task { await disconnectAll() }.value
        if let failure, !Task.isCancelled { throw failure }
        return report
    }

    private func startLoops() async throws(LoadError) {
        for number in 0..<configuration.loopCount {
            loops.append(try await LoadLoop.start(configuration, certificate: certificate, number: number))
        }
    }

    /// Checks the metrics page before clients join.
    private func checkMetrics() async throws(LoadError) {
        guard let url = configuration.metricsURL, let readMetrics else { return }
        guard ServerMetrics(try await readMetrics(url)).cpuSeconds != nil || configuration.serverPID != nil else {
            throw .usage("\(url) has no process_cpu_seconds_total; give the address of the server's Prometheus page.")
        }
    }

    private func joinAndMeasure() async throws(LoadError) {
        let progress = Task { await showProgress() }
        defer { progress.cancel() }
        await join(.publisher, 0..<configuration.publisherCount)
        guard configuration.publisherCount == 0 || report.publishersConnected > 0 else {
            let reason = report.failures.max { $0.value < $1.value }?.key ?? "The run was interrupted."
            throw .failed("No publisher could connect. \(reason)")
        }
        serverBefore = await serverUsage()
        if let goals = configuration.ramp {
            await ramp(goals)
        } else {
            await join(.subscriber, 0..<configuration.joiningSubscribers)
            report.window = await measure(isLast: true)
        }
        if let window = report.window { report.warnings = window.warnings }
    }

    /// Lets subscribers join step by step until the goals are missed, or all have joined.
    private func ramp(_ goals: LoadConfiguration.Ramp) async {
        var verdict = LoadReport.Ramp(goals)
        var joined = 0
        while joined < configuration.subscriberCount {
            let failedBefore = report.failedClients
            let next = min(joined + goals.step, configuration.subscriberCount)
            await join(.subscriber, joined..<next)
            joined = next
            guard var step = await measureStep(goals) else { break }
            // Goals must be missed in two measurements in a row, because one may be a disturbance of the machine.
            if step.goalsMissed != [], let again = await measureStep(goals) { step = again }
            report.window = step
            guard verdict.take(step, failed: report.failedClients - failedBefore, goals) else { break }
        }
        report.ramp = verdict
    }

    private func measureStep(_ goals: LoadConfiguration.Ramp) async -> LoadReport.Window? {
        guard var step = await measure(isLast: false) else { return nil }
        step.goalsMissed = step.missed(goals)
        report.steps.append(step)
        return step
    }

    private func disconnectAll() async {
        isEnding = true
        for loop in loops {
            await loop.expectEnds()
            for (reason, count) in await loop.ended { report.disconnections[reason.rawValue, default: 0] += count }
        }
        report.connectMilliseconds = LoadReport.Times(connectTimes)
        report.returnMilliseconds = LoadReport.Times(returnTimes)
        await withTaskGroup { group in
            for resource in resources { group.addTask { [signaling] in await signaling.end(resource) } }
        }
        resources = []
        await disconnectMembers()
        for loop in loops { await loop.shutdown() }
    }

    // MARK: Joining

    /// Connects clients at the configured rate. Returns when each is connected or has failed.
    private func join(_ role: Role, _ numbers: Range<Int>) async {
        let start = ContinuousClock.now
        await withTaskGroup { group in
            for (offset, number) in numbers.enumerated() {
                let due = start + .seconds(Double(offset) / configuration.joinRate)
                guard (try? await Task.sleep(until: due, clock: .continuous)) != nil else { break }
                group.addTask { await self.join(role, number) }
            }
        }
    }

    private func join(_ role: Role, _ number: Int) async {
        do throws(LoadError) {
            let start = EventLoop.now()
            try await connect(role, number)
            connectTimes.observe(EventLoop.now() - start)
            switch role {
            case .publisher:
                report.publishersConnected += 1
                connectedPublishers.insert(number)
            case .subscriber: report.subscribersConnected += 1
            }
        } catch {
            guard !Task.isCancelled else { return }
            report.failures[error.message, default: 0] += 1
        }
    }

    /// A client that is not negotiated yet.
    struct PendingClient {
        let id: PeerID
        let loop: LoadLoop
        let endpoint: LoadLoop.Endpoint
        let transport: LocalTransport
        let media: LoadLoop.Media
    }

    /// - Parameter former: the same client before its session ended, whose socket is used again.
    func prepareClient(
        _ role: Role,
        _ number: Int,
        after former: PendingClient? = nil
    ) async throws(LoadError) -> PendingClient {
        let index = role == .publisher ? number : configuration.publisherCount + number
        let loop = loops[index % loops.count]
        let endpoint: LoadLoop.Endpoint
        if let former {
            endpoint = former.endpoint
        } else {
            endpoint = try await loop.open(
                wantsV6: !configuration.hostIsV4,
                viewer: role == .subscriber && configuration.shapesViewers ? number : nil
            )
        }
        let id = PeerID(rawValue: former.map { $0.id.rawValue + Self.peersPerRun } ?? UInt64(index) + 1)
        // A source that begins anew has another number.
        let source =
            former.map { $0.media.source &+ UInt32(configuration.publisherCount) } ?? firstSource &+ UInt32(number)
        var generator = SystemRandomNumberGenerator()
        var media = LoadLoop.Media(source: source, hasAudio: configuration.sendsAudio)
        if configuration.videoBitsPerSecond > 0 {
            var video = SyntheticVideo.Settings()
            video.bitrate = configuration.videoBitsPerSecond
            video.framesPerSecond = configuration.framesPerSecond
            media.video = video
        }
        return PendingClient(
            id: id,
            loop: loop,
            endpoint: endpoint,
            transport: LocalTransport(
                credentials: ICECredentials(using: &generator),
                fingerprint: certificate.fingerprint,
                candidates: configuration.loopback.map { [TransportAddress(ip: $0, port: endpoint.port)] } ?? []
            ),
            media: media
        )
    }

    private func connect(_ role: Role, _ number: Int) async throws(LoadError) {
        let client = try await prepareClient(role, number)
        if let sora { return try await join(sora, client, role, number) }
        let (transport, loop, id) = (client.transport, client.loop, client.id)
        var generator = SystemRandomNumberGenerator()
        let audio: [CodecParameters] = configuration.sendsAudio ? [.standard(.opus)] : []
        let video: [CodecParameters] = configuration.videoBitsPerSecond > 0 ? [.standard(.vp8)] : []
        let offer =
            role == .publisher
            ? ClientOffer.publish(
                transport: transport,
                audio: audio,
                video: video,
                rids: configuration.sendsSimulcast ? ["r0", "r1", "r2"].compactMap { RID($0) } : [],
                using: &generator
            )
            : ClientOffer.watch(transport: transport, audio: audio, video: video, using: &generator)
        let resource = try await negotiate(offer.text, role, number)
        resources.append(resource)
        if role == .publisher { participants[number] = resource.participant }
        let answer: ClientAnswer
        do throws(NegotiationError) {
            answer = try offer.parse(answer: resource.answer)
        } catch {
            throw .failed("The server's answer cannot be used: \(error.message)")
        }
        guard !Task.isCancelled else { throw .failed("The run was interrupted.") }
        try await loop.add(
            id,
            endpoint: client.endpoint,
            credentials: transport.credentials,
            answer: answer,
            media: client.media
        )
        let outcome = await withTaskCancellationHandler {
            await loop.connectionResult(of: id)
        } onCancel: {
            Task { await loop.abandon(id) }
        }
        try outcome.get()
    }

    /// The publisher that a subscriber watches. If it is not connected, the next connected one, except in a conference.
    private func watchedPublisher(_ number: Int) throws(LoadError) -> Int {
        let watched = configuration.publisher(watchedBy: number)
        let count = configuration.publisherCount
        guard count > 0, !connectedPublishers.contains(watched) else { return watched }
        guard configuration.conferenceMembers == nil,
            let other = (1...count).lazy.map({ (watched + $0) % count }).first(where: connectedPublishers.contains)
        else { throw .failed("The publisher to be watched did not connect.") }
        return other
    }

    /// Gets the answer to an offer. The request is not cancelled with the run, because a resource whose answer is lost
    /// could not be deleted.
    private func negotiate(_ offer: String, _ role: Role, _ number: Int) async throws(LoadError) -> CreatedResource {
        let watched = role == .subscriber ? try watchedPublisher(number) : 0
        let participant = configuration.sharesChannels ? participants[watched] : nil
        if role == .subscriber, configuration.sharesChannels, participant == nil,
            !configuration.watchPath.contains("{publisher}")
        {
            throw .failed("The server does not name its publishers; use {publisher} in the paths.")
        }
        let signaling = signaling
        let request = Task { () -> Result<CreatedResource, LoadError> in
            do throws(LoadError) {
                switch role {
                case .publisher: return .success(try await signaling.publish(offer: offer, number: number + 1))
                case .subscriber:
                    return .success(
                        try await signaling.watch(offer: offer, number: watched + 1, participant: participant)
                    )
                }
            } catch {
                return .failure(error)
            }
        }
        return try await request.value.get()
    }

    // MARK: Measuring

    /// Measures a window, which a cancelled run cuts short.
    /// - Parameter isLast: whether the publishers stop at its end, so that losses at the end count too.
    private func measure(isLast: Bool) async -> LoadReport.Window? {
        guard !Task.isCancelled else { return nil }
        await waitForTracks()
        await waitForMedia()
        for loop in loops { await loop.beginWindow() }
        let start = await snapshot()
        try? await Task.sleep(for: .seconds(configuration.durationSeconds))
        while returning > 0, (try? await Task.sleep(for: .milliseconds(50))) != nil {}
        let end = await snapshot()
        let settled = await Task { await settle(stopping: isLast) }.value
        var window = LoadReport.Window(
            from: start,
            to: end,
            settled: settled,
            WindowContext(
                hasVideo: configuration.videoBitsPerSecond > 0,
                hasAudio: configuration.sendsAudio,
                subscribers: report.subscribersConnected,
                streams: sora == nil ? report.subscribersConnected : streams,
                serverBefore: serverBefore
            )
        )
        guard configuration.shapesViewers else { return window }
        window.viewers = LoadReport.viewers(from: start.tally.viewers, to: end.tally.viewers, seconds: window.seconds)
        return window
    }

    private func snapshot() async -> LoadSnapshot {
        LoadSnapshot(tally: await tally(), server: await serverUsage(), own: ProcessUsage.read(nil))
    }

    private func serverUsage() async -> ServerUsage {
        var usage = ServerUsage(process: configuration.serverPID.flatMap { ProcessUsage.read($0) })
        guard let url = configuration.metricsURL, let readMetrics else { return usage }
        // In a task of its own, which is not cancelled with the run.
        let page = await Task { () -> String? in
            do throws(LoadError) { return try await readMetrics(url) } catch { return nil }
        }.value
        usage.metrics = page.map { ServerMetrics($0) }
        return usage
    }

    private func tally(made: [UInt32: MadeMedia]? = nil) async -> LoadTally {
        var sum = LoadTally()
        sum.loops = 0
        for loop in loops { sum.merge(await loop.tally(made: made)) }
        return sum
    }

    /// Waits until a packet has arrived on every track, up to ``firstMediaMax``.
    private func waitForMedia() async {
        let start = EventLoop.now()
        while await silentTracks() > 0, EventLoop.now() - start < Self.firstMediaMax {
            guard (try? await Task.sleep(for: .milliseconds(20))) != nil else { return }
        }
    }

    private func silentTracks() async -> Int {
        var count = 0
        for loop in loops { count += await loop.silentTracks }
        return count
    }

    /// Waits for missing packets, up to ``settleMax``.
    private func settle(stopping: Bool) async -> LoadTally {
        var made: [UInt32: MadeMedia] = [:]
        if stopping {
            for loop in loops { await loop.stopSending() }
            for loop in loops { made.merge(await loop.made) { $1 } }
        }
        let start = EventLoop.now()
        while true {
            let tally = await tally(made: made)
            guard tally.lost > 0, EventLoop.now() - start < Self.settleMax else { return tally }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    private func showProgress() async {
        let start = EventLoop.now()
        var before = await tally()
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            let tally = await tally()
            let second = tally.since(before)
            let length = max((tally.takenAt - before.takenAt).seconds, 1e-3)
            before = tally
            var delays = second.video.delays
            delays.merge(second.audio.delays)
            let times = LoadReport.Times(delays)
            onProgress(
                LoadProgress(
                    seconds: (tally.takenAt - start).seconds,
                    connected: configuration.connectedClients(report),
                    clients: configuration.clientCount,
                    failed: report.failedClients,
                    packetsPerSecond: Double(second.packets) / length,
                    megabitsPerSecond: Double(second.bytes) * 8 / length / 1e6,
                    missing: tally.lost,
                    p50Milliseconds: times?.p50,
                    p99Milliseconds: times?.p99,
                    busyShare: second.busy.seconds / length / Double(max(tally.loops, 1)),
                    timersP99Milliseconds: LoadReport.Times(second.lateness)?.p99
                )
            )
        }
    }
}

extension LoadConfiguration {
    /// The host of the URL, without the brackets of an IPv6 address.
    private var host: Substring {
        let rest = url.drop { $0 != "/" }.drop { $0 == "/" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let host = authority.split(separator: "@").last ?? authority
        if host.hasPrefix("[") { return host.dropFirst().prefix { $0 != "]" } }
        return host.prefix { $0 != ":" }
    }

    /// Whether an IPv4 socket is enough for a client.
    var hostIsV4: Bool { host == "localhost" || IPAddress(host)?.isV4 == true }

    /// The loopback address for candidates in offers to a server on this machine. Other servers learn the clients'
    /// addresses from connectivity checks (RFC 8445 §7.3.1.3).
    var loopback: IPAddress? {
        if host == "localhost" { return .loopbackV4 }
        guard let address = IPAddress(host), address.isLoopback else { return nil }
        return address.isV4 ? .loopbackV4 : .loopbackV6
    }
}
