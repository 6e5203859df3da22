package import Base
package import MediaTypes

/// How long the phases of a connection's first set-up took.
package struct ConnectionSetup: Hashable, Sendable, Codable {
    /// A phase, in the order of their ends in an ordinary set-up.
    package enum Phase: String, Hashable, Sendable, CaseIterable {
        /// From the request to the decision on it.
        case authorization
        /// From there to the place in the channel. The node then offers (Sora), or answers (WHIP, WHEP).
        case reservation
        /// From there to the end of the exchange of descriptions.
        case negotiation
        /// From there to the first connectivity check of the client.
        case firstCheck = "first_check"
        /// From the end of the negotiation to the first pair that ICE selected.
        case ice
        /// From there to the end of the DTLS handshake.
        case dtls
        /// From there to the client's first packet.
        case firstPacketReceived = "first_packet_received"
        /// From there to the first key frame of the client's video.
        case firstFrameReceived = "first_frame_received"
        /// To the first packet to the client, since it is connected and has something to play.
        case firstPacketSent = "first_packet_sent"
        /// To the first frame of video to the client, since it is connected and has a video to play.
        case firstFrameSent = "first_frame_sent"
    }

    /// One phase that is over.
    package struct Step: Hashable, Sendable {
        package let phase: Phase
        /// Since the request.
        package let start: Interval
        package let duration: Interval
        package var end: Interval { start + duration }
    }

    /// From the request to the decision; `nil` where that is not told.
    package var authorization: Interval?
    /// From the decision to the place in the channel; `nil` where that is not told.
    package var reservation: Interval?
    /// From there to the end of the negotiation; `nil` before.
    package var negotiation: Interval?
    package var media: PeerSetup

    package init(
        authorization: Interval? = nil,
        reservation: Interval? = nil,
        negotiation: Interval? = nil,
        media: PeerSetup = PeerSetup()
    ) {
        self.authorization = authorization
        self.reservation = reservation
        self.negotiation = negotiation
        self.media = media
    }

    /// From the request to the place in the channel, as far as that is told.
    package var waitedNanoseconds: Int64 { (authorization?.nanoseconds ?? 0) &+ (reservation?.nanoseconds ?? 0) }

    /// Of a request that has its place now.
    package init(_ request: JoinRequest, at now: Instant) {
        self.init()
        guard let receivedAt = request.receivedAt, let authorizedAt = request.authorizedAt else { return }
        authorization = max(authorizedAt - receivedAt, .zero)
        reservation = max(now - authorizedAt, .zero)
    }

    /// The phases that are over.
    package var steps: [Step] {
        var steps: [Step] = []
        func add(_ phase: Phase, from start: Interval, for duration: Interval) {
            steps.append(Step(phase: phase, start: max(start, .zero), duration: max(duration, .zero)))
        }
        let decided = authorization ?? .zero
        let reserved = decided + (reservation ?? .zero)
        if let authorization { add(.authorization, from: .zero, for: authorization) }
        if let reservation { add(.reservation, from: decided, for: reservation) }
        guard let negotiation else { return steps }
        add(.negotiation, from: reserved, for: negotiation)
        let added = reserved + negotiation
        if let check = media.firstCheck { add(.firstCheck, from: added, for: check) }
        guard let path = media.iceConnected else { return steps }
        add(.ice, from: added, for: path)
        guard let connected = media.dtlsConnected else { return steps }
        add(.dtls, from: added + path, for: connected - path)
        if let packet = media.firstPacketReceived {
            add(.firstPacketReceived, from: added + connected, for: packet - connected)
            if let frame = media.firstFrameReceived {
                add(.firstFrameReceived, from: added + packet, for: frame - packet)
            }
        }
        if let sent = media.firstPacketSent {
            add(.firstPacketSent, from: added + sent.at - sent.waited, for: sent.waited)
        }
        if let sent = media.firstFrameSent {
            add(.firstFrameSent, from: added + sent.at - sent.waited, for: sent.waited)
        }
        return steps
    }
}
