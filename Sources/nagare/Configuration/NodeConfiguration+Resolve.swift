import Logging
import SRTP
import Wire

/// What the configuration needs to know of the machine.
struct Machine: Sendable {
    /// How many cores this process may use.
    var cores: Int
    /// The addresses of the network interfaces that are up, without loopback and link-local ones.
    var addresses: [IPAddress]
    /// What can encrypt media here, the fastest first; never empty.
    var srtpBackends: [SRTPBackend]
}

extension NodeConfiguration {
    /// Merges the layers, the first that says something about a setting winning, and checks the result.
    static func resolve(
        _ layers: [ConfigurationLayer],
        machine: Machine,
        unknownVariables: [String] = []
    ) throws(StartupError) -> Self {
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
            srtpBackend: try reader.srtpBackend(machine.srtpBackends),
            usesGSO: try reader.boolean(.udpGSO) ?? true,
            usesGRO: try reader.boolean(.udpGRO) ?? true,
            tls: try tls(reader),
            token: try reader.token(),
            logLevel: try reader.logLevel() ?? .info,
            graceSeconds: try reader.integer(.grace, 1...graceSecondsMax) ?? 10,
            warnings: unknownVariables.map { "\($0) is set, but there is no such setting." }
        )
        try configuration.checkAddresses()
        let chosenMedia = try reader.addresses(.media) ?? []
        try configuration.checkDevelopment(chosenMedia)
        try configuration.resolveAnnounced(machine)
        configuration.warnings += configuration.exposureWarnings()
        return configuration
    }

    /// Media listens everywhere. For development that is loopback and, because Firefox and libnice never pair loopback
    /// addresses, the first address of the machine. Nobody else gets anything there: only checks with credentials are
    /// answered, and those come from the loopback page.
    private static func defaultMedia(_ isDevelopment: Bool, _ machine: Machine) -> [TransportAddress] {
        guard isDevelopment else { return [TransportAddress(ip: .anyV4, port: 7000)] }
        let own = machine.addresses.first(where: \.isV4)
        return ([.loopbackV4] + (own.map { [$0] } ?? [])).map { TransportAddress(ip: $0, port: 7000) }
    }

    /// The variables that look like settings and are none, for a warning: a Kubernetes service named `nagare` sets some,
    /// so they are no error.
    static func unknownVariables(_ environment: [String: String]) -> [String] {
        let known = Set(Setting.allCases.map(\.environmentVariable) + [Setting.fileVariable])
        return environment.keys.filter { $0.hasPrefix(Setting.environmentPrefix) && !known.contains($0) }.sorted()
    }

    private static func tls(_ reader: SettingReader) throws(StartupError) -> TLSFiles? {
        let certificate = try reader.text(.tlsCertificate)
        let key = try reader.text(.tlsKey)
        switch (certificate, key) {
        case (nil, nil): return nil
        case (let certificate?, let key?): return TLSFiles(certificatePath: certificate, keyPath: key)
        case (_?, nil): throw .usage("--tls-cert needs --tls-key with the private key of the certificate.")
        case (nil, _?): throw .usage("--tls-key needs --tls-cert with the certificate of the private key.")
        }
    }

    private func checkAddresses() throws(StartupError) {
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

    private func checkDevelopment(_ chosenMedia: [TransportAddress]) throws(StartupError) {
        guard isDevelopment else { return }
        for (setting, address) in [(Setting.http, http), (.admin, admin)] + chosenMedia.map({ (.media, $0) })
        where !address.ip.isLoopback {
            throw .usage(
                "--dev listens on loopback only: leave --dev out to use \(setting.flag) \(address)."
            )
        }
    }

    /// A socket on every address of the machine has none to tell clients, so those of the interfaces are taken.
    private mutating func resolveAnnounced(_ machine: Machine) throws(StartupError) {
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
            "Clients are told the addresses of the network interfaces, \(told): use --announce if they reach this machine "
                + "by another one."
        )
    }

    private func exposureWarnings() -> [String] {
        var warnings: [String] = []
        if token == nil, !isDevelopment, !http.ip.isLoopback {
            warnings.append("Anyone who reaches \(http) can publish and watch: no token is set.")
        }
        if tls == nil, !http.ip.isLoopback {
            warnings.append(
                "The page is served without TLS: browsers allow camera and microphone only over HTTPS or on localhost."
            )
        }
        if !admin.ip.isLoopback {
            warnings.append("Anyone who reaches \(admin) can read the metrics.")
        }
        return warnings
    }
}

/// Reads settings as values, with a sentence that names the place where a wrong one was written.
private struct SettingReader {
    let layers: [ConfigurationLayer]

