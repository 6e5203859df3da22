import Access
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import Wire

/// The effective settings of a connection: the grants, then the client's options, then the node's defaults.
package struct SoraSettings: Sendable {
    let channel: ChannelName
    let role: Role
    let client: String
    let environment: String?
    let clientID: String
    /// The client's own choice.
    private let connectClientID: String?
    let bundleID: String
    let clientMedia: OfferedDescription.ClientMedia
    /// The enabled kinds of media, to send or to receive.
    let kinds: Set<MediaKind>
    let audio: SoraConnect.Media
    let video: SoraConnect.Media
    let isSimulcast: Bool
    /// The offer's `encodings`, one JSON text for each layer; empty without simulcast.
    let encodings: [String]
    let spotlight: Spotlight?
    let layer: LayerChoice
    let grants: Grants
    let notifyMetadata: JSONValue?
    let filters: [ForwardingFilter]
    /// What the grants and the client say of the member; `nil` when they say nothing.
    let options: MemberOptions?
    /// `nil` without data channels.
    let data: SoraDataChannels?

    /// - Parameter decoders: The codecs that the channel's viewers can play, for a sender that chooses none.
    /// - Throws: The close when the settings leave no usable connection.
    init(
        _ connect: SoraConnect,
        id: ParticipantID,
        grants: Grants,
        decoders: VideoDecoders = VideoDecoders(),
        configuration: SoraConfiguration
    ) throws(SoraClose) {
        channel = connect.channel
        role = connect.role
        client = connect.client
        environment = connect.environment
        connectClientID = connect.clientID
        clientID = grants.clientID ?? connect.clientID ?? id.value
        bundleID = grants.bundleID ?? (configuration.acceptsBundleID ? connect.bundleID : nil) ?? id.value
        var audio = connect.audio.granted(grants.audio)
        var video = connect.video.granted(grants.video)
        data = configuration.offersDataChannels ? SoraDataChannels(connect, grants) : nil
        guard audio.isEnabled || video.isEnabled || data != nil else {
            throw SoraClose(
                .invalidMessage,
                "Both audio and video are disabled, and so are data channels; enable one of them."
            )
        }
        let audioCodec: CodecParameters
        let videoCodec: CodecParameters
        do throws(SoraClose) {
            audioCodec = try SoraCodecs.audio(audio)
            let preferred =
                configuration.videoCodec ?? SoraConfiguration.defaultVideoCodec(ofModule: connect.knowsExtension)
            videoCodec = try SoraCodecs.video(
                video,
                default: connect.role.publishes ? decoders.choice(preferred: preferred) : preferred
            )
        } catch {
            // The client's own choice is already validated, so the grants are invalid.
            throw SoraClose(.authenticationInternalError, "The grants are invalid: \(error.message)")
        }
        audio.codec = SoraCodecs.name(of: audioCodec.name)
        video.codec = SoraCodecs.name(of: videoCodec.name)
        self.audio = audio
        self.video = video
        kinds = Set([audio.isEnabled ? MediaKind.audio : nil, video.isEnabled ? .video : nil].compactMap { $0 })
        let wantsSimulcast = grants.isSimulcast ?? connect.isSimulcast
        let usesSpotlight = grants.spotlight ?? connect.spotlight
        let layers =
            wantsSimulcast
            ? SimulcastLayer.layers(
                usesSpotlight ? grants.spotlightEncodings ?? grants.simulcastEncodings : grants.simulcastEncodings
            ) : []
        encodings = layers.map(\.encoding)
        isSimulcast = !layers.isEmpty
        let sendsVideo = connect.role.publishes && video.isEnabled
        clientMedia = OfferedDescription.ClientMedia(
            audio: connect.role.publishes && audio.isEnabled ? audioCodec : nil,
            video: sendsVideo ? videoCodec : nil,
            layers: sendsVideo ? layers.map { OfferedDescription.Layer(rid: $0.rid, isActive: $0.isActive) } : [],
            audioKbps: audio.bitRate,
            videoKbps: [video.bitRate, grants.announcedVideoBitsPerSecond.map { $0 / 1_000 }].compactMap(\.self).min()
        )
        spotlight =
            usesSpotlight
            ? Spotlight(
                number: grants.spotlightNumber ?? connect.spotlightNumber,
                defaultNumber: configuration.spotlightNumber,
                focus: (grants.spotlightFocusRID ?? connect.spotlightFocusRID ?? configuration.spotlightFocusRID).layer,
                unfocus: (grants.spotlightUnfocusRID ?? connect.spotlightUnfocusRID ?? configuration.spotlightUnfocusRID)
                    .layer
            ) : nil
        layer = (grants.requestedRID ?? connect.requestedRID)?.layer ?? .richest
        notifyMetadata = connect.notifyMetadata
        filters = grants.forwardingFilters ?? connect.forwardingFilters
        options = try Self.options(connect, grants)
        self.grants = grants
    }

    /// What the grants say decides over what the client says.
    private static func options(_ connect: SoraConnect, _ grants: Grants) throws(SoraClose) -> MemberOptions? {
        guard let granted = grants.options else { return connect.options?.memberOptions }
        // A host that only receives is audience, whatever it may be.
        guard granted.role != .audience || connect.role != .sendonly else {
            throw SoraClose(
                .invalidMessage,
                "The grants make the client audience, so \"role\" has to be \"sendrecv\" or \"recvonly\"."
            )
        }
        return granted.over(connect.options).memberOptions
    }

    /// The longest display name in bytes.
    private static let nameBytesMax = 255

    /// The name for people in the client's metadata.
    private var displayName: String? {
        guard let name = notifyMetadata?["name"]?.string, (1...Self.nameBytesMax).contains(name.utf8.count),
            !name.unicodeScalars.contains(where: \.isControl)
        else { return nil }
        return name
    }

    /// Whether the client connects only through a TURN server, unless its application says otherwise.
    var needsTURN: Bool { client.hasPrefix("Sora iOS SDK") }

    /// The request for the rooms.
    func joinRequest(id: ParticipantID) -> JoinRequest {
        var request = JoinRequest(
            channel: channel,
            role: role,
            following: .everyone,
            displayName: displayName,
            id: id,
            clientID: clientID,
            user: connectClientID.map { UserIdentity($0, .chosen) },
            bundleID: bundleID,
            notifyMetadataJSON: notifyMetadata?.text,
            notifiesICEState: grants.notifiesICEState ?? false,
            announces: grants.notifies ?? true,
            sendsAudio: kinds.contains(.audio),
            sendsVideo: kinds.contains(.video),
            layer: layer,
            spotlight: spotlight,
            filters: role.watches ? filters : [],
            isSimulcast: !clientMedia.layers.isEmpty,
            agent: ClientAgent(signaling: .sora, name: client, environment: environment),
            options: options
        )
        request.keepsPlace = options != nil
        request.data = data?.plan
        request.resumeToken = options?.resumeToken
        grants.apply(to: &request)
        // What the client says counts where the grants say nothing.
        request.options = options
        return request
    }
}

