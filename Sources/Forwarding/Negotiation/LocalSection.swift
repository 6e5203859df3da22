import MediaTypes
internal import Wire

/// One media section of a local offer or answer, before serialization.
struct LocalSection {
    /// The SSRCs of a stream that the local side sends in the section.
    struct Stream {
        var ssrc: SSRC
        var rtxSSRC: SSRC?
    }
    var kind: MediaKind
    /// `nil` only in the answer to a section without one.
    var mid: MID?
    var protocolName = "UDP/TLS/RTP/SAVPF"
    var direction: MediaDirection
    /// With the `a=fmtp` parameters to write.
    var codecs: [CodecParameters]
    var extensionLines: [ExtensionMapAttribute] = []
    /// Whether RFC 8888 feedback is written for `*`, and not for each payload type.
    var listsFeedbackOnce = true
    var allowsMixedExtensions = false
    var usesReducedSizeRTCP = true
    /// MediaStream and track identifiers; `nil` for a section that sends nothing.
    var msid: (stream: String, track: String)?
    var cname = ""
    var streams: [Stream] = []
    /// Simulcast layers, with the direction to write.
    var layers: [RemoteLayer] = []
    /// Values of `b=`, such as `AS:2500`.
    var bandwidths: [String] = []
}

/// The transport lines that all sections of a description share.
struct LocalTransportLines {
    var transport: LocalTransport
    var setup: SetupRole
    /// Whether the local side is an ICE lite agent: the server, not a client.
    var isLite: Bool

    /// `c=` and the port: the default candidate (RFC 8839 §4.2.1.2), or its placeholder without candidates.
    var defaultAddress: (connection: String, port: UInt16) {
        guard let first = transport.candidates.first else { return ("IN IP4 0.0.0.0", 9) }
        return ("IN \(first.ip.isV4 ? "IP4" : "IP6") \(first.ip)", first.port)
    }

    /// `a=candidate` and `a=end-of-candidates`: a lite agent gathers no further candidates. UDP is first, because some clients
    /// look at the first candidate only.
    var candidateAttributes: [SDPAttribute] {
        let udp = transport.candidates.prefix(RemoteSection.candidatesMax).enumerated().map { index, address in
            ICECandidateAttribute(hostAddress: address, preference: UInt16(truncatingIfNeeded: 65_535 - index))
        }
        let tcp = transport.tcpCandidates.prefix(RemoteSection.candidatesMax).enumerated().map { index, address in
            ICECandidateAttribute(passiveTCPAddress: address, preference: UInt16(truncatingIfNeeded: 8_191 - index))
        }
        return (udp + tcp).map { SDPAttribute("candidate", $0.text) } + [SDPAttribute("end-of-candidates")]
    }

    var credentialAttributes: [SDPAttribute] {
        [
            SDPAttribute("ice-ufrag", transport.credentials.usernameFragment),
            SDPAttribute("ice-pwd", transport.credentials.password),
        ]
    }

    /// The session-level ICE lines, which are equal in an SDP and in its trickle fragments (RFC 9725 §4.4.3).
    var sessionAttributes: [SDPAttribute] {
        (isLite ? [SDPAttribute("ice-lite")] : []) + [SDPAttribute("ice-options", "trickle ice2")]
    }
}

extension LocalSection {
    /// The values of `b=`, because browsers read either one: kbit/s (RFC 8866 §5.8) or bit/s (RFC 3890 §6.2).
    static func bandwidths(bitsPerSecond: Int) -> [String] {
        ["AS:\(max(bitsPerSecond / 1_000, 1))", "TIAS:\(bitsPerSecond)"]
    }

    /// The section as SDP lines.
    ///
    /// Every section has credentials, fingerprint and `a=setup`, as browsers write them. Only the BUNDLE-tagged section has
    /// candidates.
    func media(_ lines: LocalTransportLines, isBundleHead: Bool) -> MediaDescription {
        let address = lines.defaultAddress
        var attributes = [mid.map { SDPAttribute("mid", $0.value) }].compactMap { $0 }
        attributes += lines.credentialAttributes
        attributes += [
            SDPAttribute("fingerprint", lines.transport.fingerprint.description),
            SDPAttribute("setup", lines.setup.rawValue),
            SDPAttribute(direction.rawValue),
            SDPAttribute("rtcp-mux"),
            SDPAttribute("rtcp-mux-only"),
        ]
        if usesReducedSizeRTCP { attributes.append(SDPAttribute("rtcp-rsize")) }
        if allowsMixedExtensions { attributes.append(SDPAttribute("extmap-allow-mixed")) }
        attributes += extensionLines.map { SDPAttribute("extmap", $0.text) }
        if let msid { attributes.append(SDPAttribute("msid", "\(msid.stream) \(msid.track)")) }
        attributes += codecs.flatMap(Self.attributes(of:))
        if codecs.contains(where: { $0.feedback.contains(.congestionControlFeedback) }) {
            let formats = codecs.flatMap { [$0.payloadType, $0.rtxPayloadType].compactMap { $0?.description } }
            attributes += (listsFeedbackOnce ? ["*"] : formats).map {
                SDPAttribute("rtcp-fb", "\($0) \(FeedbackTypes.congestionControlFeedbackName)")
            }
        }
        attributes += layerAttributes + streamAttributes
        if isBundleHead { attributes += lines.candidateAttributes }
        return MediaDescription(
            type: kind.rawValue,
            port: address.port,
            protocolName: protocolName,
            formats: codecs.flatMap { [$0.payloadType, $0.rtxPayloadType].compactMap { $0?.description } },
            connection: address.connection,
            bandwidths: bandwidths,
            attributes: attributes
        )
    }

