import Base
public import MediaTypes
public import Wire

/// Answers the offers of a server, as a Sora client does: the first offer and all re-offers. For load generators and
/// simulations. It accepts what a browser accepts, and refuses what a browser refuses.
public struct ClientAnswerer: Sendable {
    /// A track that another client publishes.
    public struct IncomingTrack: Hashable, Sendable {
        /// The MediaStream identifier in `a=msid`; `nil` without one.
        public let streamID: String?
        public let parameters: ReceiveTrackParameters
    }

    /// The result of answering an offer.
    public struct AppliedOffer: Hashable, Sendable {
        /// The SDP to send back.
        public let answer: String
        public let remote: RemoteTransport
        /// The server's addresses, in the order of the offer.
        public let remoteCandidates: [TransportAddress]
        /// The tracks to send, as the first offer negotiated them.
        public let send: [ClientSendTrack]
        /// The tracks that this offer adds.
        public let added: [IncomingTrack]
        /// The m-lines whose tracks this offer removes.
        public let removed: [MID]
        /// The MIDs of all m-lines in use, the BUNDLE-tagged one first.
        public let mids: [MID]
        /// The data channels, if they were offered.
        public let data: DataTransportParameters?
    }

    private enum Use: Sendable {
        case sending(ClientSendTrack)
        case receiving
        case idle
        case closed

        var isReceiving: Bool {
            if case .receiving = self { true } else { false }
        }
    }
    private struct Line: Sendable {
        var kind: MediaKind?
        var mid: MID?
        var use: Use
    }

    private let transport: LocalTransport
    private let codecs: Set<CodecName>
    private let sessionID: UInt64
    private let cname: String
    private let stream: String
    private var version: UInt64 = 0
    private var lines: [Line] = []
    private var chooser = SSRCChooser()

    /// - Parameters:
    ///   - transport: The client's side of the transport.
    ///   - codecs: The codecs that the client can send and receive.
    ///   - generator: Chooses names and the session identifier of the `o=` line.
    public init(
        transport: LocalTransport,
        codecs: Set<CodecName> = Set(CodecName.allCases),
        using generator: inout some RandomNumberGenerator
    ) {
        self.transport = transport
        self.codecs = codecs
        sessionID = UInt64.random(in: 1...UInt64.max, using: &generator)
        cname = makeCanonicalName(using: &generator)
        stream = makeCanonicalName(using: &generator)
    }

    /// Answers an offer.
    ///
    /// - Parameters:
    ///   - sending: The m-lines to send in; used for the first offer only.
    ///   - generator: Chooses SSRCs.
    /// - Throws: `NegotiationError` when the offer is malformed or contradicts the previous one. The state is then
    ///   unchanged.
    public mutating func answer(
        offer text: String,
        sending: Set<MID> = [],
        using generator: inout some RandomNumberGenerator
    ) throws(NegotiationError) -> AppliedOffer {
        let offer = try RemoteDescription(
            parsing: text,
            type: .offer,
            layerDirection: .recv,
            shape: .many(closed: []),
            isReaderLite: false
        )
        guard offer.sections.count >= lines.count else {
            throw .malformed("The offer has \(offer.sections.count) m-lines after one of \(lines.count).")
        }
        var next = self
        let applied = try next.apply(offer, sending: version == 0 ? sending : [], using: &generator)
        self = next
        return applied
    }

    private mutating func apply(
        _ offer: RemoteDescription,
        sending: Set<MID>,
        using generator: inout some RandomNumberGenerator
    ) throws(NegotiationError) -> AppliedOffer {
        var answers: [LocalDescription.Section] = []
        var added: [IncomingTrack] = []
        var removed: [MID] = []
        for (index, section) in offer.sections.enumerated() {
            if index == lines.count { lines.append(Line(kind: section.kind, mid: section.mid, use: .closed)) }
            try check(section, at: index)
            let line = lines[index]
            if let data = offer.data, data.index == index {
                answers.append(.data(LocalDataSection(mid: data.mid, port: data.parameters.port)))
                continue
            }
            let reply = reply(to: section, line, sending: sending, using: &generator)
            if case .receiving = line.use, let mid = line.mid, !reply.use.isReceiving { removed.append(mid) }
            if let track = reply.track, !line.use.isReceiving { added.append(track) }
            lines[index] = Line(kind: section.kind, mid: section.mid, use: reply.use)
            answers.append(reply.section)
        }
        version += 1
        let accepted = Set(answers.compactMap(\.liveMID))
        let bundle = (offer.bundle ?? []).filter(accepted.contains)
        let isServer = offer.setup == .active
        let text = LocalDescription(
            sessionID: sessionID,
            version: version,
            lines: LocalTransportLines(transport: transport, setup: isServer ? .passive : .active, isLite: false),
            bundle: bundle,
            allowsMixedExtensions: offer.session.attributes.has("extmap-allow-mixed"),
            sections: answers
        ).serialized()
        return AppliedOffer(
            answer: text,
            remote: RemoteTransport(
                credentials: offer.credentials,
                fingerprints: offer.fingerprints,
                localRole: isServer ? .server : .client
            ),
            remoteCandidates: offer.candidates,
            send: lines.compactMap { if case .sending(let track) = $0.use { track } else { nil } },
            added: added,
            removed: removed,
            mids: bundle,
            data: offer.data?.parameters
        )
    }

