import MediaTypes
import Wire

/// Datagrams of DTLS handshakes that wait for a turn.
///
/// A step of a handshake takes as long as hundreds of media packets. When a crowd joins, its steps would keep the media of
/// everyone else waiting for tens of milliseconds. So a turn makes one step, after its media has left. A datagram that finds
/// no room counts as lost on the path: DTLS sends it again (RFC 6347 §4.2.4).
struct HandshakeQueue {
    /// Datagrams that wait, of all peers together.
    static let datagramsMax = 1_024
    /// Datagrams of one peer that wait: two flights with the certificate of a 4,096-bit RSA key.
    static let datagramsOfPeerMax = 8

    struct Datagram {
        let peer: PeerID
        let path: NetworkPath
        let bytes: [UInt8]
        let receivedAt: Instant
    }

    private var datagrams: [Datagram] = []
    /// How many of ``datagrams`` were taken.
    private var taken = 0

    var count: Int { datagrams.count - taken }

    /// When the first datagram came; `nil` when none waits.
    var firstReceivedAt: Instant? { taken < datagrams.count ? datagrams[taken].receivedAt : nil }

    /// - Returns: whether there was room.
    mutating func append(_ datagram: Datagram) -> Bool {
        guard count < Self.datagramsMax else { return false }
        datagrams.append(datagram)
        return true
    }

    mutating func removeFirst() -> Datagram? {
        guard taken < datagrams.count else { return nil }
        let datagram = datagrams[taken]
        taken += 1
        if taken == datagrams.count {
            datagrams = []
            taken = 0
        } else if taken >= 64, taken * 2 >= datagrams.count {
            datagrams.removeFirst(taken)
            taken = 0
        }
        return datagram
    }
}
