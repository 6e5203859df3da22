import Base

/// Resetting streams (RFC 6525 §5).
extension Association {
    /// Requests the reset of the wanted streams that have sent all.
    mutating func beginResets(at now: Instant) {
        guard !resets.wanted.isEmpty, resets.request == nil else { return }
        guard agreed.contains(.reconfiguration) else { return refuseResets() }
        work.add(sender.streams.streams.count)
        resets.begin(sender.streams.startResets(), lastTSN: sender.chunks.nextTSN - 1, at: now)
        if let request = resets.request { sender.forwardLimit = request.lastTSN }
    }

    /// The peer asks for the reset of streams of ours (RFC 6525 §5.2.3). Those that do not send need none.
    private mutating func resetOutgoing(_ streams: [StreamID], at now: Instant) {
        work.add(sender.streams.streams.count)
        for stream in sender.streams.close(Set(streams)) { resets.want(stream) }
        if phase == .established { beginResets(at: now) }
    }

    /// The peer cannot reset streams: they stay as they are.
    private mutating func refuseResets() {
        let streams = resets.takeWanted()
        for stream in streams { sender.streams.setState(.resetting, of: stream) }
        receiver.append(.outgoingResetRefused(streams))
    }

    mutating func receiveReconfiguration(_ body: RawSpan, at now: Instant) {
        guard phase.receivesData, agreed.contains(.reconfiguration) else { return }
        guard let parameters = ReconfigurationParameter.parse(body) else { return glitch(at: now) }
        for parameter in parameters {
            work.add(1 + parameter.streamCount)
            switch parameter {
            case .response(let number, let result): receiveAnswer(number, result, at: now)
            case .outgoingReset(let number, _, let lastTSN, let streams):
                answer(number) { association in
                    association.performReset(
                        number,
                        SerialNumber.extend(lastTSN, near: association.cumulative),
                        Set(streams)
                    )
                }
            case .incomingReset(let number, let streams):
                answer(number) { association in
                    association.resetOutgoing(streams, at: now)
                    return .performed
                }
            case .associationReset(let number), .addIncomingStreams(let number, _):
                answer(number) { _ in .denied }
            case .addOutgoingStreams(let number, _): answer(number) { _ in .performed }
            }
        }
    }

    private var cumulative: Int64 { receiver.numbers.cumulative }

    private mutating func receiveAnswer(_ number: UInt32, _ result: ReconfigurationResult, at now: Instant) {
        switch resets.answered(number, result) {
        case .nothing: return
        case .done(let streams):
            work.add(sender.streams.streams.count)
            sender.streams.remove(Set(streams))
            receiver.append(.outgoingReset(streams))
        case .refused(let streams): receiver.append(.outgoingResetRefused(streams))
        }
        sender.forwardLimit = nil
        beginResets(at: now)
    }

    /// Answers a request of the peer: a new one by what `perform` says, an old one as before.
    private mutating func answer(
        _ number: UInt32,
        _ perform: (inout Association) -> ReconfigurationResult
    ) {
        let result: ReconfigurationResult
        switch resets.check(number) {
        case .answer(let known): result = known
        case .perform:
            result = perform(&self)
            if result != .inProgress { resets.finished(with: result) }
        }
        queueControl(ReconfigurationParameter.response(request: number, result).encoded())
    }

    private mutating func performReset(
        _ number: UInt32,
        _ lastTSN: Int64,
        _ streams: Set<StreamID>
    ) -> ReconfigurationResult {
        guard lastTSN <= cumulative, !receiver.isResetWaiting else {
            resets.deferRequest(number, lastTSN: lastTSN, streams)
            return .inProgress
        }
        receiver.reset(streams.isEmpty ? nil : streams, &work)
        return .performed
    }

    /// Performs the peer's reset that waited, once all before it has arrived, by whichever chunk, and the owner has taken the one
    /// before.
    mutating func performDeferredReset() {
        guard let deferred = resets.deferred, deferred.lastTSN <= cumulative, !receiver.isResetWaiting else { return }
        let result = performReset(deferred.number, deferred.lastTSN, deferred.streams)
        resets.finished(with: result)
        queueControl(ReconfigurationParameter.response(request: deferred.number, result).encoded())
    }
}