    private static func attributes(of codec: CodecParameters) -> [SDPAttribute] {
        let map = RTPMapAttribute(
            payloadType: codec.payloadType,
            encodingName: codec.name.rawValue,
            clockRate: codec.clockRate,
            channels: codec.channels
        )
        var attributes = [SDPAttribute("rtpmap", map.text)]
        attributes += codec.feedback.sdpNames.map { SDPAttribute("rtcp-fb", "\(codec.payloadType) \($0)") }
        if !codec.format.isEmpty {
            let line = FormatParametersAttribute(
                payloadType: codec.payloadType,
                parameters: codec.format.map { .init(key: $0.key, value: $0.value) }
            )
            attributes.append(SDPAttribute("fmtp", line.text))
        }
        if let rtx = codec.rtxPayloadType {
            attributes.append(SDPAttribute("rtpmap", "\(rtx) rtx/\(codec.clockRate)"))
            attributes.append(SDPAttribute("fmtp", "\(rtx) apt=\(codec.payloadType)"))
        }
        return attributes
    }

    private var layerAttributes: [SDPAttribute] {
        guard let direction = layers.first?.attribute.direction else { return [] }
        let streams = layers.map { [SimulcastAttribute.Version(rid: $0.attribute.rid, isPaused: $0.isPaused)] }
        let line =
            direction == .send ? SimulcastAttribute(send: streams) : SimulcastAttribute(receive: streams)
        return layers.map { SDPAttribute("rid", $0.attribute.text) } + [SDPAttribute("simulcast", line.text)]
    }

    private var streamAttributes: [SDPAttribute] {
        var attributes: [SDPAttribute] = []
        for stream in streams {
            if let rtx = stream.rtxSSRC {
                let group = SSRCGroupAttribute(semantics: "FID", ssrcs: [stream.ssrc, rtx])
                attributes.append(SDPAttribute("ssrc-group", group.text))
            }
            for ssrc in [stream.ssrc, stream.rtxSSRC].compactMap({ $0 }) {
                attributes.append(SDPAttribute("ssrc", SSRCAttribute(ssrc: ssrc, name: "cname", value: cname).text))
                guard let msid else { continue }
                let value = "\(msid.stream) \(msid.track)"
                attributes.append(SDPAttribute("ssrc", SSRCAttribute(ssrc: ssrc, name: "msid", value: value).text))
            }
        }
        return attributes
    }
}

/// A local session description.
struct LocalDescription {
    /// A section in use, or a rejected one, which keeps its place (RFC 9429 §5.3.1).
    enum Section {
        case live(LocalSection)
        case data(LocalDataSection)
        case rejected(MediaDescription, mid: MID?)

        /// `nil` for a rejected one, and for one without.
        var liveMID: MID? {
            switch self {
            case .live(let local): local.mid
            case .data(let data): data.mid
            case .rejected: nil
            }
        }

        func media(_ lines: LocalTransportLines, isHead: Bool) -> MediaDescription {
            switch self {
            case .live(let local): return local.media(lines, isBundleHead: isHead)
            case .data(let data): return data.media(lines, isBundleHead: isHead)
            case .rejected(let offered, let mid):
                return MediaDescription(
                    type: offered.type,
                    port: 0,
                    protocolName: offered.protocolName,
                    formats: offered.formats,
                    connection: "IN IP4 0.0.0.0",
                    attributes: [mid.map { SDPAttribute("mid", $0.value) }, SDPAttribute("inactive")].compactMap { $0 }
                )
            }
        }
    }
    var sessionID: UInt64
    /// The version in the `o=` line; increases with each description of one session.
    var version: UInt64 = 1
    var lines: LocalTransportLines
    /// The BUNDLE group, its tagged section first; `nil` to write none.
    var bundle: [MID]?
    var allowsMixedExtensions: Bool
    var sections: [Section]

    /// The SDP text.
    func serialized() -> String {
        var attributes: [SDPAttribute] = []
        if let bundle {
            attributes.append(SDPAttribute("group", GroupAttribute(semantics: "BUNDLE", mids: bundle).text))
        }
        if allowsMixedExtensions { attributes.append(SDPAttribute("extmap-allow-mixed")) }
        attributes.append(SDPAttribute("msid-semantic", "WMS *"))
        attributes += lines.sessionAttributes
        var hasHead = false
        let media = sections.map { section in
            if case .rejected = section { return section.media(lines, isHead: false) }
            let isHead = bundle.map { $0.first == section.liveMID } ?? !hasHead
            hasHead = true
            return section.media(lines, isHead: isHead)
        }
        return SessionDescription(
            origin: SDPOrigin(sessionID: sessionID, version: version),
            attributes: attributes,
            media: media
        ).serialized()
    }
}
