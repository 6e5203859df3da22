import MediaTypes
internal import Wire

/// A simulcast layer of a peer's section, with what its `a=rid` line says.
struct RemoteLayer: Hashable {
    var attribute: RIDAttribute
    var isPaused: Bool
}

/// One m-section of a peer's description, read.
struct RemoteSection {
    /// More announced sources than any sender has: eight layers with retransmission and error correction each.
    static let ssrcsMax = 64
    static let candidatesMax = 64
    static let fingerprintsMax = 8

    private(set) var media: MediaDescription
    /// `nil` for a section that is neither audio nor video.
    let kind: MediaKind?
    /// `nil` when the line is missing.
    let mid: MID?
    let direction: MediaDirection
    /// Refused by its author: port 0 and not `a=bundle-only`.
    let isRejected: Bool
    /// What the server recognises, in the author's order, not yet reduced by `negotiate`.
    var codecs: [CodecParameters] = []
    var extensionLines: [ExtensionMapAttribute] = []
    /// Layers that the author sends, or asks for, by `layerDirection`.
    var layers: [RemoteLayer] = []
    /// Primary sources in order.
    var ssrcs: [SSRC] = []
    var rtxSSRCs: [SSRC: SSRC] = [:]
    /// All sources, to find collisions.
    var allSSRCs: Set<SSRC> = []
    var candidates: [TransportAddress] = []

    var attributes: [SDPAttribute] { media.attributes }

    /// - Parameters:
    ///   - sessionDirection: The session's direction, which a section without one of its own inherits.
    ///   - layerDirection: `send` to read the layers that the author sends.
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
        codecs = Self.codecs(of: media, kind: kind)
        try readStreams(layerDirection: layerDirection)
    }

    /// What checks of a whole description need of the section, without what was read of its formats.
    func condensed() -> Self {
        var condensed = self
        condensed.media.formats = []
        condensed.media.bandwidths = []
        condensed.media.attributes.removeAll { !Self.transportAttributes.contains($0.name) }
        for index in codecs.indices {
            condensed.codecs[index].format = []
        }
        for (index, line) in extensionLines.enumerated() {
            // The constant takes no memory.
            if let known = HeaderExtension(uri: line.uri) { condensed.extensionLines[index].uri = known.uri }
        }
        return condensed
    }

    /// What `RemoteDescription` reads of a section itself.
    private static let transportAttributes: Set<String> = [
        "ice-ufrag", "ice-pwd", "fingerprint", "setup", "rtcp-mux", "rtcp-mux-only",
    ]

    /// How to name the section in a sentence.
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
                // What cannot be used, or read, is skipped (RFC 8839 §5.1, RFC 9725 §4.4).
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

    /// Tells primary sources from those that repair them.
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
        // The sources of layers are learned from their packets: lines of several clients do not say which is which.
        if !layers.isEmpty { ssrcs = [] }
    }
}

extension RemoteSection {
    /// The recognised formats of a section, each with its feedback and retransmission type, in the order of `m=`.
    private static func codecs(of media: MediaDescription, kind: MediaKind) -> [CodecParameters] {
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
                guard let line = FeedbackAttribute(value), let type = FeedbackTypes(sdp: line.feedback) else {
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
        var seen: Set<PayloadType> = []
        let order = media.formats.compactMap { UInt8($0).flatMap(PayloadType.init(rawValue:)) }
            .filter { seen.insert($0).inserted }
        var codecs: [CodecParameters] = []
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
                feedback: commonFeedback.union(feedback[payloadType] ?? []).intersection(.known(for: kind))
            )
            if isForwardable(codec) { codecs.append(codec) }
        }
        for index in codecs.indices { codecs[index].rtxPayloadType = retransmissions[codecs[index].payloadType] }
        let opus = Set(codecs.lazy.filter { $0.name == .opus }.map(\.payloadType.description))
        // Redundant blocks of anything but Opus could not be forwarded one by one.
        codecs.removeAll { codec in
            codec.name == .red
                && !(codec.formatValue("") ?? "-").split(separator: "/").allSatisfy { opus.contains(String($0)) }
        }
        return codecs
    }
}

extension Dictionary {
    /// `nil` for no key, as for one that is not there.
    fileprivate subscript(key: Key?) -> Value? { key.flatMap { self[$0] } }
}

extension PayloadType {
    /// The number that a line begins with. Looking at it first keeps a line that is there a thousand times cheap.
    fileprivate init?(leading text: String) {
        guard let number = UInt8(text.prefix { $0 != " " }) else { return nil }
        self.init(rawValue: number)
    }

    /// With the marker bit set these look like RTCP's packet types 192…223 (RFC 5761 §4).
    var isMistakenForRTCP: Bool { (64...95).contains(rawValue) }
}

extension FeedbackTypes {
    /// What the server speaks about a kind of media.
    static func known(for kind: MediaKind) -> Self {
        kind == .audio ? [.transportCC] : [.nack, .pictureLoss, .fullIntraRequest, .transportCC, .remb]
    }

    /// In the order in which libwebrtc writes them.
    private static let names: [(type: Self, name: String)] = [
        (.remb, "goog-remb"), (.transportCC, "transport-cc"), (.fullIntraRequest, "ccm fir"), (.nack, "nack"),
        (.pictureLoss, "nack pli"),
    ]

    /// One type by its name in `a=rtcp-fb`; `nil` when the server does not speak it.
    init?(sdp name: String) {
        guard let match = Self.names.first(where: { $0.name == name }) else { return nil }
        self = match.type
    }

    /// The names to write.
    var sdpNames: [String] { Self.names.compactMap { contains($0.type) ? $0.name : nil } }
}

/// What both sides agreed on for a section.
struct NegotiatedFormats {
    var codecs: [CodecParameters]
    var extensionLines: [ExtensionMapAttribute]
    var extensions: HeaderExtensionMap
}

extension RemoteSection {
    /// Reduces formats and extensions to what is used when media flows in one way.
    ///
    /// Transport-wide congestion control needs both its extension and its feedback, so either alone is dropped. REMB is
    /// kept only for what we send, where transport-wide control is not agreed: libwebrtc prefers the latter too. For what
    /// we receive it is dropped, because we never send it.
    ///
    /// - Parameter usable: The extensions that we read or write.
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
            if !hasExtension { codecs[index].feedback.remove(.transportCC) }
            if flow == .fromPeer || codecs[index].feedback.contains(.transportCC) {
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
    /// What a publisher's packets may carry for the server to read.
    static func published(_ kind: MediaKind) -> Set<Self> {
        switch kind {
        case .audio: [.mid, .absoluteSendTime, .transportSequenceNumber, .audioLevel]
        case .video: Set(allCases).subtracting([.audioLevel])
        }
    }

    /// What the server's packets may carry. A slot is one stream: it has no layers to name.
    static func watched(_ kind: MediaKind) -> Set<Self> {
        published(kind).subtracting([.rtpStreamID, .repairedRTPStreamID])
    }
}
