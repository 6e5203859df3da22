import MediaTypes
internal import Wire

/// One m-section of ours, before it is written. Answers, and offers in either role, are made of these.
struct LocalSection {
    /// A stream that we send in the section.
    struct Stream {
        var ssrc: SSRC
        var rtxSSRC: SSRC?
    }
    var kind: MediaKind
    /// `nil` only when answering a peer that gave none.
    var mid: MID?
    var protocolName = "UDP/TLS/RTP/SAVPF"
    var direction: MediaDirection
    /// With the `format` to be written.
    var codecs: [CodecParameters]
    var extensionLines: [ExtensionMapAttribute] = []
    var allowsMixedExtensions = false
    var usesReducedSizeRTCP = true
    /// Media stream and track identifiers; `nil` when we send nothing.
    var msid: (stream: String, track: String)?
    var cname = ""
    var streams: [Stream] = []
    /// Layers with the direction that is to be written.
    var layers: [RemoteLayer] = []
    /// Values of `b=`, such as `AS:2500`.
    var bandwidths: [String] = []
}

/// What the sections of one description share.
struct LocalTransportLines {
    var transport: LocalTransport
    var setup: SetupRole
    /// Whether we are an ICE lite agent: a server, not a client.
    var isLite: Bool

    /// `c=` and the port: the default candidate (RFC 8839 §4.2.1.2), or the placeholder without one.
    var defaultAddress: (connection: String, port: UInt16) {
        guard let first = transport.candidates.first else { return ("IN IP4 0.0.0.0", 9) }
        return ("IN \(first.ip.isV4 ? "IP4" : "IP6") \(first.ip)", first.port)
    }

    /// `a=candidate` and `a=end-of-candidates`. A lite agent never has more.
    var candidateAttributes: [SDPAttribute] {
        transport.candidates.prefix(RemoteSection.candidatesMax).enumerated().map { index, address in
            SDPAttribute(
                "candidate",
                ICECandidateAttribute(hostAddress: address, preference: UInt16(truncatingIfNeeded: 65_535 - index)).text
            )
        } + [SDPAttribute("end-of-candidates")]
    }

    var credentialAttributes: [SDPAttribute] {
        [
            SDPAttribute("ice-ufrag", transport.credentials.usernameFragment),
            SDPAttribute("ice-pwd", transport.credentials.password),
        ]
    }

    /// Session lines about ICE; an SDP and the fragments about it must agree on them (RFC 9725 §4.4.3).
    var sessionAttributes: [SDPAttribute] {
        (isLite ? [SDPAttribute("ice-lite")] : []) + [SDPAttribute("ice-options", "trickle ice2")]
    }
}

extension LocalSection {
    /// The values of `b=` for a rate: the older form in kbit/s (RFC 8866 §5.8), and that in bit/s (RFC 3890).
    static func bandwidths(bitsPerSecond: Int) -> [String] {
        ["AS:\(max(bitsPerSecond / 1_000, 1))", "TIAS:\(bitsPerSecond)"]
    }

    /// The section's lines.
    ///
    /// Credentials, fingerprint and role stand in every section, as browsers write them; candidates only in the one
    /// that heads the bundle.
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

/// A whole description of ours.
struct LocalDescription {
    /// A section in use, or one that is refused and keeps its place (RFC 9429 §5.3.1).
    enum Section {
        case live(LocalSection)
        case rejected(MediaDescription, mid: MID?)

        /// The section's lines.
        func media(_ lines: LocalTransportLines, isHead: Bool) -> MediaDescription {
            switch self {
            case .live(let local): return local.media(lines, isBundleHead: isHead)
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
    /// Of the `o=` line; grows with each description of one session.
    var version: UInt64 = 1
    var lines: LocalTransportLines
    /// The BUNDLE group, its head first; `nil` to write none.
    var bundle: [MID]?
    var allowsMixedExtensions: Bool
    var sections: [Section]

    /// The description as text.
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
            guard case .live(let local) = section else { return section.media(lines, isHead: false) }
            let isHead = bundle.map { $0.first == local.mid } ?? !hasHead
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
