import Base
import MediaTypes
import Wire

/// What is sent to a peer by the clock: transport-wide feedback, requests for packets and key frames, and reports.
extension Peer {
    /// Reports gathered into one datagram before it goes out.
    private static let reportBytesMax = 1_000
    /// Requests gathered into one datagram before it goes out.
    private static let requestBytesMax = 256
    /// One carries hundreds of arrivals; the rest waits for the next turn.
    private static let feedbackPacketsPerTurnMax = 4

    func noteTransportSequence(_ number: TransportSequenceNumber, core: Forwarder, at now: Instant) {
        reporting.received(number, at: now)
        if let deadline = reporting.nextFeedbackAt { core.schedule.wake(self, at: deadline) }
    }

    /// Sends the feedback and reports that are due.
    func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        guard transport.isConnected else { return }
        handleSendRateTimeout(at: now)
        if !tracks.isEmpty {
            if reporting.takeTick(at: now) { tick(at: now, into: batch) }
            sendTransportFeedback(at: now, into: batch)
            sendRequests(at: now, into: batch)
        }
        if reporting.takeReport(at: now) { sendReports(at: now, into: batch) }
    }

    /// Tells of a publisher of which nothing comes any more, not even answers, and of its return.
    private func noteSilence(at now: Instant, into batch: DatagramBatch) {
        guard !silence.isSettled(at: now) else { return }
        for stream in streams { silence.heard(at: stream.lastPacketAt) }
        // Of one that sends, nothing else has to be known.
        guard !silence.isSettled(at: now), let heard = transport.lastSignOfLife else { return }
        silence.heard(at: heard)
        let (asks, change) = silence.tick(at: now)
        if asks { transport.ask(at: now, into: batch) }
        if let change { core.emit(.silenceChanged(isSilent: change), of: id) }
    }

    private func tick(at now: Instant, into batch: DatagramBatch) {
        noteSilence(at: now, into: batch)
        for track in tracks {
            if track.streams.count > 1 { track.selectLayers(at: now) }
            if let isSpeaking = track.noteSilence(at: now) {
                core.emit(.speech(mid: track.id.mid, isSpeaking: isSpeaking), of: id)
            }
            if track.announcedCodec != nil, !track.streams.contains(where: { $0.isFlowing(at: now) }) {
                track.announcedCodec = nil
                // Nothing waits: a turn's packets are sent on before anything that is due is done.
                for stream in track.streams { stream.history.trim() }
                core.emit(.trackPaused(mid: track.id.mid), of: id)
            }
        }
    }

    private func sendTransportFeedback(at now: Instant, into batch: DatagramBatch) {
        guard let deadline = reporting.nextFeedbackAt, deadline <= now else { return }
        // Packets that belong to no stream count too; feedback is about the transport, whatever source it names.
        let media = streams.first?.ssrc ?? feedbackSSRC
        for _ in 0..<Self.feedbackPacketsPerTurnMax {
            core.writer.removeAll()
            guard
                reporting.makeFeedback(
                    at: now,
                    writer: &core.writer,
                    senderSSRC: feedbackSSRC,
                    mediaSSRC: media
                )
            else { return }
            if flushRTCP(into: batch) { core.counters.transportFeedbackSent &+= 1 }
        }
    }

    /// Asks for missing packets and key frames.
    private func sendRequests(at now: Instant, into batch: DatagramBatch) {
        core.writer.removeAll()
        var index = 0
        while index < directory.unretained.count {
            directory.unretained[index].with { request(of: $0, at: now) }
            index += 1
            // The worst list of one stream is a kilobyte; that of the next one goes into a datagram of its own.
            if core.writer.count > Self.requestBytesMax {
                flushRTCP(into: batch)
                core.writer.removeAll()
            }
        }
        if !core.writer.isEmpty { _ = flushRTCP(into: batch) }
    }

    /// Writes what is to be asked for of one stream.
    private func request(of stream: ReceivedStream, at now: Instant) {
        if let deadline = stream.losses.nextDeadline, deadline <= now {
            reporting.lost.removeAll(keepingCapacity: true)
            let requests = stream.losses.takeRequests(at: now, into: &reporting.lost)
            if requests.asked > 0 {
                core.writer.appendNACK(sender: feedbackSSRC, media: stream.ssrc, lost: reporting.lost)
                core.counters.nacksSent &+= 1
                core.counters.nackedPacketsRequested &+= UInt64(requests.asked)
            }
            core.counters.packetsLostByPublishers &+= UInt64(requests.gaveUp)
            if requests.wantsKeyFrame, stream.track.parameters.kind == .video { stream.keyFrames.want(at: now) }
        }
        if stream.keyFrames.takeRequest(at: now) {
            core.writer.appendPictureLoss(sender: feedbackSSRC, media: stream.ssrc)
            core.counters.pliSent &+= 1
            stream.keyFrameRequests &+= 1
        }
    }

    private func sendReports(at now: Instant, into batch: DatagramBatch) {
        core.writer.removeAll()
        for slot in slots {
            slot.tick(at: now)
            guard let info = slot.senderInfo(at: now) else { continue }
            core.writer.appendSenderReport(sender: slot.parameters.ssrc, info: info)
            core.writer.appendSourceDescription(ssrc: slot.parameters.ssrc, cname: slot.parameters.cname)
            if core.writer.count > Self.reportBytesMax {
                flushRTCP(into: batch)
                core.writer.removeAll()
            }
        }
        if !core.writer.isEmpty { _ = flushRTCP(into: batch) }
        var blocks: [ReportBlock] = []
        for stream in streams {
            stream.measureBitrate(at: now)
            if let block = stream.makeReportBlock(at: now) { blocks.append(block) }
        }
        for track in tracks {
            track.measureLayers(at: now)
            track.measureContent(at: now)
            core.transferLayers(of: track)
            core.reviewUnusedLayers(of: track, at: now)
        }
        rateNetwork(at: now)
        noteSending(at: now)
        guard !blocks.isEmpty else { return }
        core.writer.removeAll()
        core.writer.appendReceiverReport(sender: feedbackSSRC, blocks: blocks)
        core.writer.appendSourceDescription(ssrc: feedbackSSRC, cname: "nagare")
        _ = flushRTCP(into: batch)
    }

    @discardableResult
    private func flushRTCP(into batch: DatagramBatch) -> Bool {
        guard !core.writer.isEmpty, transport.egress.sendRTCP(core.writer.bytes, into: batch) else { return false }
        core.counters.rtcpSent &+= 1
        return true
    }
}