    private func entry(_ setting: Setting) throws(StartupError) -> ConfigurationLayer.Entry? {
        for layer in layers {
            guard let entry = try layer.entry(for: setting) else { continue }
            if entry.values.isEmpty || entry.values.contains("") { throw .usage("\(entry.origin) is empty.") }
            return entry
        }
        return nil
    }

    func text(_ setting: Setting) throws(StartupError) -> String? { try entry(setting)?.value }

    func boolean(_ setting: Setting) throws(StartupError) -> Bool? {
        guard let entry = try entry(setting) else { return nil }
        switch entry.value.lowercased() {
        case "true", "yes", "on", "1": return true
        case "false", "no", "off", "0": return false
        default: throw .usage("\(entry.origin) is \"\(entry.value)\": write true or false.")
        }
    }

    func integer(_ setting: Setting, _ range: ClosedRange<Int>) throws(StartupError) -> Int? {
        guard let entry = try entry(setting) else { return nil }
        guard let value = Int(entry.value), range.contains(value) else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw .usage("\(entry.origin) is \"\(entry.value)\": write a whole number from \(bounds).")
        }
        return value
    }

    func logLevel() throws(StartupError) -> Logger.Level? {
        guard let entry = try entry(.logLevel) else { return nil }
        guard let level = Logger.Level(rawValue: entry.value.lowercased()) else {
            let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(names).")
        }
        return level
    }

    /// The backend that was asked for, or the first of those that there are.
    func srtpBackend(_ available: [SRTPBackend]) throws(StartupError) -> SRTPBackend {
        guard let fastest = available.first else { preconditionFailure("libsrtp2 is in every build") }
        guard let entry = try entry(.srtpBackend), entry.value != "auto" else { return fastest }
        let list = { (backends: [SRTPBackend]) in
            (["auto"] + backends.map(\.rawValue)).joined(separator: ", ")
        }
        guard let backend = SRTPBackend(rawValue: entry.value) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(list(SRTPBackend.allCases)).")
        }
        guard available.contains(backend) else {
            throw .usage(
                "\(entry.origin) is \"\(backend.rawValue)\", which this build or this processor does not have: write one of "
                    + "\(list(available))."
            )
        }
        return backend
    }

    func token() throws(StartupError) -> Token? {
        guard let entry = try entry(.token) else { return nil }
        // RFC 6750 §2.1: what an Authorization header can carry.
        let allowed = { (byte: UInt8) in isTokenByte(byte) }
        guard entry.value.utf8.count <= 4_096, entry.value.utf8.allSatisfy(allowed) else {
            throw .usage("\(entry.origin) may hold letters, digits and -._~+/= only.")
        }
        return Token(secret: entry.value)
    }

    func address(_ setting: Setting) throws(StartupError) -> TransportAddress? {
        guard let entry = try entry(setting) else { return nil }
        return try Self.address(entry.value, entry.origin)
    }

    func addresses(_ setting: Setting) throws(StartupError) -> [TransportAddress]? {
        guard let entry = try entry(setting) else { return nil }
        var addresses: [TransportAddress] = []
        for value in entry.values { addresses.append(try Self.address(value, entry.origin)) }
        try Self.checkList(addresses, entry.origin)
        return addresses
    }

    func announced() throws(StartupError) -> [IPAddress]? {
        guard let entry = try entry(.announce) else { return nil }
        var addresses: [IPAddress] = []
        for value in entry.values {
            guard let ip = IPAddress(value) else {
                throw .usage("\(entry.origin) is \"\(value)\": write an IP address without a port, as 203.0.113.7.")
            }
            guard !ip.isUnspecified else { throw .usage("\(entry.origin) is \(ip), which no client can reach.") }
            addresses.append(ip)
        }
        try Self.checkList(addresses, entry.origin)
        return addresses
    }

    private static func checkList<Element: Hashable & CustomStringConvertible>(
        _ list: [Element],
        _ origin: String
    ) throws(StartupError) {
        guard list.count <= NodeConfiguration.addressesMax else {
            throw .usage(
                "\(origin) has \(list.count) addresses: at most \(NodeConfiguration.addressesMax) are possible."
            )
        }
        var seen: Set<Element> = []
        for element in list where !seen.insert(element).inserted {
            throw .usage("\(origin) names \(element) twice.")
        }
    }

    private static func address(_ text: String, _ origin: String) throws(StartupError) -> TransportAddress {
        let local = "localhost:"
        let numeric = text.hasPrefix(local) ? "127.0.0.1:\(text.dropFirst(local.count))" : text
        guard let address = TransportAddress(numeric) else {
            throw .usage("\(origin) is \"\(text)\": write an IP address and a port, as 127.0.0.1:8080 or [::1]:8080.")
        }
        return address
    }
}

private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"):
        true
    default: "-._~+/=".utf8.contains(byte)
    }
}
