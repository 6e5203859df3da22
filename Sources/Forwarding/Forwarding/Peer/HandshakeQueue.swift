import Base
import MediaTypes
import Wire

/// Datagrams of DTLS handshakes that wait for a turn.
///
/// A step of a handshake takes as long as hundreds of media packets. When a crowd joins, its steps would keep the media of
/// everyone else waiting for tens of milliseconds. So a turn makes one step, after its media has left. A datagram that finds
/// no room counts as lost on the path: DTLS sends it again (RFC 6347 §4.2.4).
final class HandshakeQueue {
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

    // Accessed in one step at a time, at the end of each turn, so accesses are not checked.

    @exclusivity(unchecked) private var datagrams = Queue<Datagram>()
    /// Kept beside the queue, so that a turn without handshakes reads one number.
    @exclusivity(unchecked) private var waiting = 0

    var count: Int { unsafe waiting }
    var isEmpty: Bool { unsafe waiting == 0 }

    /// When the first datagram came; `nil` when none waits.
    var firstReceivedAt: Instant? { unsafe isEmpty ? nil : datagrams.first?.receivedAt }

    /// - Returns: whether there was room.
    func append(_ datagram: Datagram) -> Bool {
        guard count < Self.datagramsMax else { return false }
        unsafe datagrams.append(datagram)
        unsafe waiting += 1
        return true
    }

    func removeFirst() -> Datagram? {
        guard let datagram = unsafe datagrams.removeFirst() else { return nil }
        unsafe waiting -= 1
        return datagram
    }
}
