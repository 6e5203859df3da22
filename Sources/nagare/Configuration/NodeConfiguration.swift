import EventLoop
import Logging
import Media
import MediaTypes
import NodeLog
import SRTP
import Sora
import Web
import Wire

/// A Bearer token, a password or a key. It is never printed.
struct Token: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let secret: String
    var description: String { "hidden" }
    var debugDescription: String { "hidden" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// The files of the certificate of a listener with TLS, PEM.
struct TLSFiles: Equatable, Sendable {
    let certificatePath: String
    let keyPath: String
}

/// The validated settings of a node. Files and ports are checked later, when they are used.
struct NodeConfiguration: Equatable, Sendable {
    /// Whether the node listens on loopback only and needs no configuration.
    var isDevelopment: Bool
    /// The listener of the page, WHIP, WHEP and Sora signaling.
    var http: TransportAddress
    /// The UDP sockets of loop 0, and the TCP listeners. Loop i binds the same addresses, i ports further.
    var media: [TransportAddress]
    /// The addresses in candidates in place of the sockets' own; empty when those are right.
    var announce: [IPAddress]
    /// The listener of `/metrics`, `/healthz`, `/livez`, `/readyz` and the admin API.
    var admin: TransportAddress
    /// The number of media loops, each on a thread of its own.
    var loops: Int
    /// The number of control loops, which run channels and carry no media, each on a thread of its own.
    var controlLoops = 1
    /// Encrypts and decrypts media; available on this machine.
    var srtpBackend: SRTPBackend
    /// Whether several datagrams to one client are handed to the kernel as one (UDP generic segmentation offload).
    var usesGSO: Bool
    /// Whether the kernel may hand over several datagrams of one client as one (UDP generic receive offload).
    var usesGRO: Bool
    /// How much a viewer is sent, and whether that is estimated.
    var sendRate = SendRateSettings()
    /// Whether clients are asked to pause simulcast layers that nobody wants.
    var pausesUnusedLayers = true
    /// Whether the media loops accept ICE over TCP.
    var usesICETCP = true
    /// Which clients are told of the media loops' TURN servers; with `off` the loops have none.
    var turn = TURNAnnouncement.auto
    /// The TURN servers over TLS, with the certificate of ``tls``; `nil` without.
    var turnTLS: TURNTLSListener?
    /// HTTPS, when given.
    var tls: TLSFiles?
    /// The reverse proxies in front of the public listener.
    var proxies: ProxyConfiguration
    /// The one Bearer token of all clients, if set.
    var token: CheckedSecretSource<ClientToken>?
    /// The keys that verify signed tokens; empty without them.
    var jwtKeys: [JWTKeySource]
    /// Further keys of signed tokens, if any.
    var keySet: KeySetSource?
    /// The trusted certificates for the server of ``keySet`` in place of the system's, PEM.
    var keySetAuthorityPath: String?
    /// The apps whose tokens are accepted; empty without them.
    var apps: [AppKeySource] = []
    /// The keys that verify signed URLs, if any.
    var urlKeys = URLKeySettings()
    var webhooks: WebhookSettings
    /// The web origins whose pages may use the admin API.
    var adminOrigins: [String]
    /// Values of `Host` that an admin listener on loopback accepts, besides `localhost` and IP addresses.
    var adminHostNames: [String]
    /// The certificate of the admin listener; `nil` for HTTP.
    var adminTLS: TLSFiles?
    /// The Bearer token that the APIs of the admin listener require, if set.
    var adminToken: CheckedSecretSource<AdminToken>?
    /// A second one that permits reading only.
    var adminReadToken: CheckedSecretSource<AdminToken>?
    /// Of how many channels there are metrics, those with the most members.
    var metricsChannels = 0
    var sora: SoraSettings
    /// `nil` for a node on its own.
    var cluster: ClusterSettings?
    /// The folder for what outlives a restart; `nil` for none.
    var stateDirectory: String?
    /// How long the history of ended connections is kept; 0 for none.
    var historyHours = 24
    /// Where traces go; `nil` for none.
    var traces: TraceSettings?
    /// The limits on what clients may use.
    var limits: NodeLimits
    var logLevel: Logger.Level
    var logFormat: LogFormat
    /// The longest shutdown in seconds.
    var graceSeconds: Int
    /// The longest wait for clients to leave before a shutdown, in seconds; 0 for none.
    var drainSeconds: Int
    /// Warnings about settings that are valid but probably not intended, one sentence each.
    var warnings: [String]
}

extension NodeConfiguration {
    /// The maximum of ``loops``: above the cores of any machine, below what exhausts the ports.
    static let loopsMax = 256
    /// Of control loops.
    static let controlLoopsMax = 64
    /// Each has ten series.
    static let metricsChannelsMax = 100
    static let graceSecondsMax = 3_600
    static let drainSecondsMax = 86_400
    static let historyHoursMax = 24 * 31
    /// The maximum length of a list of addresses. Clients try every announced one.
    static let addressesMax = 16

    /// The options of the UDP sockets.
    var socketOptions: SocketOptions { SocketOptions(usesGSO: usesGSO, usesGRO: usesGRO) }

    /// The UDP sockets of one loop. Port 0, any free port, stays 0.
    func mediaAddresses(loop: Int) -> [TransportAddress] {
        media.map { address in
            guard address.port != 0 else { return address }
            return TransportAddress(ip: address.ip, port: UInt16(truncatingIfNeeded: Int(address.port) + loop))
        }
    }

    /// The TURN servers of the media loops, to be made once for all of them; `nil` without. Relayed addresses have none of the node's ports.
    func turnSettings() -> TURNSettings? {
        guard turn != .off else { return nil }
        let mediaPorts = (0..<loops).flatMap { mediaAddresses(loop: $0) }.map(\.port)
        return TURNSettings(
            reservedPorts: Set(mediaPorts + turnTLSPorts + [http.port, admin.port]),
            calls: limits.turnCalls
        )
    }

    /// The candidates for sockets bound to `bound`: the announced addresses that such a socket serves, or else its own.
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

    /// Whether a socket bound to `socket` receives what is sent to `address`. `[::]` receives both families.
    static func serves(_ socket: IPAddress, _ address: IPAddress) -> Bool {
        socket == .anyV6 || socket.isV4 == address.isV4
    }

    /// The page's URL for a browser on this machine. `port` is the bound one.
    func pageURL(port: UInt16) -> String {
        let scheme = tls == nil ? "http" : "https"
        if http.ip.isUnspecified { return "\(scheme)://localhost:\(port)/" }
        return "\(scheme)://\(TransportAddress(ip: http.ip, port: port))/"
    }
}
