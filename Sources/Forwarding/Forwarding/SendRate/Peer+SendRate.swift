import Base
import CongestionControl
import MediaTypes
import Wire

/// What the peer's network carries decides what the peer is sent.
extension Peer {
    /// Frames of a path that carries all that is wanted leave at once, and key frames in a few steps.
    private static let relaxedBurst = Interval.milliseconds(40)
    /// Between two steps of a probe cluster.
    private static let probeStep = Interval.milliseconds(2)
    /// Many peers at one address do not wait for each other longer than this.
    private static let probeWaitMax = Interval.milliseconds(500)
    /// A cluster that cannot be sent is given up.
    private static let probeTimeMax = Interval.milliseconds(700)
    /// Packets of a cluster that leave in one step at most.
    private static let probePacketsMax = 64

    /// Starts to estimate what the peer's network carries.
    /// - Parameter numbering: how the negotiated feedback names packets.
    func startSendRate(_ numbering: PacketNumbering, at now: Instant) {
        guard sendRate == nil, transport.isServer, core.configuration.sendRate.isEstimating else { return }
        sendRate = SendRate(
            core.configuration.sendRate,
            numbering: numbering,
            maximum: sendRateMax,
            at: now
        )
    }

    /// Takes transport-wide feedback.
    func receivedTransportFeedback(_ packet: borrowing RTCPPacketView, at now: Instant) {
        core.counters.transportFeedbackReceived &+= 1
        guard let sendRate else { return }
        guard let cursor = packet.makeTransportFeedbackCursor() else {
            core.counters.drop(.malformedRTCP)
            return
        }
        let isNew = unsafe sendRate.received(
            cursor,
            transport.egress.state.pointee.sentPackets,
            report: &core.feedbackReport,
            at: now
        )
        if isNew { takeReport(of: sendRate, at: now) }
    }

    /// Takes RFC 8888 feedback.
    func receivedCongestionControlFeedback(_ packet: borrowing RTCPPacketView, at now: Instant) {
        core.counters.congestionControlFeedbackReceived &+= 1
        guard let sendRate else { return }
        guard let cursor = packet.makeCongestionControlFeedbackCursor() else {
            core.counters.drop(.malformedRTCP)
            return
        }
        let isNew = unsafe sendRate.received(
            cursor,
            transport.egress.state.pointee.sentPackets,
            transport.egress.state.pointee.sentIndex,
            report: &core.feedbackReport,
            at: now
        )
        if isNew { takeReport(of: sendRate, at: now) }
    }

    /// A report changed what the controller knows. What is due soon is done now, while the peer's state is in the cache.
    @inline(never)
    private func takeReport(of sendRate: SendRate, at now: Instant) {
        if sendRate.isDueWithReport(at: now) {
            tick(sendRate, isWithReport: true, at: now)
            // The timer of a tick that is done would wake the loop for nothing.
            core.schedule.noteServed(self, at: now)
        } else {
            applySendRate(at: now)
        }
    }

    /// Takes the peer's own estimate (REMB).
    func receivedEstimate(_ packet: borrowing RTCPPacketView, at now: Instant) {
        guard let sendRate, let bitrate = packet.rembBitrate else { return }
        sendRate.receivedEstimate(bitrate)
        applySendRate(at: now)
    }

    /// Sets what the peer may be sent by a grant or an operator; `nil` for the settings' maximum.
    func setSendRateMax(_ bitsPerSecond: Int?, at now: Instant) {
        sendRateMax = bitsPerSecond
        guard let sendRate else { return }
        sendRate.setMaximum(bitsPerSecond, at: now)
        if isConnected { applySendRate(at: now) }
    }

    /// The peer is connected: what it wants may be sent, as far as the start rate goes.
    func beginSendRate(at now: Instant) {
        guard let sendRate else { return }
        sendRate.headerBytes = headerBytes
        if let address = pathAddress {
            let start = core.pathMemory.startRate(for: id, at: address, now: SendRate.microseconds(now))
            sendRate.begin(start: start, at: now)
        }
        allocateLayers(at: now)
        applySendRate(at: now)
    }

