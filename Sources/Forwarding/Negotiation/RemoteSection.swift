import MediaTypes
internal import Wire

/// A simulcast layer of a peer's section, with its `a=rid` attribute.
struct RemoteLayer: Hashable {
    var attribute: RIDAttribute
    var isPaused: Bool
}

/// One parsed media section of a peer's description.
struct RemoteSection {
    /// The maximum number of signaled SSRCs: more than eight layers with RTX and FEC each.
    static let ssrcsMax = 64
    static let candidatesMax = 64
    static let fingerprintsMax = 8

    private(set) var media: MediaDescription
    /// `nil` for a section that is neither audio nor video.
    let kind: MediaKind?
    /// `nil` when the line is missing.
    let mid: MID?
    let direction: MediaDirection
    /// Whether the peer rejects it: port 0 without `a=bundle-only`.
    let isRejected: Bool
    /// The recognized formats in the peer's order, before ``negotiated(flow:usable:)``.
    var codecs: [CodecParameters] = []
    var extensionLines: [ExtensionMapAttribute] = []
    /// Whether RFC 8888 feedback is listed for `*`, and not for each payload type.
    var listsFeedbackOnce = false
    /// The simulcast layers that the peer sends or receives, according to `layerDirection`.
    var layers: [RemoteLayer] = []
    /// The primary SSRCs in order.
    var ssrcs: [SSRC] = []
    var rtxSSRCs: [SSRC: SSRC] = [:]
    /// All SSRCs, to detect collisions.
    var allSSRCs: Set<SSRC> = []
    var candidates: [TransportAddress] = []

    var attributes: [SDPAttribute] { media.attributes }

    /// - Parameters:
    ///   - sessionDirection: The session-level direction, the default of the section.
    ///   - layerDirection: `send` to parse the layers that the peer sends, `recv` for those that it receives.
    init(
        _ media: MediaDescription,
        sessionDirection: MediaDirection?,
        layerDirection: StreamDirection
    ) throws(NegotiationError) {
        self.media = media
        kind = MediaKind(rawValue: media.type)
        if let text = media.attributes.value(of: "mid") {
            guard let parsed = MID(text) else { throw .malformed("The a=mid of a section is not a token.") }
            mid = parsed
        } else {
            mid = nil
        }
        direction =
            media.attributes.lazy.compactMap { $0.value == nil ? MediaDirection(rawValue: $0.name) : nil }.first
            ?? sessionDirection ?? .sendrecv
        isRejected = media.port == 0 && !media.attributes.has("bundle-only")
        guard let kind, !isRejected else { return }
        readCodecs(of: kind)
        try readStreams(layerDirection: layerDirection)
    }

    /// The section reduced to what ``RemoteDescription`` checks.
    func condensed() -> Self {
        var condensed = self
        condensed.media.formats = []
        condensed.media.bandwidths = []
        condensed.media.attributes.removeAll { !Self.transportAttributes.contains($0.name) }
        for index in codecs.indices {
            condensed.codecs[index].format = []
        }
        for (index, line) in extensionLines.enumerated() {
            // The constant string shares its memory.
            if let known = HeaderExtension(uri: line.uri) { condensed.extensionLines[index].uri = known.uri }
        }
        return condensed
    }

    /// The attributes that `RemoteDescription` reads itself.
    private static let transportAttributes: Set<String> = [
        "ice-ufrag", "ice-pwd", "fingerprint", "setup", "rtcp-mux", "rtcp-mux-only",
    ]

    /// The section's name in error messages.
    var label: String { mid.map { "\(media.type) section \($0)" } ?? "\(media.type) section" }

