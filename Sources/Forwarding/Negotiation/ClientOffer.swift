import Base
public import MediaTypes
public import Wire

extension CodecParameters {
    /// A format as browsers offer it, with the payload types that Chromium uses. Video has an RTX format.
    public static func standard(_ name: CodecName) -> Self {
        let numbers: (payload: UInt8, rtx: UInt8?)
        let format: [(String, String)]
        switch name {
        case .opus: (numbers, format) = ((111, nil), [("minptime", "10"), ("useinbandfec", "1")])
        case .red: (numbers, format) = ((63, nil), [("", "111/111")])
        case .vp8: (numbers, format) = ((96, 97), [])
        case .vp9: (numbers, format) = ((98, 99), [("profile-id", "0")])
        case .h264:
            (numbers, format) = (
                (106, 107),
                [("level-asymmetry-allowed", "1"), ("packetization-mode", "1"), ("profile-level-id", "42e01f")]
            )
        case .h265:
            (numbers, format) = (
                (49, 50), [("level-id", "93"), ("profile-id", "1"), ("tier-flag", "0"), ("tx-mode", "SRST")]
            )
        case .av1: (numbers, format) = ((45, 46), [("level-idx", "5"), ("profile", "0"), ("tier", "0")])
        }
        return Self(
            name: name,
            payloadType: PayloadType(wire: numbers.payload),
            rtxPayloadType: numbers.rtx.map { PayloadType(wire: $0) },
            format: format.map { FormatParameter(key: $0.0, value: $0.1) },
            feedback: .known(for: name.kind)
        )
    }
}

/// One RTP stream that a client sends in a section: the whole track, or one simulcast layer.
public struct ClientEncoding: Hashable, Sendable {
    /// `nil` without simulcast.
    public var rid: RID?
    public var ssrc: SSRC
    /// Present for video.
    public var rtxSSRC: SSRC?
}

/// A negotiated track that a client sends.
public struct ClientSendTrack: Hashable, Sendable {
    public var mid: MID
    public var kind: MediaKind
    /// The accepted formats in the order of the answer; the client sends the first one.
    public var codecs: [CodecParameters]
    public var extensions: HeaderExtensionMap
    /// The accepted encodings.
    public var encodings: [ClientEncoding]
    public var cname: String
}

/// A client's offer for WHIP or WHEP, and the parser of its answer. For load generators and simulations: it offers and
/// accepts what a browser does.
public struct ClientOffer: Sendable {
    /// The SDP offer.
    public let text: String
    private let direction: MediaDirection
    private let sections: [LocalSection]
    private let encodings: [[ClientEncoding]]
    private let data: LocalDataSection?

    /// An offer to publish: a `sendonly` section for each kind that has codecs.
    ///
    /// - Parameters:
    ///   - transport: The client's side of the transport.
    ///   - audio: Formats in order of preference; empty for no audio.
    ///   - video: Formats in order of preference; empty for no video.
    ///   - rids: Simulcast layers of video, lowest first; empty without simulcast. At most eight, each once.
    ///   - hasData: Whether to offer data channels.
    ///   - generator: Chooses SSRCs, names and the session identifier.
    public static func publish(
        transport: LocalTransport,
        audio: [CodecParameters] = [.standard(.opus)],
        video: [CodecParameters] = [.standard(.vp8)],
        rids: [RID] = [],
        hasData: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) -> Self {
        precondition(rids.count <= SimulcastAttribute.streamsMax && Set(rids).count == rids.count, "rids are distinct")
        var chooser = SSRCChooser()
        let cname = makeCanonicalName(using: &generator)
        let stream = makeCanonicalName(using: &generator)
        var sections: [LocalSection] = []
        var encodings: [[ClientEncoding]] = []
        for (kind, codecs) in [(MediaKind.audio, audio), (.video, video)] where !codecs.isEmpty {
            let usesRTX = codecs.contains { $0.rtxPayloadType != nil }
            let layers: [RID?] = kind == .audio || rids.isEmpty ? [nil] : rids
            let streams = layers.map { rid in
                ClientEncoding(
                    rid: rid,
                    ssrc: chooser.next(using: &generator),
                    rtxSSRC: usesRTX ? chooser.next(using: &generator) : nil
                )
            }
            var section = Self.section(kind, codecs: codecs, direction: .sendonly, index: sections.count)
            section.msid = (stream, kind.rawValue)
            section.cname = cname
            section.layers = streams.compactMap { encoding in
                encoding.rid.map { RemoteLayer(attribute: RIDAttribute(rid: $0, direction: .send), isPaused: false) }
            }
            // Browsers signal no SSRCs for simulcast layers.
            if section.layers.isEmpty {
                section.streams = streams.map { LocalSection.Stream(ssrc: $0.ssrc, rtxSSRC: $0.rtxSSRC) }
            }
            sections.append(section)
            encodings.append(streams)
        }
        return Self(
            transport: transport,
            direction: .sendonly,
            sections: sections,
            encodings: encodings,
            hasData: hasData,
            using: &generator
        )
    }

