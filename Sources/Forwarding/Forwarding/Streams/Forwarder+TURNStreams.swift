public import Base
import TURN
public import Wire

/// TURN over TCP and TLS (RFC 8656 §3.1): the core's TURN server on connections instead of datagrams.
extension Forwarder {
    /// Whether the core has a TURN server.
    public var isTURNServer: Bool { turn != nil }

    /// Takes one message of a connection with TURN's framing: STUN or ChannelData, without its padding. What it carries for the
    /// client's peer is decrypted in place. The connection itself is no path of ICE: a check on it is answered as by a STUN
    /// server, and validates nothing.
    /// - Returns: whether the client has an allocation on this connection.
    public func receiveTURNStream(
        _ message: inout MutableRawSpan,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Bool {
        let length = message.byteCount
        counters.datagramsReceived &+= 1
        counters.bytesReceived &+= UInt64(length)
        if TURNServer.isTURN(message.bytes) {
            receivedTURN(&message, length: length, path: path, at: now, into: batch)
        } else {
            receivedBinding(message.bytes, path: path, at: now, into: batch)
        }
        return hasAllocation(path)
    }

    private func receivedBinding(_ bytes: RawSpan, path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        do {
            let message = try STUNMessageView(bytes)
            if !answeredBinding(message, from: path, at: now, into: batch) { counters.drop(.unknownUsername) }
        } catch {
            counters.drop(.malformedSTUN)
        }
    }

    /// Whether a client has an allocation over a connection.
    public func hasAllocation(_ path: NetworkPath) -> Bool { turn?.peer(of: path) != nil }

    /// Ends the allocation of a client whose connection has ended; does nothing when it has none. The path through the
    /// allocation leads nowhere then, and the client's peer goes on over another one or ends for want of checks.
    public func closeTURNStream(_ path: NetworkPath, at now: Instant) {
        _ = turn?.server.closeStream(path, at: now)
    }
}