    private mutating func readStreams(layerDirection: StreamDirection) throws(NegotiationError) {
        var rids: [RID: RIDAttribute] = [:]
        var simulcast: [[SimulcastAttribute.Version]] = []
        var groups: [SSRCGroupAttribute] = []
        var isExtensionKnown: Set<String> = []
        for attribute in media.attributes {
            guard let value = attribute.value else { continue }
            switch attribute.name {
            case "extmap":
                guard let line = ExtensionMapAttribute(value), HeaderExtension(uri: line.uri) != nil,
                    isExtensionKnown.insert(line.uri).inserted
                else { continue }
                extensionLines.append(line)
            case "rid":
                guard let line = RIDAttribute(value) else { throw .malformed("An a=rid line cannot be read.") }
                if line.direction == layerDirection { rids[line.rid] = line }
            case "simulcast":
                guard let line = SimulcastAttribute(value) else {
                    throw .malformed(
                        "The a=simulcast line of the \(label) cannot be read or has more than "
                            + "\(SimulcastAttribute.streamsMax) streams; write it as RFC 8853 has it, "
                            + "like a=simulcast:send q;h;f."
                    )
                }
                simulcast = layerDirection == .send ? line.send : line.receive
            case "ssrc":
                guard let line = SSRCAttribute(value) else { throw .malformed("An a=ssrc line cannot be read.") }
                if allSSRCs.insert(line.ssrc).inserted { ssrcs.append(line.ssrc) }
            case "ssrc-group":
                guard groups.count < Self.ssrcsMax else { continue }
                guard let line = SSRCGroupAttribute(value) else {
                    throw .malformed("An a=ssrc-group line cannot be read.")
                }
                groups.append(line)
            case "candidate":
                // Unusable and malformed candidates are ignored (RFC 8839 §5.1, RFC 9725 §4.4).
                if candidates.count < Self.candidatesMax, let address = ICECandidateAttribute(value)?.address {
                    candidates.append(address)
                }
            default: break
            }
            guard allSSRCs.count <= Self.ssrcsMax else {
                throw .unsupported("The \(label) announces more than \(Self.ssrcsMax) SSRCs.")
            }
        }
        sortSources(groups)
        try sortLayers(simulcast, rids: rids)
    }

    /// Separates primary SSRCs from their RTX and FEC SSRCs.
    private mutating func sortSources(_ groups: [SSRCGroupAttribute]) {
        var repairing: Set<SSRC> = []
        for group in groups where group.ssrcs.count == 2 && group.semantics != "SIM" {
            if group.semantics == "FID" { rtxSSRCs[group.ssrcs[0]] = group.ssrcs[1] }
            repairing.insert(group.ssrcs[1])
            allSSRCs.formUnion(group.ssrcs)
        }
        if let layers = groups.first(where: { $0.semantics == "SIM" })?.ssrcs {
            var seen: Set<SSRC> = []
            ssrcs = layers.filter { seen.insert($0).inserted } + ssrcs.filter { !layers.contains($0) }
        }
        ssrcs.removeAll { repairing.contains($0) }
        let primary = Set(ssrcs)
        rtxSSRCs = rtxSSRCs.filter { primary.contains($0.key) }
    }

    private mutating func sortLayers(
        _ simulcast: [[SimulcastAttribute.Version]],
        rids: [RID: RIDAttribute]
    ) throws(NegotiationError) {
        var seen: Set<RID> = []
        for alternatives in simulcast {
            guard let version = alternatives.first, let attribute = rids[version.rid] else {
                throw .malformed("a=simulcast of the \(label) names a rid that has no a=rid line.")
            }
            guard seen.insert(version.rid).inserted else {
                throw .malformed("a=simulcast of the \(label) names the rid \(version.rid) twice.")
            }
            layers.append(RemoteLayer(attribute: attribute, isPaused: version.isPaused))
        }
        // The SSRCs of layers are learned from their packets: some clients' SDP does not map SSRCs to layers.
        if !layers.isEmpty { ssrcs = [] }
    }
}

