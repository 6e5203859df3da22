import Access
import Logging
import NodeLog
import SRTP
import Sora
import ToolCommands
import Web
import Wire

/// Parses settings. Errors name the source of an invalid one.
struct SettingReader {
    let layers: [ConfigurationLayer]

    func entry(_ setting: Setting) throws(CommandError) -> ConfigurationLayer.Entry? {
        for layer in layers {
            guard let entry = try layer.entry(for: setting) else { continue }
            if entry.values.isEmpty || entry.values.contains("") { throw .usage("\(entry.origin) is empty.") }
            return entry
        }
        return nil
    }

    func text(_ setting: Setting) throws(CommandError) -> String? { try entry(setting)?.value }

    func boolean(_ setting: Setting) throws(CommandError) -> Bool? {
        guard let entry = try entry(setting) else { return nil }
        switch entry.value.lowercased() {
        case "true", "yes", "on", "1": return true
        case "false", "no", "off", "0": return false
        default: throw .usage("\(entry.origin) is \"\(entry.value)\": write true or false.")
        }
    }

    func integer(_ setting: Setting, _ range: ClosedRange<Int>) throws(CommandError) -> Int? {
        guard let entry = try entry(setting) else { return nil }
        guard let value = Int(entry.value), range.contains(value) else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw .usage("\(entry.origin) is \"\(entry.value)\": write a whole number from \(bounds).")
        }
        return value
    }

    func logLevel() throws(CommandError) -> Logger.Level? {
        guard let entry = try entry(.logLevel) else { return nil }
        guard let level = Logger.Level(rawValue: entry.value.lowercased()) else {
            let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(names).")
        }
        return level
    }

    func logFormat() throws(CommandError) -> LogFormat? {
        guard let entry = try entry(.logFormat) else { return nil }
        guard let format = LogFormat(rawValue: entry.value.lowercased()) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write text or json.")
        }
        return format
    }

    func turn() throws(CommandError) -> TURNAnnouncement? {
        guard let entry = try entry(.turn) else { return nil }
        if entry.value == "auto" { return .auto }
        guard let isOn = try? boolean(.turn) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write off, auto or on.")
        }
        return isOn ? .on : .off
    }

    /// The configured backend, or the first available one.
    func srtpBackend(_ available: [SRTPBackend]) throws(CommandError) -> SRTPBackend {
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

    /// The reverse proxies in front of the public listener.
    func proxies() throws(CommandError) -> ProxyConfiguration {
        var proxies = ProxyConfiguration()
        let header = try entry(.proxyHeader)
        if let header {
            guard let known = ProxyConfiguration.Header(rawValue: header.value.lowercased()) else {
                let names = ProxyConfiguration.Header.allCases.map(\.rawValue).joined(separator: " or ")
                throw .usage("\(header.origin) is \"\(header.value)\": write \(names).")
            }
            proxies.header = known
        }
        guard let entry = try entry(.trustedProxy) else {
            guard header == nil else { throw .usage("--proxy-header needs --trusted-proxy.") }
            return proxies
        }
        for value in entry.values {
            guard let range = AddressRange(value) else {
                throw .usage("\(entry.origin) is \"\(value)\": write an IP address or a range, as 10.0.0.0/8.")
            }
            proxies.trusted.append(range)
        }
        try Self.checkList(proxies.trusted, entry.origin)
        return proxies
    }

    func address(_ setting: Setting) throws(CommandError) -> TransportAddress? {
        guard let entry = try entry(setting) else { return nil }
        return try Self.address(entry.value, entry.origin)
    }

    func addresses(_ setting: Setting) throws(CommandError) -> [TransportAddress]? {
        guard let entry = try entry(setting) else { return nil }
        var addresses: [TransportAddress] = []
        for value in entry.values { addresses.append(try Self.address(value, entry.origin)) }
        try Self.checkList(addresses, entry.origin)
        return addresses
    }

    func announced() throws(CommandError) -> [IPAddress]? {
        guard let entry = try entry(.announce) else { return nil }
        var addresses: [IPAddress] = []
        for value in entry.values {
            guard let ip = IPAddress(value) else {
                throw .usage("\(entry.origin) is \"\(value)\": write an IP address without a port, as 203.0.113.7.")
            }
            guard !ip.isUnspecified else {
                throw .usage(
                    "\(entry.origin) is \(ip), which no client can reach: write the address that clients connect to."
                )
            }
            addresses.append(ip)
        }
        try Self.checkList(addresses, entry.origin)
        return addresses
    }

    private static func checkList<Element: Hashable & CustomStringConvertible>(
        _ list: [Element],
        _ origin: String
    ) throws(CommandError) {
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

    private static func address(_ text: String, _ origin: String) throws(CommandError) -> TransportAddress {
        let local = "localhost:"
        let numeric = text.hasPrefix(local) ? "127.0.0.1:\(text.dropFirst(local.count))" : text
        guard let address = TransportAddress(numeric) else {
            throw .usage("\(origin) is \"\(text)\": write an IP address and a port, as 127.0.0.1:8080 or [::1]:8080.")
        }
        return address
    }
}
