import EventLoop
import Logging
import SRTP
import Signaling
import Wire

/// A Bearer token, a password or a key. It is never printed.
struct Token: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let secret: String
    var description: String { "hidden" }
    var debugDescription: String { "hidden" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// The files of the HTTPS certificate, PEM.
struct TLSFiles: Equatable, Sendable {
    let certificatePath: String
    let keyPath: String
}

/// Everything that the node is told before it starts, checked as far as it can be without touching the machine.
struct NodeConfiguration: Equatable, Sendable {
    /// Loopback only; nothing needs to be configured.
    var isDevelopment: Bool
    /// Where the page, WHIP and WHEP are served.
    var http: TransportAddress
    /// The UDP sockets of loop 0. Loop i binds the same addresses, i ports further.
    var media: [TransportAddress]
    /// The addresses that clients are told, in place of the sockets' own; empty when the sockets' own are right.
    var announce: [IPAddress]
    /// Where `/metrics`, `/healthz` and `/readyz` are served.
    var admin: TransportAddress
    /// How many media loops, each on a thread of its own.
    var loops: Int
    /// How many control loops, which run channels and carry no media, each on a thread of its own.
    var controlLoops = 1
    /// What encrypts and decrypts media; one that this machine has.
    var srtpBackend: SRTPBackend
    /// Whether several datagrams to one client are handed to the kernel as one (UDP generic segmentation offload).
    var usesGSO: Bool
    /// Whether the kernel may hand over several datagrams of one client as one (UDP generic receive offload).
    var usesGRO: Bool
    /// HTTPS, when given.
    var tls: TLSFiles?
    /// The reverse proxies in front of the page, WHIP, WHEP and the signaling.
    var proxies: ProxyConfiguration
    /// What publishers and viewers must present, when given.
    var token: Token?
    /// What their signed tokens are checked with; empty when there are none.
    var jwtKeys: [JWTKeySource]
    var webhooks: WebhookSettings
    /// The web origins whose pages may use the operators' API.
    var adminOrigins: [String]
    /// What the admin listener on loopback may be called, besides `localhost` and IP addresses.
    var adminHostNames: [String]
    var sora: SoraSettings
    /// How much clients may use.
    var limits: NodeLimits
    var logLevel: Logger.Level
    /// How long a shutdown may take, in seconds.
    var graceSeconds: Int
    /// What is allowed and probably not meant, one sentence each.
    var warnings: [String]
}

extension NodeConfiguration {
    /// Of loops: far above the cores of any machine, far below what would exhaust the ports.
    static let loopsMax = 256
    /// Of control loops.
    static let controlLoopsMax = 64
    static let graceSecondsMax = 3_600
    /// Of addresses to listen on or to announce: clients try every one of them.
    static let addressesMax = 16

    /// How the UDP sockets are opened.
    var socketOptions: SocketOptions { SocketOptions(usesGSO: usesGSO, usesGRO: usesGRO) }

    /// The UDP sockets of one loop. Port 0, any free port, stays 0.
    func mediaAddresses(loop: Int) -> [TransportAddress] {
        media.map { address in
            guard address.port != 0 else { return address }
            return TransportAddress(ip: address.ip, port: UInt16(truncatingIfNeeded: Int(address.port) + loop))
        }
    }

    /// The addresses to tell clients for sockets bound to `bound`: the announced addresses that such a socket can serve,
    /// or else its own.
    func candidates(bound: [TransportAddress]) -> [TransportAddress] {
        var candidates: [TransportAddress] = []
        for socket in bound {
            let addresses = announce.isEmpty ? [socket.ip] : announce.filter { Self.serves(socket.ip, $0) }
            for ip in addresses {
                let candidate = TransportAddress(ip: ip, port: socket.port)
                if !candidates.contains(candidate) { candidates.append(candidate) }
            }
        }
        return candidates
    }

    /// Whether what is sent to `address` can come in on a socket bound to `socket`. `[::]` takes both families.
    static func serves(_ socket: IPAddress, _ address: IPAddress) -> Bool {
        socket == .anyV6 || socket.isV4 == address.isV4
    }

    /// For the one who opens a browser: an address by which this machine itself reaches the page. `port` is the one bound.
    func pageURL(port: UInt16) -> String {
        let scheme = tls == nil ? "http" : "https"
        if http.ip.isUnspecified { return "\(scheme)://localhost:\(port)/" }
        return "\(scheme)://\(TransportAddress(ip: http.ip, port: port))/"
    }
}
