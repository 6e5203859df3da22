import ChannelTypes
import Logging
import NodeLog
import SRTP
import Sora
import ToolCommands
import Wire

/// The facts of the machine that defaults depend on.
struct Machine: Sendable {
    /// The number of cores that this process may use.
    var cores: Int
    /// The addresses of the network interfaces that are up, without loopback and link-local ones.
    var addresses: [IPAddress]
    /// The host name.
    var hostName = "nagare"
    /// The available SRTP backends, the fastest first; never empty.
    var srtpBackends: [SRTPBackend]
}

extension NodeConfiguration {
    /// Merges the layers, of which the first with an entry for a setting wins, and validates the result.
    static func resolve(
        _ layers: [ConfigurationLayer],
        machine: Machine,
        unknownVariables: [String] = []
    ) throws(CommandError) -> Self {
        let reader = SettingReader(layers: layers)
        let isDevelopment = try reader.boolean(.dev) ?? false
        let anywhere: IPAddress = isDevelopment ? .loopbackV4 : .anyV4
        var configuration = Self(
            isDevelopment: isDevelopment,
            http: try reader.address(.http) ?? TransportAddress(ip: anywhere, port: 8080),
            media: try reader.addresses(.media) ?? defaultMedia(isDevelopment, machine),
            announce: try reader.announced() ?? [],
            admin: try reader.address(.admin) ?? TransportAddress(ip: .loopbackV4, port: 3000),
            loops: try reader.integer(.loops, 1...loopsMax) ?? min(max(machine.cores, 1), loopsMax),
            controlLoops: try reader.integer(.controlLoops, 1...controlLoopsMax) ?? 1,
            srtpBackend: try reader.srtpBackend(machine.srtpBackends),
            usesGSO: try reader.boolean(.udpGSO) ?? true,
            usesGRO: try reader.boolean(.udpGRO) ?? true,
            sendRate: try reader.sendRate(),
            pausesUnusedLayers: try reader.boolean(.pauseUnusedLayers) ?? true,
            usesICETCP: try reader.boolean(.iceTCP) ?? true,
            turn: try reader.turn() ?? .auto,
            turnTLS: try TURNTLSListener(reader),
            tls: try tls(reader, .tlsCertificate, .tlsKey),
            proxies: try reader.proxies(),
            token: try reader.secret(.token),
            jwtKeys: try reader.jwtKeys(),
            keySet: try reader.keySet(),
            keySetAuthorityPath: try reader.keySetAuthority(try reader.keySet()),
            apps: try reader.apps(),
            urlKeys: try reader.urlKeys(),
            webhooks: try WebhookSettings(reader),
            adminOrigins: try reader.origins(),
            adminHostNames: try reader.hostNames(),
            adminTLS: try tls(reader, .adminTLSCertificate, .adminTLSKey),
            adminToken: try reader.secret(.adminToken),
            adminReadToken: try reader.adminReadToken(),
            metricsChannels: try reader.integer(.metricsChannels, 0...metricsChannelsMax) ?? 0,
            sora: try SoraSettings(reader, machine),
            cluster: try ClusterSettings(reader, machine),
            stateDirectory: try reader.text(.stateDirectory),
            historyHours: try reader.integer(.historyHours, 0...historyHoursMax) ?? 24,
            traces: try TraceSettings(reader),
            limits: try reader.limits(),
            logLevel: try reader.logLevel() ?? .info,
            logFormat: try reader.logFormat() ?? .text,
            graceSeconds: try reader.integer(.grace, 1...graceSecondsMax) ?? 10,
            drainSeconds: try reader.integer(.drainDeadline, 0...drainSecondsMax) ?? 0,
            warnings: unknownVariables.map { "\($0) is set, but is not a setting." }
        )
        try configuration.checkAddresses()
        try configuration.checkTCPPorts()
        try configuration.checkTURNTLS()
        try configuration.checkAccess()
        let chosenMedia = try reader.addresses(.media) ?? []
        try configuration.checkDevelopment(chosenMedia)
        try configuration.resolveAnnounced(machine)
        configuration.warnings += configuration.exposureWarnings()
        return configuration
    }

    /// All addresses; for development loopback and the machine's first address, because Firefox and libnice never pair
    /// loopback addresses. Others cannot connect there: the node answers only checks with credentials, and clients get those
    /// from the page on loopback.
    private static func defaultMedia(_ isDevelopment: Bool, _ machine: Machine) -> [TransportAddress] {
        guard isDevelopment else { return [TransportAddress(ip: .anyV4, port: 7000)] }
        let own = machine.addresses.first(where: \.isV4)
        return ([.loopbackV4] + (own.map { [$0] } ?? [])).map { TransportAddress(ip: $0, port: 7000) }
    }

    /// The variables with our prefix that name no setting. They are a warning and not an error, because a Kubernetes service
    /// named `nagare` sets some.
    static func unknownVariables(_ environment: [String: String]) -> [String] {
        let known = Set(Setting.allCases.map(\.environmentVariable) + [Setting.fileVariable])
        return environment.keys.filter { $0.hasPrefix(Setting.environmentPrefix) && !known.contains($0) }.sorted()
    }

    private static func tls(
        _ reader: SettingReader,
        _ certificateSetting: Setting,
        _ keySetting: Setting
    ) throws(CommandError) -> TLSFiles? {
        let certificate = try reader.text(certificateSetting)
        let key = try reader.text(keySetting)
        switch (certificate, key) {
        case (nil, nil): return nil
        case (let certificate?, let key?): return TLSFiles(certificatePath: certificate, keyPath: key)
        case (_?, nil):
            throw .usage("\(certificateSetting.flag) needs \(keySetting.flag) with the private key of the certificate.")
        case (nil, _?):
            throw .usage("\(keySetting.flag) needs \(certificateSetting.flag) with the certificate of the private key.")
        }
    }

