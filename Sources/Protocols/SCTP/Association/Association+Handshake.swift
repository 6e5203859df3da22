import Base

/// Setting an association up (RFC 9260 §5).
extension Association {
    /// An INIT, alone in its packet.
    mutating func receiveInitiation(_ body: RawSpan, at now: Instant) throws(SCTPDropReason) {
        let initiation: Initiation
        let extras: Initiation.Extras
        do { (initiation, extras) = try Initiation.parse(body) } catch { throw .handshake }
        var reply = local
        var tieTags = StateCookie.TieTags()
        switch phase {
        case .ended: throw .ended
        case .shutdownAckSent:
            // The peer missed our SHUTDOWN ACK (RFC 9260 §9.2).
            isStepDue = true
            return
        case .closed, .cookieWait, .cookieEchoed:
            // Both ends started: the same tag again, so that both cookies lead to one association (§5.2.1).
            break
        case .established, .shutdownPending, .shutdownSent, .shutdownReceived:
            // A restart, perhaps: nothing changes before the cookie comes back (§5.2.2).
            reply.tag = generator.tag()
            reply.firstTSN = UInt32(truncatingIfNeeded: generator.next())
            tieTags = StateCookie.TieTags(local: local.tag, peer: peer?.tag ?? 0)
        }
        let cookie = StateCookie(local: reply, peer: initiation, tieTags: tieTags, createdAt: now)
        if !initiation.capabilities.contains(.zeroChecksum) { reply.capabilities.remove(.zeroChecksum) }
        var replyExtras = Initiation.Extras()
        replyExtras.cookie = cookie.encoded(key: cookieKey)
        replyExtras.unrecognized = extras.unrecognized
        queueLone(LoneChunk(tag: initiation.tag, bytes: reply.encoded(as: .initiationAck, replyExtras)))
    }

    /// An INIT ACK, alone in its packet, with our tag.
    mutating func receiveInitiationAck(_ body: RawSpan, at now: Instant) throws(SCTPDropReason) {
        guard phase == .cookieWait else { return }
        let initiation: Initiation
        let extras: Initiation.Extras
        do { (initiation, extras) = try Initiation.parse(body) } catch { throw .handshake }
        guard let cookie = extras.cookie, !cookie.isEmpty, cookie.count <= Self.cookieBytesMax else {
            peer = initiation
            return fail(.brokenHandshake)
        }
        adopt(initiation)
        self.cookie = cookie
        phase = .cookieEchoed
        beginStep(at: now)
        sender.queued(at: now)
    }

    /// A COOKIE ECHO must leave room for a header.
    private static let cookieBytesMax = 1_024

    /// Takes over what the peer said of itself.
    private mutating func adopt(_ initiation: Initiation) {
        peer = initiation
        agreed = local.capabilities.intersection(initiation.capabilities)
        sender.negotiated(peerWindow: initiation.window, isInterleaved: isInterleaved)
        receiver = Receiver(
            firstTSN: initiation.firstTSN,
            windowBytes: settings.windowBytes,
            messageBytesMax: settings.incomingMessageBytesMax,
            isInterleaved: isInterleaved
        )
        let wanted = resets.wanted
        resets = StreamResets(firstTSN: local.firstTSN, peerFirstTSN: initiation.firstTSN)
        for stream in wanted { resets.want(stream) }
    }

    /// A COOKIE ECHO, the first chunk of its packet.
    /// - Parameter tag: of the packet.
    mutating func receiveCookie(_ body: RawSpan, tag: UInt32, at now: Instant) throws(SCTPDropReason) {
        guard phase != .ended else { throw .ended }
        guard let cookie = StateCookie.decode(body, key: cookieKey), cookie.local.tag == tag else { throw .cookie }
        guard now - cookie.createdAt <= StateCookie.lifetime else {
            // Only what it was late by, in microseconds, is in the report (RFC 9260 §5.1.5).
            queueControl(.errorChunk(.error, .staleCookie, [0, 0, 0, 0]))
            throw .cookie
        }
        let isLocal = cookie.local.tag == local.tag
        let isPeer = cookie.peer.tag == peer?.tag
        switch phase {
        case .closed:
            guard isLocal else { throw .cookie }
            adopt(cookie.peer)
            establish(at: now)
        case .cookieWait, .cookieEchoed:
            guard isLocal else { throw .cookie }
            // Action B of RFC 9260 §5.2.4 when the peer's tag is news, else D.
            if !isPeer {
                guard phase == .cookieWait || !sender.hasSent else { throw .cookie }
                adopt(cookie.peer)
            }
            establish(at: now)
        default:
            if isLocal, isPeer { break }
            let ours = StateCookie.TieTags(local: local.tag, peer: peer?.tag ?? 0)
            guard !isLocal, !isPeer, cookie.tieTags == ours else { throw .cookie }
            // Action A. The channels of the association before are gone, so it ends, for the new one of the peer too.
            lone = [LoneChunk(tag: cookie.peer.tag, bytes: .errorChunk(.abort, .userInitiated))]
            return end(.restartedByPeer)
        }
        queueControl(.chunk(.cookieAck))
    }

    mutating func receiveCookieAck(at now: Instant) {
        guard phase == .cookieEchoed else { return }
        establish(at: now)
    }

    private mutating func establish(at now: Instant) {
        guard phase != .established else { return }
        phase = .established
        cookie = []
        endStep()
        receiver.append(.established)
        sender.established(at: now)
        beginResets(at: now)
    }
}