    /// The remote address whose peers may share a path: an IPv4 address or the prefix of an IPv6 one. A relayed address is
    /// the node's own and tells nothing.
    private var pathAddress: UInt64? {
        guard let path = transport.selectedPath, path.local.kind != .relayed else { return nil }
        let ip = path.remote.ip
        guard !ip.isLoopback else { return nil }
        return ip.isV4 ? ip.low : ip.high
    }

    /// Bytes of the headers on the selected pair at most: IP and UDP, and a TURN channel's; or IP, TCP with timestamps, and
    /// the length of RFC 4571 or a TURN channel's header.
    private var headerBytes: Int {
        guard let path = transport.selectedPath else { return 28 }
        let ip = path.remote.ip.isV4 ? 20 : 40
        switch path.local.kind {
        case .udp: return ip + 8
        case .relayed: return ip + (isRelayedOverStream(path) ? 32 : 8) + 4
        case .tcp: return ip + 32 + 2
        }
    }

    /// Whether the client of a relayed path is on a connection.
    private func isRelayedOverStream(_ path: NetworkPath) -> Bool {
        core.turn?.client(of: path)?.local.kind == .tcp
    }

    /// The selected pair changed: nothing is known of the new one.
    func sendPathChanged(at now: Instant) {
        guard let sendRate else { return }
        unsafe sendRate.pathChanged(transport.egress.state.pointee.sentPackets, headerBytes: headerBytes, at: now)
        applySendRate(at: now)
    }

    /// Does what is due by the clock.
    func handleSendRateTimeout(at now: Instant) {
        guard let sendRate, sendRate.nextDeadline <= now else { return }
        tick(sendRate, isWithReport: false, at: now)
    }

    // Apart from what receives media, which the optimizer keeps free of reference counts then.
    @inline(never)
    private func tick(_ sendRate: SendRate, isWithReport: Bool, at now: Instant) {
        unsafe sendRate.handleTimeout(
            transport.egress.state.pointee.sentPackets,
            isWithReport: isWithReport,
            at: now
        )
        if let rate = sendRate.pathRate, let address = pathAddress {
            core.pathMemory.update(id, at: address, target: Double(rate), now: SendRate.microseconds(now))
        }
        if !isSettled(sendRate, at: now) { allocateLayers(at: now) }
        applySendRate(at: now)
    }

    /// Puts the controller's answer in force.
    // Apart from what receives media, as `tick`.
    @inline(never)
    private func applySendRate(at now: Instant) {
        guard let sendRate else { return }
        updateMarking()
        let egress = transport.egress
        egress.pace(
            sendRate.pacerRate(waitingBytes: egress.waiting.bytes, layersRate: divided.layers),
            burst: sendRate.isRelaxed ? Self.relaxedBurst : sendRate.tightBurst,
            at: now
        )
        let isDue = divided.retryAt.map { $0 <= now } ?? false
        if isDue || (sendRate.sustained != divided.rate && !isSettled(sendRate, at: now)) { allocateLayers(at: now) }
        takeProbe(of: sendRate, at: now)
    }

    /// Has the packets on the selected pair marked as ECN-capable, as long as the peer reports on the marks and they arrive.
    private func updateMarking() {
        let path = sendRate?.marksPackets == true ? transport.selectedPath : nil
        guard path != markedPath else { return }
        if let markedPath { core.setMarking(false, of: markedPath) }
        if let path { core.setMarking(true, of: path) }
        markedPath = path
    }

    /// The peer leaves.
    func endMarking() {
        if let markedPath { core.setMarking(false, of: markedPath) }
        markedPath = nil
    }

    /// Sends a planned probe cluster when it is the peer's turn: clusters of two peers on one path would measure each other.
    private func takeProbe(of sendRate: SendRate, at now: Instant) {
        if !sendRate.isProbing, hasProbeTurn, let address = pathAddress {
            core.pathMemory.endProbeTurn(id, at: address)
            hasProbeTurn = false
        }
        guard probe == nil, sendRate.hasProbe else { return }
        if let address = pathAddress {
            let waits = probeWaitsSince ?? now
            hasProbeTurn = core.pathMemory.takeProbeTurn(id, at: address, now: SendRate.microseconds(now))
            guard hasProbeTurn || now - waits > Self.probeWaitMax else {
                probeWaitsSince = waits
                return
            }
        }
        probeWaitsSince = nil
        if let cluster = sendRate.takeProbe(at: now) {
            probe = ProbeProgress(cluster: cluster, startedAt: now, firstPacket: transport.egress.packetsSent)
            transport.egress.cluster = cluster.id
            core.schedule.setSendTime(of: id, to: now)
        }
    }

