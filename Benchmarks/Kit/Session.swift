internal import MediaTypes
internal import Wire

/// The negotiated parameters of the peers of a ``Call``.
enum Session {
    static let mid: MID = {
        guard let mid = MID("0") else { preconditionFailure("a MID") }
        return mid
    }()
    /// The media address of a forwarder with a TURN server.
    static let mediaAddress = TransportAddress(ip: IPAddress(v4: 0xC633_6401), port: 7_000)
    static let source = SSRC(rawValue: 0x5151)
    static let retransmissionType = PayloadType(wire: 97)

    private static var codec: CodecParameters {
        CodecParameters(
            name: .vp8,
            payloadType: SyntheticPacket.payloadType,
            rtxPayloadType: retransmissionType,
            feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportCC]
        )
    }

    static var published: ReceiveTrackParameters {
        ReceiveTrackParameters(mid: mid, kind: .video, codecs: [codec], extensions: SyntheticPacket.extensions)
    }

    /// The send track of a viewer. Viewers are numbered from 0.
    static func slot(of viewer: Int) -> SendTrackParameters {
        SendTrackParameters(
            mid: mid,
            kind: .video,
            codecs: [codec],
            extensions: SyntheticPacket.extensions,
            ssrc: ssrc(of: viewer),
            rtxSSRC: SSRC(rawValue: 0x2_0000 + UInt32(viewer)),
            cname: "stream"
        )
    }

    static func ssrc(of viewer: Int) -> SSRC { SSRC(rawValue: 0x1_0000 + UInt32(viewer)) }
}
