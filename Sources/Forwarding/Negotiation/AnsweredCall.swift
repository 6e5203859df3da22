public import MediaTypes
public import Wire

/// A call of two that was answered, for further offers of the same client: ICE restarts and changes of directions
/// (RFC 9429 §5.3.1).
///
/// The transport keeps its DTLS association, and streams keep their formats and SSRCs. Only what the first offer had is
/// negotiated: other sections are rejected, and no section gets a direction that the first offer did not have.
public struct AnsweredCall: Sendable {
    /// What the first offer and its answer negotiated for one section.
    struct Line: Sendable {
        let kind: MediaKind
        let formats: NegotiatedFormats
        /// As the client offered it.
        let direction: MediaDirection
        let rids: Set<RID>
        /// `nil` for a section in which the client receives nothing.
        let sent: SendTrackParameters?
    }
    fileprivate struct Section: Sendable {
        let remote: RemoteSection
        let line: Line
        let formats: NegotiatedFormats
        let layers: [RemoteLayer]
        /// As the client may use it from now on.
        let direction: MediaDirection
    }

    /// A further offer of the client that can be answered.
    public struct Offer: Sendable {
        fileprivate let description: RemoteDescription
        /// One for each live section; `nil` for one to reject.
        fileprivate let sections: [Section?]

        /// The client's ICE credentials. Others than before restart ICE (RFC 8839 §4.4.1.1.1).
        public var credentials: ICECredentials { description.credentials }
        /// The kinds of media that the client sends from now on.
        public var sentKinds: Set<MediaKind> { Set(kept.filter(\.direction.sends).map(\.line.kind)) }
        /// The kinds of media that the client receives from now on.
        public var receivedKinds: Set<MediaKind> { Set(kept.filter(\.direction.receives).map(\.line.kind)) }

        private var kept: [Section] { sections.compactMap(\.self) }
    }

    private let lines: [MID: Line]
    private let remote: RemoteTransport
    private let stream: String
    private let sessionID: UInt64
    private let videoBitsPerSecondMax: Int?
    /// Of the last answer's `o=` line.
    private var version: UInt64 = 1

    init(
        lines: [MID: Line],
        remote: RemoteTransport,
        stream: String,
        sessionID: UInt64,
        videoBitsPerSecondMax: Int?
    ) {
        self.lines = lines
        self.remote = remote
        self.stream = stream
        self.sessionID = sessionID
        self.videoBitsPerSecondMax = videoBitsPerSecondMax
    }

    /// Parses a further offer.
    ///
    /// - Throws: `NegotiationError` when it is malformed, has nothing of the call, or changes what cannot change.
    public func offer(parsing text: String) throws(NegotiationError) -> Offer {
        let description = try RemoteDescription(
            parsing: text,
            type: .offer,
            layerDirection: .send,
            shape: .many(closed: [])
        )
        guard Set(description.fingerprints) == Set(remote.fingerprints) else {
            throw .unsupported(
                "The offer has another a=fingerprint than the first one; a call keeps its certificate: register again for "
                    + "a new peer connection."
            )
        }
        guard description.setup == .actpass || description.localRole == remote.localRole else {
            throw .unsupported("The offer changes the DTLS role that was negotiated; offer a=setup:actpass.")
        }
        var sections: [Section?] = []
        for section in description.live { sections.append(try kept(section)) }
        guard sections.contains(where: { $0 != nil }) else {
            throw .unsupported("The offer has no m-line of the call; keep those of the first offer, with their a=mid.")
        }
        return Offer(description: description, sections: sections)
    }

    /// A section reduced to what was negotiated first; `nil` for one that the call does not have.
    private func kept(_ section: RemoteSection) throws(NegotiationError) -> Section? {
        guard let kind = section.kind, let line = lines[try section.localMID], line.kind == kind else { return nil }
        var formats = section.negotiated(flow: .fromPeer, usable: HeaderExtension.published(kind))
        formats.codecs.removeAll { codec in
            !line.formats.codecs.contains {
                ($0.payloadType, $0.name, $0.rtxPayloadType) == (codec.payloadType, codec.name, codec.rtxPayloadType)
            }
        }
        guard formats.codecs.contains(where: { $0.name != .red }) else {
            throw .unsupported(
                "The \(section.label) has no codec of the first offer with the same payload types; keep them, or register "
                    + "again."
            )
        }
        let changed = HeaderExtension.allCases.filter { formats.extensions[$0] != line.formats.extensions[$0] }
        for known in changed { formats.extensions[known] = nil }
        formats.extensionLines.removeAll { line in changed.contains { $0.uri == line.uri } }
        let direction = section.direction.limited(to: line.direction)
        let layers = direction.sends ? try section.acceptedLayers(formats) : []
        return Section(
            remote: section,
            line: line,
            formats: formats,
            layers: layers.filter { line.rids.contains($0.attribute.rid) },
            direction: direction
        )
    }

    /// - Parameter local: The server's side of the transport, with new credentials for an ICE restart.
    /// - Returns: The SDP answer.
    public mutating func answer(_ offer: Offer, local: LocalTransport) -> String {
        version &+= 1
        let call = self
        return offer.description.answer(
            local: local,
            role: remote.localRole,
            sessionID: sessionID,
            version: version,
            live: offer.sections.map { $0.map(call.answered) },
            acceptsData: false
        )
    }

    private func answered(_ section: Section) -> LocalSection {
        let (line, direction) = (section.line, section.direction)
        var answer = section.remote.answerSection(
            direction: direction.reversed,
            formats: section.formats,
            flow: .fromPeer
        )
        if direction.sends {
            answer.layers = section.layers
            if line.kind == .video, let videoBitsPerSecondMax {
                answer.bandwidths = LocalSection.bandwidths(bitsPerSecond: videoBitsPerSecondMax)
            }
        }
        if direction.receives, let sent = line.sent { answer.add(sent, stream: stream) }
        return answer
    }
}

extension LocalSection {
    /// The stream that the client receives in the section.
    mutating func add(_ track: SendTrackParameters, stream: String) {
        msid = (stream, track.kind.rawValue)
        cname = track.cname
        streams = [Stream(ssrc: track.ssrc, rtxSSRC: track.rtxSSRC)]
    }
}

extension MediaDirection {
    /// What two directions of one side have in common.
    fileprivate func limited(to other: Self) -> Self {
        switch (sends && other.sends, receives && other.receives) {
        case (true, true): .sendrecv
        case (true, false): .sendonly
        case (false, true): .recvonly
        case (false, false): .inactive
        }
    }
}
