import Base
import EventLoop
import Forwarding
package import MediaTypes
import TURN
import Wire

/// The loop as a TURN server on its own media port.
extension MediaLoop {
    /// Allocations that a session has at a time: one for each of a few network interfaces, and again for an ICE restart.
    private static let sessionAllocationsMax = 8

    /// Starts the TURN server, once the sockets are open.
    func startTURN(_ settings: TURNSettings) {
        let candidates = transport.candidates
        var configuration = TURNConfiguration(
            addresses: candidates.map(\.ip),
            reservedPorts: settings.reservedPorts.union(sockets.map(\.local.port))
        )
        configuration.sessionAllocationsMax = Self.sessionAllocationsMax
        configuration.calls = settings.calls
        configuration.loop = location.loop.rawValue
        configuration.nonceKey = turnTLS?.acceptor.nonceKey
        forwarder.startTURN(configuration, mediaAddresses: candidates)
        framed = DatagramBatch(capacity: batch.capacity)
    }

    /// Frames the datagrams of a run to a relayed address for their client.
    /// - Returns: whether there is such a client.
    func frameRelayed(_ run: DatagramBatch.Run, of batch: DatagramBatch) -> Bool {
        guard let framed else { return false }
        return forwarder.frame(run, of: batch, at: EventLoop.now(), into: framed)
    }

    /// The URIs of the loop's TURN server, UDP first: at the most preferred address, of IPv4 if there is one.
    private var turnURLs: [String] {
        guard let address = Self.preferred(transport.candidates) else { return [] }
        var urls = ["turn:\(address)?transport=udp"]
        if let address = Self.preferred(transport.tcpCandidates) { urls.append("turn:\(address)?transport=tcp") }
        if let turnTLS, let port = turnTLS.isShared ? turnTLS.port : tlsAddresses.first?.port {
            urls.append("turns:\(turnTLS.name):\(port)?transport=tcp")
        }
        return urls
    }

    private static func preferred(_ candidates: [TransportAddress]) -> TransportAddress? {
        candidates.first(where: \.ip.isV4) ?? candidates.first
    }

    package func openCallRelay() -> CallTURN? {
        let urls = turnURLs
        guard !urls.isEmpty, let call = forwarder.openCallRelay(at: EventLoop.now()) else { return nil }
        func access(_ credentials: TURNCredentials) -> TURNAccess {
            TURNAccess(urls: urls, username: credentials.username, password: credentials.password)
        }
        let id = CallTURNID(location: location, number: call.number)
        return CallTURN(id: id, first: access(call.first), second: access(call.second))
    }

    package func closeCallRelay(_ id: CallTURNID, keepsAllocations: Bool) {
        guard id.location == location else { return }
        forwarder.closeCallRelay(id.number, keepsAllocations: keepsAllocations, at: EventLoop.now())
    }

    package func openTURN(for peer: PeerID) -> TURNAccess? {
        let urls = turnURLs
        guard !urls.isEmpty, let credentials = forwarder.openTURN(for: peer, at: EventLoop.now()) else { return nil }
        return TURNAccess(urls: urls, username: credentials.username, password: credentials.password)
    }
}