    /// An offer to watch: a `recvonly` section for each kind that has codecs.
    public static func watch(
        transport: LocalTransport,
        audio: [CodecParameters] = [.standard(.opus), .standard(.red)],
        video: [CodecParameters] = [
            .standard(.vp8), .standard(.vp9), .standard(.h264), .standard(.av1), .standard(.h265),
        ],
        hasData: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) -> Self {
        var sections: [LocalSection] = []
        for (kind, codecs) in [(MediaKind.audio, audio), (.video, video)] where !codecs.isEmpty {
            sections.append(Self.section(kind, codecs: codecs, direction: .recvonly, index: sections.count))
        }
        return Self(
            transport: transport,
            direction: .recvonly,
            sections: sections,
            encodings: sections.map { _ in [] },
            hasData: hasData,
            using: &generator
        )
    }

    private init(
        transport: LocalTransport,
        direction: MediaDirection,
        sections: [LocalSection],
        encodings: [[ClientEncoding]],
        hasData: Bool,
        using generator: inout some RandomNumberGenerator
    ) {
        precondition(!sections.isEmpty, "an offer has audio or video")
        self.direction = direction
        self.sections = sections
        self.encodings = encodings
        data = hasData ? MID("\(sections.count)").map { LocalDataSection(mid: $0) } : nil
        text =
            LocalDescription(
                sessionID: UInt64.random(in: 1...UInt64.max, using: &generator),
                lines: LocalTransportLines(transport: transport, setup: .actpass, isLite: false),
                bundle: sections.compactMap(\.mid) + [data?.mid].compactMap { $0 },
                allowsMixedExtensions: true,
                sections: sections.map { .live($0) } + [data.map { .data($0) }].compactMap { $0 }
            ).serialized()
    }

    private static func section(
        _ kind: MediaKind,
        codecs: [CodecParameters],
        direction: MediaDirection,
        index: Int
    ) -> LocalSection {
        let usable = direction.sends ? HeaderExtension.published(kind) : HeaderExtension.watched(kind)
        let lines = HeaderExtension.allCases.compactMap { known -> ExtensionMapAttribute? in
            guard usable.contains(known), let id = HeaderExtensionID(rawValue: known.rawValue + 1) else { return nil }
            return ExtensionMapAttribute(id: id, uri: known.uri)
        }
        return LocalSection(
            kind: kind,
            mid: MID("\(index)"),
            direction: direction,
            codecs: codecs,
            extensionLines: lines,
            allowsMixedExtensions: true
        )
    }
}

/// The parsed answer to a ``ClientOffer``.
public struct ClientAnswer: Hashable, Sendable {
    public let remote: RemoteTransport
    /// The server's addresses, in the order of the answer.
    public let remoteCandidates: [TransportAddress]
    /// The tracks to send, for a publisher; in the order of the offer.
    public let send: [ClientSendTrack]
    /// The tracks to receive, for a viewer; in the order of the offer.
    public let receive: [ReceiveTrackParameters]
    /// The MIDs of all live sections, the BUNDLE-tagged one first.
    public let mids: [MID]
    /// `nil` without data channels.
    public let data: DataTransportParameters?
}