extension RemoteSection {
    /// Reads the recognized formats with their feedback and RTX payload types, in the order of `m=`.
    private mutating func readCodecs(of kind: MediaKind) {
        var maps: [PayloadType: RTPMapAttribute] = [:]
        var formats: [PayloadType: [FormatParameter]] = [:]
        var feedback: [PayloadType: FeedbackTypes] = [:]
        var commonFeedback: FeedbackTypes = []
        for attribute in media.attributes {
            guard let value = attribute.value else { continue }
            switch attribute.name {
            case "rtpmap":
                guard maps[PayloadType(leading: value)] == nil, let line = RTPMapAttribute(value) else { continue }
                maps[line.payloadType] = line
            case "fmtp":
                guard formats[PayloadType(leading: value)] == nil, let line = FormatParametersAttribute(value) else {
                    continue
                }
                formats[line.payloadType] = line.parameters.map { FormatParameter(key: $0.key, value: $0.value) }
            case "rtcp-fb":
                guard let line = FeedbackAttribute(value) else { continue }
                let isOfTransport = line.feedback == FeedbackTypes.congestionControlFeedbackName
                guard let type = isOfTransport ? .congestionControlFeedback : FeedbackTypes(sdp: line.feedback) else {
                    continue
                }
                if let payloadType = line.payloadType {
                    feedback[payloadType, default: []].insert(type)
                } else {
                    commonFeedback.insert(type)
                }
            default: break
            }
        }
        listsFeedbackOnce = commonFeedback.contains(.congestionControlFeedback)
        var seen: Set<PayloadType> = []
        let order = media.formats.compactMap { UInt8($0).flatMap(PayloadType.init(rawValue:)) }
            .filter { seen.insert($0).inserted }
        var retransmissions: [PayloadType: PayloadType] = [:]
        for payloadType in order {
            guard let map = maps[payloadType], !payloadType.isMistakenForRTCP else { continue }
            if map.encodingName.lowercased() == "rtx", map.clockRate == 90_000, kind == .video {
                guard
                    let text = formats[payloadType]?.first(where: { $0.key == "apt" })?.value,
                    let associated = UInt8(text).flatMap(PayloadType.init(rawValue:)),
                    retransmissions[associated] == nil
                else { continue }
                retransmissions[associated] = payloadType
                continue
            }
            guard let name = CodecName(sdpName: map.encodingName), name.kind == kind, name.clockRate == map.clockRate
            else { continue }
            let codec = CodecParameters(
                name: name,
                payloadType: payloadType,
                clockRate: map.clockRate,
                channels: map.channels,
                format: formats[payloadType] ?? [],
                feedback: commonFeedback.union(feedback[payloadType] ?? [])
                    .intersection(.known(for: kind).union(.congestionControlFeedback))
            )
            if isForwardable(codec) { codecs.append(codec) }
        }
        for index in codecs.indices { codecs[index].rtxPayloadType = retransmissions[codecs[index].payloadType] }
        let opus = Set(codecs.lazy.filter { $0.name == .opus }.map(\.payloadType.description))
        // RED is forwardable only with Opus blocks.
        codecs.removeAll { codec in
            codec.name == .red
                && !(codec.formatValue("") ?? "-").split(separator: "/").allSatisfy { opus.contains(String($0)) }
        }
    }
}

extension Dictionary {
    /// `nil` for a `nil` key.
    fileprivate subscript(key: Key?) -> Value? { key.flatMap { self[$0] } }
}

extension PayloadType {
    /// The number at the start of an attribute value. Checking it first keeps a line that is repeated a thousand times cheap.
    fileprivate init?(leading text: String) {
        guard let number = UInt8(Substring(text.utf8.prefix { $0 != UInt8(ascii: " ") })) else { return nil }
        self.init(rawValue: number)
    }

    /// With the marker bit set, these payload types equal RTCP packet types 192…223 (RFC 5761 §4).
    var isMistakenForRTCP: Bool { (64...95).contains(rawValue) }
}

extension FeedbackTypes {
    /// The name of `congestionControlFeedback` in `a=rtcp-fb`.
    static let congestionControlFeedbackName = "ack ccfb"

    /// The feedback that the server offers for a kind of media.
    static func known(for kind: MediaKind) -> Self {
        kind == .audio ? [.transportCC] : [.nack, .pictureLoss, .fullIntraRequest, .transportCC, .remb]
    }

