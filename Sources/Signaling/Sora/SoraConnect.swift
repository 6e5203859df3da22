import Access
import ChannelTypes
import JSON
import MediaTypes
import Wire

/// A client's first message: its identity, its channel and its options. Omitted members have their default, or are `nil`
/// when the node configures the default.
struct SoraConnect: Hashable, Sendable {
    /// The options of one kind of media.
    struct Media: Hashable, Sendable {
        /// `true` if absent.
        var isEnabled = true
        /// In upper case: `OPUS`, `VP9`.
        var codec: String?
        /// In kbit/s.
        var bitRate: Int?
        /// Objects such as `opus_params`, by name.
        var parameters: [String: JSONValue] = [:]
    }

    var channel: ChannelName
    var role: Role
    /// The SDK and its version.
    var client = "unknown"
    var environment: String?
    var libwebrtc: String?
    var audio = Media()
    var video = Media()
    var clientID: String?
    var bundleID: String?
    var metadata: JSONValue?
    var notifyMetadata: JSONValue?
    /// Whether another node sent the client here.
    var isRedirected = false
    var isSimulcast = false
    var requestedRID: RequestedRID?
    var spotlight = false
    var spotlightNumber: Int?
    var spotlightFocusRID: RequestedRID?
    var spotlightUnfocusRID: RequestedRID?
    var wantsDataChannelSignaling: Bool?
    var ignoresWebSocketLoss: Bool?
    var dataChannels: [RequestedDataChannel] = []
    var forwardingFilters: [ForwardingFilter] = []
    /// The options of the channel extension; `nil` from clients that do not know it.
    var extensionOptions: StatedOptions?
    /// The options in the metadata, from applications with any SDK.
    var metadataOptions: StatedOptions?
    /// The data channels that the channel extension requests for messages, without those of signaling.
    var messageLabels: [String] = []

    /// Whether the client knows the messages of the channel extension.
    var knowsExtension: Bool { extensionOptions != nil }

    /// What the client says of itself; `nil` when it says nothing.
    var options: StatedOptions? { extensionOptions?.over(metadataOptions) ?? metadataOptions }

    init(channel: ChannelName, role: Role) {
        self.channel = channel
        self.role = role
    }
}

extension SoraConnect {
    /// The maximum length of `sora_client`, `environment` and `libwebrtc`, in bytes. An environment is a user agent string.
    private static let agentBytesMax = 1024
    /// The maximum length of a client's notify metadata, which every new client receives.
    static let notifyMetadataBytesMax = 4096
    static let metadataBytesMax = 64 * 1024

    /// Parses a `connect` message. Unknown members are ignored.
    init(_ message: JSONFields) throws(SoraClose) {
        do throws(JSONShapeError) {
            let name = try message.requiredString("channel_id")
            guard let channel = ChannelName(name) else {
                throw JSONShapeError("\"channel_id\" \(ChannelName.rule).")
            }
            guard let role: Role = try message.choice("role") else { throw JSONShapeError("\"role\" is missing.") }
            self.init(channel: channel, role: role)
            client = try message.string("sora_client", bytesMax: Self.agentBytesMax)?.printable ?? client
            environment = try message.string("environment", bytesMax: Self.agentBytesMax)?.printable
            libwebrtc = try message.string("libwebrtc", bytesMax: Self.agentBytesMax)?.printable
            clientID = try Self.identifier(message, "client_id")
            bundleID = try Self.identifier(message, "bundle_id")
            metadata = try Self.opaque(message, "metadata", bytesMax: Self.metadataBytesMax)
            notifyMetadata = try Self.opaque(
                message,
                "signaling_notify_metadata",
                bytesMax: Self.notifyMetadataBytesMax
            )
            try readSimulcast(message)
            spotlight = try message.bool("spotlight") ?? false
            spotlightNumber = try message.integer("spotlight_number", 1...8)
            spotlightFocusRID = try message.choice("spotlight_focus_rid")
            spotlightUnfocusRID = try message.choice("spotlight_unfocus_rid")
            wantsDataChannelSignaling = try message.bool("data_channel_signaling")
            ignoresWebSocketLoss = try message.bool("ignore_disconnect_websocket")
            dataChannels = try RequestedDataChannel.list(message) ?? []
            _ = try message.bool("multistream")
            isRedirected = try message.bool("redirect") ?? false
            forwardingFilters = try ForwardingFilter.list(message) ?? []
            extensionOptions = try StatedOptions(in: message)
            if let members = try message.object("nagare") {
                messageLabels = try Self.messageLabels(JSONFields(members))
            }
            if let members = metadata?.object { metadataOptions = try Self.metadataOptions(JSONFields(members)) }
            try options?.check(role)
        } catch {
            throw SoraClose(
                .invalidMessage,
                "The \"connect\" message is refused: \(error.message)",
                mistake: error.message
            )
        }
        audio = try Media(message, "audio", .invalidAudioFormat, kbps: 6...Grants.audioKbpsMax)
        video = try Media(message, "video", .invalidVideoFormat, kbps: 1...Grants.videoKbpsMax)
        _ = try SoraCodecs.audio(audio)
        _ = try SoraCodecs.video(video, default: .vp9)
    }

