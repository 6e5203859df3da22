public import Base

/// How far the set-up of a peer's media has come. Every time counts from when the peer was added, and is `nil` for what has
/// not happened.
public struct PeerSetup: Hashable, Sendable, Codable {
    /// Something that is sent to the peer for the first time.
    public struct Sending: Hashable, Sendable, Codable {
        public var at: Interval
        /// How long the peer waited for it: since its media is connected, or since there was something to play where that
        /// is later.
        public var waited: Interval

        public init(at: Interval, waited: Interval) {
            self.at = at
            self.waited = waited
        }
    }

    /// The first authenticated connectivity check of the peer (RFC 8445 §7.3).
    public var firstCheck: Interval?
    /// ICE selected a pair.
    public var iceConnected: Interval?
    /// The DTLS handshake is complete.
    public var dtlsConnected: Interval?
    /// The first packet of a published stream.
    public var firstPacketReceived: Interval?
    /// The first packet of the first key frame of a published video.
    public var firstFrameReceived: Interval?
    /// The first packet of audio or video.
    public var firstPacketSent: Sending?
    /// The first frame of video.
    public var firstFrameSent: Sending?

    public init(
        firstCheck: Interval? = nil,
        iceConnected: Interval? = nil,
        dtlsConnected: Interval? = nil,
        firstPacketReceived: Interval? = nil,
        firstFrameReceived: Interval? = nil,
        firstPacketSent: Sending? = nil,
        firstFrameSent: Sending? = nil
    ) {
        self.firstCheck = firstCheck
        self.iceConnected = iceConnected
        self.dtlsConnected = dtlsConnected
        self.firstPacketReceived = firstPacketReceived
        self.firstFrameReceived = firstFrameReceived
        self.firstPacketSent = firstPacketSent
        self.firstFrameSent = firstFrameSent
    }
}