    /// In the order of libwebrtc.
    private static let names: [(type: Self, name: String)] = [
        (.remb, "goog-remb"), (.transportCC, "transport-cc"), (.fullIntraRequest, "ccm fir"), (.nack, "nack"),
        (.pictureLoss, "nack pli"),
    ]

    /// One type by its name in `a=rtcp-fb`; `nil` for an unsupported one.
    init?(sdp name: String) {
        guard let match = Self.names.first(where: { $0.name == name }) else { return nil }
        self = match.type
    }

    /// The names in `a=rtcp-fb`.
    var sdpNames: [String] { Self.names.compactMap { contains($0.type) ? $0.name : nil } }
}

/// The formats and extensions that both sides agreed on for a section.
struct NegotiatedFormats {
    var codecs: [CodecParameters]
    var extensionLines: [ExtensionMapAttribute]
    var extensions: HeaderExtensionMap
}

extension RemoteSection {
    /// Whether it lists RFC 8888 feedback: for `*` (RFC 8888 §6), or for each payload type, as Chromium 156 does.
    var hasCongestionControlFeedback: Bool {
        !codecs.isEmpty && codecs.allSatisfy { $0.feedback.contains(.congestionControlFeedback) }
    }

    /// Without RFC 8888 feedback.
    func removingCongestionControlFeedback() -> Self {
        var section = self
        for index in codecs.indices { section.codecs[index].feedback.remove(.congestionControlFeedback) }
        return section
    }

    /// Reduces formats and extensions to those used by media in one direction.
    ///
    /// RFC 8888 feedback is kept only for media that the local side sends, and replaces transport-wide congestion control.
    /// That needs both its extension and its feedback; either alone is dropped. REMB is kept only for media that the local
    /// side sends without either, as in libwebrtc. It is dropped for media that the local side receives, because the server
    /// never sends REMB.
    ///
    /// - Parameter usable: The extensions that the local side reads or writes.
    func negotiated(flow: MediaFlow, usable: Set<HeaderExtension>) -> NegotiatedFormats {
        var lines = extensionLines.filter { line in
            guard let known = HeaderExtension(uri: line.uri), usable.contains(known) else { return false }
            guard let direction = line.direction else { return true }
            return flow == .fromPeer ? direction.sends : direction.receives
        }
        var codecs = codecs
        let transportURI = HeaderExtension.transportSequenceNumber.uri
        let hasExtension = lines.contains { $0.uri == transportURI }
        for index in codecs.indices {
            if flow == .fromPeer { codecs[index].feedback.remove(.congestionControlFeedback) }
            let reportsBySSRC = codecs[index].feedback.contains(.congestionControlFeedback)
            if !hasExtension || reportsBySSRC { codecs[index].feedback.remove(.transportCC) }
            if flow == .fromPeer || reportsBySSRC || codecs[index].feedback.contains(.transportCC) {
                codecs[index].feedback.remove(.remb)
            }
        }
        if !codecs.contains(where: { $0.feedback.contains(.transportCC) }) {
            lines.removeAll { $0.uri == transportURI }
        }
        var extensions = HeaderExtensionMap()
        for line in lines {
            if let known = HeaderExtension(uri: line.uri) { extensions[known] = line.id }
        }
        return NegotiatedFormats(codecs: codecs, extensionLines: lines, extensions: extensions)
    }
}

extension HeaderExtension {
    /// The extensions that the server reads from a publisher's packets.
    static func published(_ kind: MediaKind) -> Set<Self> {
        switch kind {
        case .audio: [.mid, .absoluteSendTime, .transportSequenceNumber, .audioLevel]
        case .video: Set(allCases).subtracting([.audioLevel])
        }
    }

    /// The extensions of packets to viewers. A slot is one RTP stream, so it has no RIDs.
    static func watched(_ kind: MediaKind) -> Set<Self> {
        published(kind).subtracting([.rtpStreamID, .repairedRTPStreamID])
    }
}