    private static func identifier(_ message: JSONFields, _ name: String) throws(JSONShapeError) -> String? {
        guard let identifier = try message.string(name), !identifier.isEmpty else { return nil }
        guard !identifier.unicodeScalars.contains(where: \.isControl) else {
            throw JSONShapeError("\"\(name)\" has a control character.")
        }
        return identifier
    }

    private static func opaque(
        _ message: JSONFields,
        _ name: String,
        bytesMax: Int
    ) throws(JSONShapeError) -> JSONValue? {
        guard let value = message.value(name) else { return nil }
        guard value.bytes.count <= bytesMax else {
            throw JSONShapeError("\"\(name)\" may have at most \(bytesMax) bytes.")
        }
        return value
    }

    private static func metadataOptions(_ metadata: JSONFields) throws(JSONShapeError) -> StatedOptions? {
        do throws(JSONShapeError) {
            return try StatedOptions(in: metadata)
        } catch {
            throw JSONShapeError("in \"metadata\", \(error.message)")
        }
    }

    private static func messageLabels(_ members: JSONFields) throws(JSONShapeError) -> [String] {
        let labels = try members.strings("messages", countMax: RequestedDataChannel.channelsMax) ?? []
        guard labels.allSatisfy(DataChannelPlan.isOfMessages), Set(labels).count == labels.count else {
            throw JSONShapeError(
                "The labels of \"nagare.messages\" have to be distinct, and each has to start with \"#\" and to have a "
                    + "name of at most \(DataChannelParameters.textBytesMax - 1) bytes behind it."
            )
        }
        return labels
    }

    /// Early JavaScript SDKs send `simulcast: {rid: …}`; `simulcast_rid` is the old name of `simulcast_request_rid`.
    private mutating func readSimulcast(_ message: JSONFields) throws(JSONShapeError) {
        let earlier: RequestedRID? = try message.choice("simulcast_rid")
        requestedRID = try message.choice("simulcast_request_rid") ?? earlier
        guard let object = message.value("simulcast")?.object else {
            isSimulcast = try message.bool("simulcast") ?? false
            return
        }
        isSimulcast = true
        if let rid: RequestedRID = try JSONFields(object).choice("rid") { requestedRID = requestedRID ?? rid }
    }
}

extension SoraConnect.Media {
    fileprivate init(
        _ message: JSONFields,
        _ kind: String,
        _ reason: SoraClose.Reason,
        kbps: ClosedRange<Int>
    ) throws(SoraClose) {
        guard let value = message.value(kind), !value.isNull else { return }
        if let isEnabled = value.bool {
            self.isEnabled = isEnabled
            return
        }
        do throws(JSONShapeError) {
            guard let members = value.object else {
                throw JSONShapeError("\"\(kind)\" must be true, false or an object.")
            }
            let fields = JSONFields(members)
            codec = try fields.string("codec_type", bytesMax: 16)?.uppercased()
            bitRate = try fields.integer("bit_rate", kbps)
            for name in SoraCodecs.parameterNames {
                if let object = try fields.object(name) { parameters[name] = .object(object) }
            }
        } catch {
            let mistake = "in \"\(kind)\", \(error.message)"
            throw SoraClose(reason, "The \"connect\" message is refused: \(mistake)", mistake: mistake)
        }
    }
}

extension SoraConnect {
    /// What an authentication webhook is told of the options, besides those that clients of every protocol have.
    var webhookOptions: [String: JSONValue] {
        var options: [String: JSONValue] = [:]
        options["simulcast_request_rid"] = requestedRID.map { .string($0.rawValue) }
        options["spotlight_number"] = spotlightNumber.map { .integer($0) }
        options["spotlight_focus_rid"] = spotlightFocusRID.map { .string($0.rawValue) }
        options["spotlight_unfocus_rid"] = spotlightUnfocusRID.map { .string($0.rawValue) }
        options["data_channel_signaling"] = wantsDataChannelSignaling.map { .bool($0) }
        options["ignore_disconnect_websocket"] = ignoresWebSocketLoss.map { .bool($0) }
        if !dataChannels.isEmpty { options["data_channels"] = .array(dataChannels.map(\.json)) }
        for (kind, media) in [("audio", audio), ("video", video)] {
            for (name, value) in media.parameters { options["\(kind)_\(name)"] = value }
        }
        return options
    }
}
