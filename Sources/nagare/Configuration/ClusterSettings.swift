import ChannelTypes
import Cluster
import Foundation
import ToolCommands
import Wire

/// The settings of a node that joins a cluster. Files are read later.
struct ClusterSettings: Equatable, Sendable {
    let store: RedisEndpoint
    /// The PEM file with the authorities of a store with TLS; `nil` for the system's.
    let storeAuthority: String?
    let name: ClusterName
    let node: NodeID
    /// Where the node listens for links.
    let link: TransportAddress
    /// `HOST:PORT` for the other nodes; `nil` for ``link``.
    let announce: String?
    let secrets: [SecretSource]
    /// Whether records of other nodes in the store need no signature.
    var acceptsUnsignedRecords = false
    var region = ""
    var zone = ""
    var publicURL = ""
    let stateDirectory: String?

    /// The settings that mean nothing without ``Setting/clusterStore``.
    private static let dependent: [Setting] = [
        .clusterStoreCA, .clusterName, .clusterLink, .clusterAnnounce, .clusterSecret, .clusterUnsignedRecords, .region,
        .zone, .publicURL,
    ]
    private static let nameBytesMax = 32
    private static let urlBytesMax = 128

    /// `nil` without a store.
    init?(_ reader: SettingReader, _ machine: Machine) throws(CommandError) {
        guard let store = try reader.entry(.clusterStore) else {
            for setting in Self.dependent {
                if let entry = try reader.entry(setting) {
                    throw .usage("\(entry.origin) needs --cluster-store with the URL of the cluster's Redis server.")
                }
            }
            return nil
        }
        do throws(RedisEndpointError) {
            self.store = try RedisEndpoint(store.value)
        } catch {
            throw .usage("\(store.origin) is not usable. \(error)")
        }
        storeAuthority = try reader.text(.clusterStoreCA)
        name = try Self.clusterName(reader)
        node = try Self.node(reader, machine)
        guard let link = try reader.address(.clusterLink) else {
            throw .usage(
                "--cluster-store needs --cluster-link with an address that the other nodes reach, as 10.0.0.5:7400."
            )
        }
        self.link = link
        announce = try Self.announce(reader, link)
        secrets = try Self.secrets(reader)
        acceptsUnsignedRecords = try reader.boolean(.clusterUnsignedRecords) ?? false
        region = try Self.word(.region, reader)
        zone = try Self.word(.zone, reader)
        publicURL = try Self.publicURL(reader)
        stateDirectory = try reader.text(.stateDirectory)
    }

    private static func clusterName(_ reader: SettingReader) throws(CommandError) -> ClusterName {
        guard let entry = try reader.entry(.clusterName) else {
            guard let name = ClusterName(rawValue: "nagare") else { preconditionFailure("the default is a name") }
            return name
        }
        guard let name = ClusterName(rawValue: entry.value) else {
            throw .usage(
                "\(entry.origin) is \"\(entry.value)\": write 1 to 32 lower-case letters, digits and hyphens."
            )
        }
        return name
    }

    private static func node(_ reader: SettingReader, _ machine: Machine) throws(CommandError) -> NodeID {
        let entry = try reader.entry(.nodeName)
        let text = entry?.value ?? machine.hostName
        guard let node = NodeID(rawValue: text) else {
            throw .usage(
                "\(entry?.origin ?? "The machine's name") is \"\(text)\", which no node of a cluster can have: set --node-name "
                    + "to 1 to 63 letters, digits, dots, hyphens and underscores."
            )
        }
        return node
    }

