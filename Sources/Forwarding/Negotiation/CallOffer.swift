public import MediaTypes
public import Wire

/// An offer from one side of a call of two, which the server answers in place of the other side: at most one audio and one
/// video section, each for both directions or one of them.
///
/// The answer accepts every format that the server can forward. It mirrors the direction of each section, so that the
/// client gets what the other side sends in the section in which it sends itself.
public struct CallOffer: Sendable {
    struct Section {
        let parsed: ParsedOffer.Section
        /// The accepted simulcast layers; empty for a section that sends nothing.
        let layers: [RemoteLayer]

        var direction: MediaDirection { parsed.remote.direction }
    }

    private let description: RemoteDescription
    private let sections: [Section]

    /// - Throws: `NegotiationError` when the offer is malformed, one of its sections cannot be accepted, or none is for any
    ///   direction.
    public init(parsing text: String) throws(NegotiationError) {
        description = try RemoteDescription(parsing: text, type: .offer, layerDirection: .send)
        var sections: [Section] = []
        for section in description.live {
            guard let kind = section.kind else { continue }
            // Feedback by RFC 8888 and REMB would count for both directions, so neither is answered.
            let formats = section.negotiated(flow: .fromPeer, usable: HeaderExtension.published(kind))
            try ParsedOffer.checkCodecs(section, formats)
            let parsed = ParsedOffer.Section(remote: section, kind: kind, mid: try section.localMID, formats: formats)
            let layers = section.direction.sends ? try section.acceptedLayers(formats) : []
            sections.append(Section(parsed: parsed, layers: layers))
        }
        guard sections.contains(where: { $0.direction != .inactive }) else {
            throw .malformed("The offer has no media in any direction; offer audio or video sendrecv.")
        }
        self.sections = sections
    }

    /// The kinds of media that the client sends.
    public var sentKinds: [MediaKind] { sections.filter(\.direction.sends).map(\.parsed.kind) }
    /// The kinds of media that the client receives.
    public var receivedKinds: [MediaKind] { sections.filter(\.direction.receives).map(\.parsed.kind) }
    /// The kind of each section in use.
    public var kinds: [MediaKind] { sections.map(\.parsed.kind) }
    /// The MID of each section in use.
    public var mids: [MID] { sections.map(\.parsed.mid) }

    /// - Parameters:
    ///   - local: The server's side of the transport.
    ///   - streamID: The MediaStream that the other side's tracks belong to. Characters that `a=msid` cannot carry are
    ///     replaced by `_`, and at most 64 are used (RFC 8830 §2).
    ///   - sessionID: The session identifier of the answer's `o=` line.
    ///   - videoBitsPerSecondMax: The `b=` limit of the client's video; `nil` for none.
    ///   - generator: Chooses SSRCs and the canonical name.
    /// - Returns: The answer, and the call for further offers of the client.
    public func answer(
        local: LocalTransport,
        streamID: String,
        sessionID: UInt64,
        videoBitsPerSecondMax: Int? = nil,
        using generator: inout some RandomNumberGenerator
    ) -> (first: AnsweredOffer, call: AnsweredCall) {
        let stream = mediaStreamIdentifier(streamID)
        let cname = makeCanonicalName(using: &generator)
        var sources = SSRCChooser(taken: Set(description.live.flatMap(\.allSSRCs)))
        var receive: [ReceiveTrackParameters] = []
        var send: [SendTrackParameters] = []
        var answers: [LocalSection] = []
        for section in sections {
            let (parsed, direction) = (section.parsed, section.direction)
            var answer = parsed.remote.answerSection(
                direction: direction.reversed,
                formats: parsed.formats,
                flow: .fromPeer
            )
            if direction.sends {
                answer.layers = section.layers
                if parsed.kind == .video, let videoBitsPerSecondMax {
                    answer.bandwidths = LocalSection.bandwidths(bitsPerSecond: videoBitsPerSecondMax)
                }
                receive.append(section.receivedTrack)
            }
            if direction.receives {
                let track = section.sentTrack(cname: cname, &sources, using: &generator)
                answer.add(track, stream: stream)
                send.append(track)
            }
            answers.append(answer)
        }
        var lines: [MID: AnsweredCall.Line] = [:]
        for section in sections {
            let mid = section.parsed.mid
            lines[mid] = AnsweredCall.Line(
                kind: section.parsed.kind,
                formats: section.parsed.formats,
                direction: section.direction,
                rids: Set(section.layers.map(\.attribute.rid)),
                sent: send.first { $0.mid == mid }
            )
        }
        let call = AnsweredCall(
            lines: lines,
            remote: description.remoteTransport,
            stream: stream,
            sessionID: sessionID,
            videoBitsPerSecondMax: videoBitsPerSecondMax
        )
        let first = AnsweredOffer(
            answer: description.answer(local: local, sessionID: sessionID, live: answers, acceptsData: false),
            remote: description.remoteTransport,
            receive: receive,
            send: send,
            remoteCandidates: description.candidates
        )
        return (first, call)
    }
}

extension CallOffer.Section {
    /// What the client sends.
    fileprivate var receivedTrack: ReceiveTrackParameters {
        ReceiveTrackParameters(
            mid: parsed.mid,
            kind: parsed.kind,
            codecs: parsed.formats.codecs,
            extensions: parsed.formats.extensions,
            rids: layers.map(\.attribute.rid),
            ssrcs: parsed.remote.ssrcs,
            rtxSSRCs: parsed.remote.rtxSSRCs
        )
    }

    /// What the client receives: one stream without layers.
    fileprivate func sentTrack(
        cname: String,
        _ sources: inout SSRCChooser,
        using generator: inout some RandomNumberGenerator
    ) -> SendTrackParameters {
        var extensions = parsed.formats.extensions
        extensions[.rtpStreamID] = nil
        extensions[.repairedRTPStreamID] = nil
        let codecs = parsed.formats.codecs
        let usesRTX = codecs.contains { $0.rtxPayloadType != nil }
        return SendTrackParameters(
            mid: parsed.mid,
            kind: parsed.kind,
            codecs: codecs,
            extensions: extensions,
            ssrc: sources.next(using: &generator),
            rtxSSRC: usesRTX ? sources.next(using: &generator) : nil,
            cname: cname
        )
    }
}
