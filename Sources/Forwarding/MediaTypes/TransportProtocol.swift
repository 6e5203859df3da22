/// The protocol below ICE between a client and the node, directly or through the node's TURN server. TLS runs over TCP.
public enum TransportProtocol: String, Hashable, Sendable, Codable, CaseIterable {
    case udp, tcp
}
