import Base

/// Ending with all messages delivered (RFC 9260 §9.2). Browsers do not use it, but a peer may.
extension Association {
    /// Goes on when nothing is left to be delivered.
    mutating func continueShutdown(at now: Instant) {
        guard sender.isDrained else { return }
        switch phase {
        case .shutdownPending:
            phase = .shutdownSent
            beginStep(at: now)
        case .shutdownReceived:
            phase = .shutdownAckSent
            beginStep(at: now)
        default: break
        }
    }

    mutating func receiveShutdown(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) {
        guard chunk.body.count >= 4 else { return glitch(at: now) }
        switch phase {
        case .established, .shutdownPending, .shutdownReceived:
            let number = packet.bigEndianUInt32(at: chunk.body.lowerBound)
            do { try sender.acknowledged(upTo: number, at: now, &work) } catch { return fail(error) }
            phase = .shutdownReceived
        case .shutdownSent:
            // Both at once (RFC 9260 §9.2).
            phase = .shutdownAckSent
            beginStep(at: now)
        case .shutdownAckSent: isStepDue = true
        case .closed, .cookieWait, .cookieEchoed, .ended: break
        }
    }

    mutating func receiveShutdownAck(at now: Instant) {
        switch phase {
        case .shutdownSent, .shutdownAckSent:
            if let peer { lone = [LoneChunk(tag: peer.tag, bytes: .chunk(.shutdownComplete))] }
            end(.shutDown)
        default: break
        }
    }
}