extension SoraConfiguration {
    /// Whether a client is told of the embedded TURN server.
    func announcesEmbeddedTURN(to client: SoraSettings) -> Bool {
        switch embeddedTURN {
        case .off: false
        case .auto: turn == nil && client.needsTURN
        case .on: true
        }
    }
}

extension SoraConnect.Media {
    /// The options with the grants applied.
    fileprivate func granted(_ grant: Grants.Media) -> Self {
        var media = self
        media.isEnabled = grant.isEnabled ?? isEnabled
        media.codec = grant.codec ?? codec
        media.bitRate = grant.bitRate ?? bitRate
        media.parameters.merge(grant.parameters) { $1 }
        return media
    }
}

/// One simulcast layer of a client.
private struct SimulcastLayer {
    let rid: RID
    let isActive: Bool
    /// The layer's element of `encodings`.
    let encoding: String

    private static let names = ["r0", "r1", "r2"]

    /// The layers in the order of the SDP, lowest first.
    ///
    /// - Parameter granted: An object with a `rid` for each layer; `nil` for three layers at a quarter, half and full size.
    static func layers(_ granted: [[String: JSONValue]]?) -> [Self] {
        let objects: [[String: JSONValue]] =
            granted
            ?? zip(names, [4.0, 2.0, 1.0]).map { name, scale in
                ["rid": .string(name), "scaleResolutionDownBy": .double(scale)]
            }
        return names.compactMap { name in
            guard var object = objects.first(where: { $0["rid"]?.string == name }), let rid = RID(name) else {
                return nil
            }
            let isActive = object["active"]?.bool ?? true
            object["active"] = .bool(isActive)
            // Without a scalability mode, libwebrtc encodes spatial layers of VP9 and AV1 instead of simulcast streams.
            if object["scalabilityMode"] == nil { object["scalabilityMode"] = "L1T1" }
            return Self(rid: rid, isActive: isActive, encoding: JSONValue.object(object).text)
        }
    }
}
