import Access
import Base
import ChannelTypes
import Sora
import ToolCommands
import Web
import Wire

/// The settings of Sora signaling.
struct SoraSettings: Equatable, Sendable {
    /// TURN servers; empty when there are none.
    var turnURLs: [String] = []
    var turnUsername: String?
    var turnCredential: Token?
    /// `nil` for the default of each kind of client.
    var videoCodec: CodecName?
    var spotlightNumber = 8
    var spotlightFocusRID = RequestedRID.r1
    var spotlightUnfocusRID = RequestedRID.r0
    var offersDataChannels = true
    var acceptsBundleID = true
    var pingSeconds = 5
    var nodeName = "nagare"
    var label = "Nagare"

    /// The client Momo disconnects after 60 s without a ping.
    static let pingSecondsMax = 30

    init() {}

    init(_ reader: SettingReader, _ machine: Machine) throws(CommandError) {
        turnURLs = try reader.turnURLs()
        turnUsername = try reader.text(.turnUsername)
        turnCredential = try reader.text(.turnCredential).map { Token(secret: $0) }
        videoCodec = try reader.videoCodec()
        spotlightNumber = try reader.integer(.spotlightNumber, 1...8) ?? spotlightNumber
        spotlightFocusRID = try reader.rid(.spotlightFocusRID) ?? spotlightFocusRID
        spotlightUnfocusRID = try reader.rid(.spotlightUnfocusRID) ?? spotlightUnfocusRID
        offersDataChannels = try reader.boolean(.dataChannels) ?? offersDataChannels
        acceptsBundleID = try reader.boolean(.clientBundleID) ?? acceptsBundleID
        pingSeconds = try reader.integer(.pingInterval, 1...Self.pingSecondsMax) ?? pingSeconds
        nodeName = try reader.name(.nodeName) ?? machine.hostName
        label = try reader.name(.label) ?? label
        let isComplete = turnUsername != nil && turnCredential != nil
        if turnURLs.isEmpty, turnUsername != nil || turnCredential != nil {
            throw .usage("--turn-username and --turn-credential need --turn-url.")
        }
        if !turnURLs.isEmpty, !isComplete {
            throw .usage("--turn-url needs --turn-username and --turn-credential: some clients end without them.")
        }
    }

    /// The settings as the module Signaling takes them.
    var configuration: SoraConfiguration {
        var configuration = SoraConfiguration()
        if let turnUsername, let turnCredential {
            configuration.turn = SoraConfiguration.TURN(
                urls: turnURLs,
                username: turnUsername,
                credential: turnCredential.secret
            )
        }
        configuration.videoCodec = videoCodec
        configuration.spotlightNumber = spotlightNumber
        configuration.spotlightFocusRID = spotlightFocusRID
        configuration.spotlightUnfocusRID = spotlightUnfocusRID
        configuration.offersDataChannels = offersDataChannels
        configuration.acceptsBundleID = acceptsBundleID
        configuration.pingInterval = .seconds(pingSeconds)
        configuration.node = identity
        return configuration
    }

    /// The node's name in webhooks and Sora signaling.
    var identity: NodeIdentity {
        NodeIdentity(name: nodeName, label: label, version: BuildInformation.version)
    }
}

extension SettingReader {
    fileprivate func turnURLs() throws(CommandError) -> [String] {
        guard let entry = try entry(.turnURL) else { return [] }
        guard entry.values.count <= NodeConfiguration.addressesMax else {
            throw .usage("\(entry.origin) has more than \(NodeConfiguration.addressesMax) addresses.")
        }
        for value in entry.values {
            let scheme = value.prefix { $0 != ":" }
            guard scheme == "turn" || scheme == "turns", value.utf8.count > scheme.utf8.count + 1,
                value.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                throw .usage("\(entry.origin) is \"\(value)\": write it as turn:203.0.113.5:3478?transport=udp.")
            }
        }
        return entry.values
    }

    fileprivate func videoCodec() throws(CommandError) -> CodecName? {
        guard let entry = try entry(.videoCodec) else { return nil }
        let codecs = CodecName.allCases.filter { $0.kind == .video }
        guard let codec = codecs.first(where: { $0.rawValue == entry.value.uppercased() }) else {
            let names = codecs.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(names).")
        }
        return codec
    }

    fileprivate func rid(_ setting: Setting) throws(CommandError) -> RequestedRID? {
        guard let entry = try entry(setting) else { return nil }
        guard let rid = RequestedRID(rawValue: entry.value) else {
            let names = RequestedRID.allCases.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(names).")
        }
        return rid
    }

    fileprivate func name(_ setting: Setting) throws(CommandError) -> String? {
        guard let entry = try entry(setting) else { return nil }
        guard entry.value.utf8.count <= 255, !entry.value.unicodeScalars.contains(where: \.isControl) else {
            throw .usage("\(entry.origin) has to be a name of at most 255 bytes without control characters.")
        }
        return entry.value
    }
}