    /// An m-line may change its MID only after both sides closed it (RFC 9429 §5.2.2).
    private func check(_ section: RemoteSection, at index: Int) throws(NegotiationError) {
        let line = lines[index]
        if case .closed = line.use { return }
        guard section.mid == line.mid, section.kind == line.kind else {
            throw .malformed("m-line \(index) of the offer changes its MID or kind, but is still in use.")
        }
    }

    /// - Returns: The m-line's new use, its answer, and the track that it receives.
    private mutating func reply(
        to section: RemoteSection,
        _ line: Line,
        sending: Set<MID>,
        using generator: inout some RandomNumberGenerator
    ) -> (use: Use, section: LocalDescription.Section, track: IncomingTrack?) {
        guard let kind = section.kind, let mid = section.mid, !section.isRejected else {
            return (.closed, .rejected(section.media, mid: section.mid), nil)
        }
        var known = section
        known.codecs.removeAll { !codecs.contains($0.name) }
        guard known.codecs.contains(where: { $0.name != .red }) else {
            return (.closed, .rejected(section.media, mid: section.mid), nil)
        }
        var sent: ClientSendTrack?
        if case .sending(let track) = line.use { sent = track }
        if sent != nil || sending.contains(mid), section.direction.receives {
            let formats = known.negotiated(flow: .toPeer, usable: HeaderExtension.published(kind))
            let track = sent ?? sendTrack(mid, kind, formats, section.layers, using: &generator)
            return (.sending(track), .live(sendingAnswer(known, formats, track)), nil)
        }
        let receives = section.direction.sends
        let formats = known.negotiated(flow: .fromPeer, usable: HeaderExtension.watched(kind))
        let answer = known.answerSection(direction: receives ? .recvonly : .inactive, formats: formats, flow: .fromPeer)
        guard receives else { return (.idle, .live(answer), nil) }
        let track = ReceiveTrackParameters(
            mid: mid,
            kind: kind,
            codecs: formats.codecs,
            extensions: formats.extensions,
            ssrcs: section.ssrcs,
            rtxSSRCs: section.rtxSSRCs
        )
        let name = section.attributes.value(of: "msid")?.split(separator: " ").first.map(String.init)
        return (.receiving, .live(answer), IncomingTrack(streamID: name, parameters: track))
    }

    private mutating func sendTrack(
        _ mid: MID,
        _ kind: MediaKind,
        _ formats: NegotiatedFormats,
        _ layers: [RemoteLayer],
        using generator: inout some RandomNumberGenerator
    ) -> ClientSendTrack {
        let usesRTX = formats.codecs.contains { $0.rtxPayloadType != nil }
        let rids: [RID?] = layers.isEmpty ? [nil] : layers.filter { !$0.isPaused }.map(\.attribute.rid)
        return ClientSendTrack(
            mid: mid,
            kind: kind,
            codecs: formats.codecs,
            extensions: formats.extensions,
            encodings: rids.map { rid in
                ClientEncoding(
                    rid: rid,
                    ssrc: chooser.next(using: &generator),
                    rtxSSRC: usesRTX ? chooser.next(using: &generator) : nil
                )
            },
            cname: cname
        )
    }

    private func sendingAnswer(
        _ section: RemoteSection,
        _ formats: NegotiatedFormats,
        _ track: ClientSendTrack
    ) -> LocalSection {
        var answer = section.answerSection(direction: .sendonly, formats: formats, flow: .toPeer)
        answer.msid = (stream, track.kind.rawValue)
        answer.cname = cname
        answer.layers = section.layers.map { layer in
            var layer = layer
            layer.attribute.direction = .send
            return layer
        }
        // Browsers signal no SSRCs for simulcast layers.
        if answer.layers.isEmpty {
            answer.streams = track.encodings.map { LocalSection.Stream(ssrc: $0.ssrc, rtxSSRC: $0.rtxSSRC) }
        }
        return answer
    }
}

extension ClientAnswer {
    /// The start parameters of a client that answers the server's offer.
    public init(_ offer: ClientAnswerer.AppliedOffer) {
        self.init(
            remote: offer.remote,
            remoteCandidates: offer.remoteCandidates,
            send: offer.send,
            receive: offer.added.map(\.parameters),
            mids: offer.mids,
            data: offer.data
        )
    }
}