extension ClientOffer {
    /// Parses the answer and checks it against this offer.
    ///
    /// - Throws: `NegotiationError` when the answer is not legal, or rejects a section.
    public func parse(answer text: String) throws(NegotiationError) -> ClientAnswer {
        let remote = try RemoteDescription(
            parsing: text,
            type: .answer,
            layerDirection: direction.sends ? .recv : .send
        )
        guard remote.sections.count == sections.count + (data == nil ? 0 : 1) else {
            throw .malformed("The answer has \(remote.sections.count) m-lines to the offer's \(sections.count).")
        }
        var send: [ClientSendTrack] = []
        var receive: [ReceiveTrackParameters] = []
        for (index, (offered, answered)) in zip(sections, remote.sections).enumerated() {
            guard let mid = offered.mid, answered.mid == mid, answered.kind == offered.kind else {
                throw .malformed("m-line \(index) of the answer does not have the offer's kind and a=mid.")
            }
            guard !answered.isRejected else { throw .unsupported("The answer refuses the \(answered.label).") }
            guard answered.direction == direction.reversed else {
                throw .malformed(
                    "The answer has the \(answered.label) \(answered.direction.rawValue), not "
                        + "\(direction.reversed.rawValue)."
                )
            }
            let formats = answered.negotiated(
                flow: direction.sends ? .toPeer : .fromPeer,
                usable: direction.sends
                    ? HeaderExtension.published(offered.kind) : HeaderExtension.watched(offered.kind)
            )
            try Self.check(answered, formats, against: offered)
            if direction.sends {
                send.append(
                    ClientSendTrack(
                        mid: mid,
                        kind: offered.kind,
                        codecs: formats.codecs,
                        extensions: formats.extensions,
                        encodings: try accepted(encodings[index], by: answered),
                        cname: offered.cname
                    )
                )
            } else {
                receive.append(
                    ReceiveTrackParameters(
                        mid: mid,
                        kind: offered.kind,
                        codecs: formats.codecs,
                        extensions: formats.extensions,
                        rids: answered.layers.map(\.attribute.rid),
                        ssrcs: answered.ssrcs,
                        rtxSSRCs: answered.rtxSSRCs
                    )
                )
            }
        }
        return ClientAnswer(
            remote: remote.remoteTransport,
            remoteCandidates: remote.candidates,
            send: send,
            receive: receive,
            mids: remote.bundle ?? remote.live.compactMap(\.mid),
            data: remote.data?.parameters
        )
    }

    /// An answer keeps the offer's payload types and extension identifiers, and adds none (RFC 3264 §6.1, RFC 8285 §6).
    private static func check(
        _ answered: RemoteSection,
        _ formats: NegotiatedFormats,
        against offered: LocalSection
    ) throws(NegotiationError) {
        guard !formats.codecs.isEmpty else {
            throw .unsupported("The answer accepts no codec of the \(answered.label).")
        }
        for codec in formats.codecs {
            guard
                offered.codecs.contains(where: {
                    $0.payloadType == codec.payloadType && matches($0, codec)
                        && (codec.rtxPayloadType == nil || $0.rtxPayloadType == codec.rtxPayloadType)
                })
            else {
                throw .malformed("The answer gives payload type \(codec.payloadType) a meaning that was not offered.")
            }
        }
        for line in formats.extensionLines
        where !offered.extensionLines.contains(where: { $0.id == line.id && $0.uri == line.uri }) {
            throw .malformed("The answer gives extension id \(line.id) a meaning that was not offered.")
        }
    }

    /// The encodings that the server accepts: without simulcast in the answer, only the first (RFC 8853 §5.3.2).
    private func accepted(
        _ offered: [ClientEncoding],
        by answered: RemoteSection
    ) throws(NegotiationError) -> [ClientEncoding] {
        let usesRTX = answered.codecs.contains { $0.rtxPayloadType != nil }
        let usable = offered.map { encoding in
            var encoding = encoding
            if !usesRTX { encoding.rtxSSRC = nil }
            if answered.layers.isEmpty { encoding.rid = nil }
            return encoding
        }
        guard !answered.layers.isEmpty else { return Array(usable.prefix(1)) }
        var encodings: [ClientEncoding] = []
        for layer in answered.layers {
            guard let encoding = usable.first(where: { $0.rid == layer.attribute.rid }) else {
                throw .malformed("The answer asks for the rid \(layer.attribute.rid), which was not offered.")
            }
            encodings.append(encoding)
        }
        return encodings
    }
}
