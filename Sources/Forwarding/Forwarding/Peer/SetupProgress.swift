import Base
import MediaTypes

/// How far the set-up of one peer has come. Each phase is timed once.
struct SetupProgress {
    private let addedAt: Instant
    private(set) var times = PeerSetup()

    init(at now: Instant) { addedAt = now }

    /// An authenticated connectivity check of the peer arrived.
    mutating func checked(at now: Instant) {
        if times.firstCheck == nil { times.firstCheck = now - addedAt }
    }

    /// ICE selected a pair.
    /// - Returns: how long that took; `nil` unless it is the first.
    mutating func pathSelected(at now: Instant) -> Interval? {
        guard times.iceConnected == nil else { return nil }
        times.iceConnected = now - addedAt
        return times.iceConnected
    }

    /// The handshake is complete.
    /// - Returns: how long it took; `nil` where ICE was not timed.
    mutating func connected(at now: Instant) -> Interval? {
        guard times.dtlsConnected == nil else { return nil }
        let passed = now - addedAt
        times.dtlsConnected = passed
        return times.iceConnected.map { passed - $0 }
    }

    /// A stream's first packet arrived.
    /// - Returns: whether it is the first of all.
    mutating func packetReceived(at now: Instant) -> Bool {
        guard times.firstPacketReceived == nil else { return false }
        times.firstPacketReceived = now - addedAt
        return true
    }

    /// A key frame of video begins to arrive.
    /// - Returns: whether it is the first.
    mutating func frameReceived(at now: Instant) -> Bool {
        guard times.firstFrameReceived == nil else { return false }
        times.firstFrameReceived = now - addedAt
        return true
    }

    /// A slot begins to play.
    /// - Parameter since: when it could have been sent at the earliest, if the peer had been connected.
    /// - Returns: whether it is the first.
    mutating func packetSent(since: Instant, at now: Instant) -> Bool {
        guard times.firstPacketSent == nil, let sending = sending(since: since, at: now) else { return false }
        times.firstPacketSent = sending
        return true
    }

    /// A frame of video is sent.
    /// - Parameter since: when it could have been sent at the earliest, if the peer had been connected.
    /// - Returns: how long the peer waited for it; `nil` unless it is the first.
    mutating func frameSent(since: Instant, at now: Instant) -> Interval? {
        guard times.firstFrameSent == nil, let sending = sending(since: since, at: now) else { return nil }
        times.firstFrameSent = sending
        return sending.waited
    }

    private func sending(since: Instant, at now: Instant) -> PeerSetup.Sending? {
        guard let connected = times.dtlsConnected else { return nil }
        return PeerSetup.Sending(at: now - addedAt, waited: now - max(addedAt + connected, since))
    }
}