    /// How much the peer is sent, and why.
    func sendingStatistics(at now: Instant) -> SendingStatistics {
        guard sendRate != nil else { return SendingStatistics() }
        let retransmissionShare = unsafe transport.egress.state.pointee.sentPackets.retransmissionShare(
            since: now - .seconds(1),
            until: now
        )
        return sendingStatistics(retransmissionShare: retransmissionShare)
    }

    /// - Parameter retransmissionShare: of the bytes of the last second.
    func sendingStatistics(retransmissionShare: Double = 0) -> SendingStatistics {
        guard let sendRate else { return SendingStatistics() }
        var statistics = sendRate.statistics(
            pacerDelay: transport.egress.queueDelay,
            retransmissionShare: retransmissionShare
        )
        // Media that take little never show that the path carries more: the target stays low although nothing is missing.
        if divided.isWhole, statistics.limit == .delay, statistics.state == .start || statistics.state == .steady {
            statistics.limit = .demand
        }
        return statistics
    }

    /// Counts the second that has passed.
    func noteSending(at now: Instant) {
        guard sendRate != nil else { return }
        let statistics = sendingStatistics(at: now)
        core.counters.noteSending(
            statistics,
            probes: statistics.probes &- sendingCounted.probes,
            paddingBytes: statistics.paddingBytes &- sendingCounted.paddingBytes
        )
        sendingCounted = (statistics.probes, statistics.paddingBytes)
    }

    // MARK: - Probes

    /// Sends what is due of the probe cluster under way. The media that leave meanwhile are a part of it.
    func sendProbe(_ turn: SendTurn, into batch: DatagramBatch) {
        guard var progress = probe, turn.now >= progress.nextAt else { return }
        let egress = transport.egress
        let due = progress.bytesDue(at: turn.now + Self.probeStep)
        let slot = slots.first { $0.canProbe && $0.packetsSent > 0 } ?? slots.first(where: \.canProbe)
        progress.noteRecorded(egress.bytesSent(from: progress.firstPacket))
        for _ in 0..<Self.probePacketsMax {
            guard let slot, progress.bytes < due, !progress.isComplete,
                let length = slot.sendProbe(offset: progress.packets, turn, into: batch)
            else { break }
            progress.noteSent(length)
            sendRate?.paddingBytes &+= UInt64(length)
        }
        progress.nextAt = turn.now + Self.probeStep
        let isGivenUp = slot == nil || turn.now - progress.startedAt > Self.probeTimeMax
        probe = isGivenUp || progress.isComplete ? nil : progress
        if probe == nil { egress.cluster = 0 }
    }
}

/// A probe cluster that is being sent.
struct ProbeProgress {
    let cluster: ProbeCluster
    let startedAt: Instant
    var nextAt: Instant
    /// Copies and padding that were sent, and their bytes.
    private(set) var packets = 0
    private var probeBytes = 0
    /// Bytes of all packets that left since it began. Media count only in the record of numbered packets.
    private(set) var bytes = 0
    /// ``Egress/packetsSent`` when it began.
    let firstPacket: UInt64

    init(cluster: ProbeCluster, startedAt: Instant, firstPacket: UInt64) {
        self.cluster = cluster
        self.firstPacket = firstPacket
        self.startedAt = startedAt
        nextAt = startedAt
    }

    var isComplete: Bool { bytes >= cluster.bytesMin && packets >= cluster.packetsMin }

    /// Takes the bytes of the numbered packets that left since it began. A peer that reports no packets has no such record.
    mutating func noteRecorded(_ recorded: Int) { bytes = max(recorded, probeBytes) }

    /// Takes a copy or padding that left.
    mutating func noteSent(_ length: Int) {
        packets += 1
        probeBytes += length
        bytes += length
    }

    /// Bytes that are to have left at an instant.
    func bytesDue(at instant: Instant) -> Int { Int(clamping: cluster.rate * (instant - startedAt).seconds / 8) }
}