    private func checkAddresses() throws(CommandError) {
        if http == admin, http.port != 0 {
            throw .usage("--http and --admin are both \(http): the admin page needs an address of its own.")
        }
        for address in media where address.port != 0 && Int(address.port) + loops - 1 > 65_535 {
            throw .usage("--media \(address) leaves no room for \(loops) loops, which take one port each up to 65535.")
        }
        for (index, left) in media.enumerated() {
            for right in media[(index + 1)...] where left.port != 0 && right.port != 0 {
                let sharesAddress = left.ip == right.ip || (left.ip.isV4 == right.ip.isV4 && left.ip.isUnspecified)
                let overlaps = abs(Int(left.port) - Int(right.port)) < loops
                if sharesAddress && overlaps {
                    throw .usage(
                        "--media \(left) and \(right) overlap: each of the \(loops) loops takes the next port."
                    )
                }
            }
        }
    }

    /// The media loops start first, and would take a port that a web listener needs.
    private func checkTCPPorts() throws(CommandError) {
        guard usesICETCP else { return }
        for (setting, address) in [(Setting.http, http), (.admin, admin)] where address.port != 0 {
            for socket in media where socket.port != 0 {
                let sharesAddress = socket.ip == address.ip || socket.ip.isUnspecified || address.ip.isUnspecified
                let isInRange = (0..<loops).contains(Int(address.port) - Int(socket.port))
                if sharesAddress && isInRange {
                    throw .usage(
                        "\(setting.flag) \(address) is a port of --media \(socket), where the loops listen on TCP too: choose "
                            + "another port, or set --ice-tcp off."
                    )
                }
            }
        }
    }

    private func checkDevelopment(_ chosenMedia: [TransportAddress]) throws(CommandError) {
        guard isDevelopment else { return }
        for (setting, address) in [(Setting.http, http), (.admin, admin)] + chosenMedia.map({ (.media, $0) })
        where !address.ip.isLoopback {
            throw .usage(
                "--dev listens on loopback only: leave --dev out to use \(setting.flag) \(address)."
            )
        }
    }

    /// Announces the interfaces' addresses when a socket is bound to all of them and none is configured.
    private mutating func resolveAnnounced(_ machine: Machine) throws(CommandError) {
        for ip in announce where !media.contains(where: { Self.serves($0.ip, ip) }) {
            let family = ip.isV4 ? "IPv4" : "IPv6"
            throw .usage("--announce \(ip) is an \(family) address, but no --media address is.")
        }
        let unspecified = media.filter(\.ip.isUnspecified)
        guard announce.isEmpty, let socket = unspecified.first else {
            for socket in media where !announce.isEmpty && !announce.contains(where: { Self.serves(socket.ip, $0) }) {
                throw .usage("--media \(socket) is announced by no --announce address of its family.")
            }
            return
        }
        let found = machine.addresses.filter { ip in unspecified.contains { Self.serves($0.ip, ip) } }
        let specified = media.map(\.ip).filter { !$0.isUnspecified }
        guard !found.isEmpty else {
            throw .usage("--media \(socket) needs --announce: no network interface has an address to tell clients.")
        }
        announce = (specified + found).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        let told = announce.map(\.description).joined(separator: ", ")
        warnings.append(
            "The node announces the addresses of the network interfaces, \(told): use --announce if clients reach this "
                + "machine at another address."
        )
    }

    /// Whether clients need a signed token or URL.
    private var hasSignatureKeys: Bool {
        !jwtKeys.isEmpty || keySet != nil || !apps.isEmpty || !urlKeys.sources.isEmpty
    }

    /// At most one authentication method may be set. Signed tokens and URLs of all kinds are one method.
    private func checkAccess() throws(CommandError) {
        let methods = [token != nil, hasSignatureKeys, webhooks.authenticationURL != nil].filter(\.self)
        guard methods.count > 1 else { return }
        let ways = [
            (Setting.token, token != nil), (.jwtKey, !jwtKeys.isEmpty), (.jwks, keySet != nil), (.app, !apps.isEmpty),
            (.urlKey, !urlKeys.sources.isEmpty), (.authWebhookURL, webhooks.authenticationURL != nil),
        ]
        .filter(\.1).map(\.0.flag)
        throw .usage("\(ways.joined(separator: " and ")) are set: choose one method of authentication.")
    }

    private func exposureWarnings() -> [String] {
        var warnings: [String] = []
        let isOpen = token == nil && !hasSignatureKeys && webhooks.authenticationURL == nil
        if isOpen, !isDevelopment {
            let who = http.ip.isLoopback ? "Anyone who reaches \(http) through a proxy" : "Anyone who reaches \(http)"
            warnings.append("\(who) can publish and watch: no token, key or authentication webhook is set.")
        }
        let policy = limits.rooms.duplicateUsers
        if policy != .allow, !hasSignatureKeys, webhooks.authenticationURL == nil {
            warnings.append(
                "--duplicate-user \(policy.rawValue) does nothing: no signed token and no webhook names users here."
            )
        }
        if tls == nil, !http.ip.isLoopback {
            warnings.append(
                "The page is served without TLS: browsers allow camera and microphone only over HTTPS or on localhost."
            )
        }
        if !admin.ip.isLoopback {
            warnings.append(
                adminToken == nil
                    ? "Anyone who reaches \(admin) can read the metrics and end every connection: set --admin-token."
                    : "Anyone who reaches \(admin) can read the metrics."
            )
        }
        if cluster?.acceptsUnsignedRecords == true {
            warnings.append(
                "Whoever writes to the cluster's store can add nodes: set --cluster-unsigned-records off when all nodes sign "
                    + "their records."
            )
        }
        return warnings
    }
}
