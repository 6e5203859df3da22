import Base
import DTLS
import Forwarding
import MediaTypes
import Wire

/// What the targets of relayed tracks share.
enum RelaySample {
    /// The first identifier of a core.
    static let relay = MirrorID(place: 0, generation: 0)

    /// Adds a publisher of ``ConnectedMedia/receive``.
    static func addPublisher(_ peer: PeerID, to core: Forwarder, at now: Instant) throws {
        try core.addPeer(
            PeerParameters(
                id: peer,
                localCredentials: Sample.credentials("nod0", "the node's password"),
                remote: RemoteTransport(
                    credentials: Sample.credentials("cli0", "the client's password"),
                    fingerprints: [Certificates.far.fingerprint],
                    localRole: .server
                ),
                receive: ConnectedMedia.receive
            ),
            at: now
        )
    }

    /// A relayed packet of the publisher's first track, and its RTP packet.
    static var packet: (message: TransferMessage, rtp: [UInt8]) {
        var rtp: [UInt8] = [0x80, ConnectedMedia.receive[0].codecs[0].payloadType.rawValue]
        rtp.append(bigEndian: 1_000 as UInt16)
        rtp.append(bigEndian: 48_000 as UInt32)
        rtp.append(bigEndian: 0x0102_0304 as UInt32)
        rtp += [1, 2, 3, 4, 5, 6, 7, 8]
        let packet = TransferMessage.Packet(
            relay: relay,
            stream: 1,
            ssrc: SSRC(rawValue: 0x0102_0304),
            layer: .max,
            choices: 0b1_1111,
            exactChoices: 0b1_1111,
            isRTXRecovered: false,
            sequence: ExtendedSequenceNumber(rawValue: 1_000)
        )
        return (.packet(packet), rtp)
    }
}