    private static func announce(_ reader: SettingReader, _ link: TransportAddress) throws(CommandError) -> String? {
        guard let entry = try reader.entry(.clusterAnnounce) else {
            guard !link.ip.isUnspecified else {
                throw .usage(
                    "--cluster-link \(link) listens on all addresses: set --cluster-announce to the one that the other nodes "
                        + "reach, as node-a.internal:\(link.port)."
                )
            }
            return nil
        }
        guard entry.value.utf8.count <= urlBytesMax, HostPort(entry.value) != nil else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write a host and a port, as node-a.internal:7400.")
        }
        return entry.value
    }

    private static func secrets(_ reader: SettingReader) throws(CommandError) -> [SecretSource] {
        guard let entry = try reader.entry(.clusterSecret) else {
            throw .usage(
                "--cluster-store needs --cluster-secret @FILE with the secret that all nodes share. Make it with openssl rand "
                    + "-hex 32."
            )
        }
        guard entry.values.count <= LinkSecurity.secretsMax else {
            throw .usage(
                "\(entry.origin) has \(entry.values.count) secrets: at most \(LinkSecurity.secretsMax) are possible."
            )
        }
        return try entry.values.map { value throws(CommandError) in
            guard let source = SecretSource(value) else {
                throw .usage("\(entry.origin) has to be a secret, or @ and the file that has it: write @FILE.")
            }
            return source
        }
    }

    private static func word(_ setting: Setting, _ reader: SettingReader) throws(CommandError) -> String {
        guard let entry = try reader.entry(setting) else { return "" }
        let isWord = entry.value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
        guard isWord, entry.value.utf8.count <= nameBytesMax else {
            throw .usage(
                "\(entry.origin) is \"\(entry.value)\": write a name of at most \(nameBytesMax) characters, without spaces."
            )
        }
        return entry.value
    }

    private static func publicURL(_ reader: SettingReader) throws(CommandError) -> String {
        guard let entry = try reader.entry(.publicURL) else { return "" }
        let components = URLComponents(string: entry.value)
        guard let components, ["http", "https"].contains(components.scheme ?? ""), components.host?.isEmpty == false,
            components.user == nil, components.query == nil, components.fragment == nil,
            ["", "/"].contains(components.path), entry.value.utf8.count <= urlBytesMax
        else {
            throw .usage(
                "\(entry.origin) is \"\(entry.value)\": write http:// or https://, a host and if need be a port, as "
                    + "https://node-a.example.com."
            )
        }
        return entry.value.hasSuffix("/") ? String(entry.value.dropLast()) : entry.value
    }

    /// What ``ClusterNode`` is made with.
    func configuration(build: String) -> ClusterConfiguration {
        var configuration = ClusterConfiguration(
            cluster: name,
            node: node,
            linkHost: link.ip.description,
            linkPort: Int(link.port)
        )
        configuration.linkAnnounce = announce
        configuration.region = region
        configuration.zone = zone
        configuration.publicURL = publicURL
        configuration.build = build
        configuration.acceptsUnsignedRecords = acceptsUnsignedRecords
        configuration.stateDirectory = stateDirectory
        return configuration
    }

    /// Reads the secrets.
    func security() throws(CommandError) -> ClusterSecurity {
        let secrets = try secrets.map { source throws(CommandError) -> String in
            let (text, name) = try source.contents(origin: Setting.clusterSecret.flag, trimsNewline: true)
            let lengths = LinkSecurity.secretBytesMin...LinkSecurity.secretBytesMax
            guard lengths ~= text.utf8.count else {
                throw .usage(
                    "\(name) has \(text.utf8.count) characters: a cluster's secret has \(lengths.lowerBound) to "
                        + "\(lengths.upperBound), as openssl rand -hex 32 makes."
                )
            }
            return text
        }
        guard let links = LinkSecurity(secrets: secrets) else {
            throw .system("The TLS of the cluster's links could not be set up.")
        }
        return ClusterSecurity(links: links, records: RecordSigner(secrets: secrets))
    }
}

/// What the cluster's secrets protect.
struct ClusterSecurity: Sendable {
    /// The links between nodes.
    let links: LinkSecurity
    /// What nodes tell the store of themselves.
    let records: RecordSigner
}
