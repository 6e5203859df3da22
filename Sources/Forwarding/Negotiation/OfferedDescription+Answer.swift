import MediaTypes
import Wire

extension OfferedDescription {
    /// Applies the answer to the outstanding offer.
    ///
    /// An m-line that the client answers `inactive` or with port 0 gets no slot, also later. If it is the client's own
    /// m-line, the server does not receive it.
    /// - Throws: `NegotiationError` when the answer is not legal, or no offer is outstanding. The state is then unchanged.
    public mutating func apply(answer text: String) throws(NegotiationError) -> Outcome {
        guard isOfferOutstanding else {
            throw .malformed("The answer belongs to no outstanding offer; answer each offer once.")
        }
        let closedLines = Set(sections.indices.filter { sections[$0].isClosed }.map(line(of:)))
        let read = try read(text, closedLines: closedLines)
        try check(read, closedLines: closedLines)
        var next = self
        let outcome = try next.apply(read)
        next.remember(read)
        self = next
        return outcome
    }

    private struct ReadAnswer {
        let answer: RemoteDescription
        /// Those of media, in the order of the offer.
        let sections: [RemoteSection]
        /// The hash of each section's text; empty when the text cannot be split and all sections were parsed.
        var digests: [Int] = []
        /// The indices of the parsed sections.
        var isRead: Set<Int> = []
    }

    /// Parses the sections whose text differs from the previous answer to the same offered m-line.
    private func read(_ text: String, closedLines: Set<Int>) throws(NegotiationError) -> ReadAnswer {
        let shape = DescriptionShape.many(closed: closedLines)
        guard let parts = SDPParts(text), parts.sections.count == line(of: sections.count),
            let head = try? SessionDescription(parsing: String(parts.session))
        else { return try readWhole(text, shape: shape) }
        let direction = head.direction
        let mediaParts = sections.indices.map { parts.sections[line(of: $0)] }
        let digests = mediaParts.map { part in
            var hasher = Hasher()
            hasher.combine(direction)
            hasher.combine(part)
            return hasher.finalize()
        }
        let isRead = Set(sections.indices.filter { sections[$0].answered?.digest != digests[$0] })
        var changed = String(parts.session)
        for index in isRead.sorted() { changed += mediaParts[index] }
        if let dataLine { changed += parts.sections[dataLine.index] }
        guard let session = try? SessionDescription(parsing: changed),
            session.media.count == isRead.count + (dataLine == nil ? 0 : 1)
        else {
            // Parsing the whole text reports the right line number.
            return try readWhole(text, shape: shape)
        }
        let data = dataLine == nil ? nil : session.media.last
        var media = session.media[..<isRead.count]
        var answered: [RemoteSection] = []
        for (index, section) in sections.enumerated() {
            if let known = section.answered, known.digest == digests[index] {
                answered.append(known.section)
            } else if let media = media.popFirst() {
                answered.append(try RemoteSection(media, sessionDirection: direction, layerDirection: .send))
            }
        }
        var all = answered
        if let data, let dataLine {
            let section = try RemoteSection(data, sessionDirection: direction, layerDirection: .send)
            all.insert(section, at: dataLine.index)
        }
        let answer = try RemoteDescription(session: head, sections: all, type: .answer, shape: shape)
        return ReadAnswer(answer: answer, sections: answered, digests: digests, isRead: isRead)
    }

    private func readWhole(_ text: String, shape: DescriptionShape) throws(NegotiationError) -> ReadAnswer {
        let answer = try RemoteDescription(parsing: text, type: .answer, layerDirection: .send, shape: shape)
        var media = answer.sections
        if let dataLine, dataLine.index < media.count { media.remove(at: dataLine.index) }
        return ReadAnswer(answer: answer, sections: media)
    }

    /// Stores the parsed answer of each m-line whose offer stays valid.
    private mutating func remember(_ read: ReadAnswer) {
        work.read += read.digests.isEmpty ? read.sections.count : read.isRead.count
        guard read.digests.count == sections.count else { return }
        for index in read.isRead where sections[index].text != nil {
            sections[index].answered = OfferedSection.Answered(
                digest: read.digests[index],
                section: read.sections[index].condensed()
            )
        }
    }

    private func check(_ read: ReadAnswer, closedLines: Set<Int>) throws(NegotiationError) {
        let answer = read.answer
        guard answer.sections.count == line(of: sections.count) else {
            throw .malformed(
                "The answer has \(answer.sections.count) m-lines to the offer's \(line(of: sections.count)); answer "
                    + "each, in the same order."
            )
        }
        if let dataLine {
            let answered = answer.sections[dataLine.index]
            guard answered.media.type == "application", answered.isRejected || answered.mid == dataLine.mid else {
                throw .malformed(
                    "m-line \(dataLine.index) of the answer is not the data channels' a=mid:\(dataLine.mid)."
                )
            }
        }
        for (offset, (section, answered)) in zip(sections, read.sections).enumerated() {
            let index = line(of: offset)
            guard answered.kind == section.kind else {
                throw .malformed("m-line \(index) of the answer is not \(section.kind.rawValue), as it was offered.")
            }
            guard answered.isRejected || closedLines.contains(index) || answered.mid == section.mid else {
                throw .malformed("m-line \(index) of the answer does not have the offer's a=mid:\(section.mid).")
            }
        }
        guard let remote, remote.credentials != answer.credentials else { return }
        throw .unsupported(
            "The answer changes the ICE credentials without an ICE restart; connect again for a new transport."
        )
    }

    private mutating func apply(_ read: ReadAnswer) throws(NegotiationError) -> Outcome {
        let answer = read.answer
        let isFirst = remote == nil
        var added: [NegotiatedSlot] = []
        var removed = closed
        var received: [ReceiveTrackParameters] = []
        var unsupported: [UnsupportedTrack] = []
        for (index, answered) in read.sections.enumerated() {
            switch sections[index].use {
            case .sentByClient(isRefused: false):
                if answered.isRejected {
                    sections[index].use = .sentByClient(isRefused: true)
                } else if isFirst, let track = try clientTrack(in: sections[index], answered) {
                    received.append(track)
                }
            case .empty:
                if answered.isRejected { sections[index].use = .free }
            case .playing(let placement):
                let hadSlot = sections[index].hasSlot
                if let slot = accept(placement, at: index, answered) {
                    added.append(slot)
                } else if hadSlot, case .declined = sections[index].use {
                    removed.append(sections[index].mid)
                } else if !hadSlot, case .declined = sections[index].use, let codec = placement.codecs.first?.name,
                    answered.isRejected || answered.direction.receives
                {
                    unsupported.append(
                        UnsupportedTrack(
                            streamID: placement.key.streamID,
                            mid: sections[index].mid,
                            codec: codec
                        )
                    )
                }
            case .declined(let key, isRefused: false):
                if answered.isRejected { sections[index].use = .declined(key, isRefused: true) }
            case .parked:
                if answered.isRejected { sections[index].use = .free }
            case .closing: sections[index].use = .free
            case .sentByClient(isRefused: true), .declined(_, isRefused: true), .free: break
            }
        }
        closed = []
        isOfferOutstanding = false
        if isFirst {
            receive = received
            // Both ends have the same port.
            data = answer.data.map(\.parameters).flatMap { $0.port == DataTransportParameters.portDefault ? $0 : nil }
            if dataLine == nil { data = nil }
        }
        let remote = self.remote ?? answer.remoteTransport
        self.remote = remote
        return Outcome(
            remote: remote,
            receive: receive,
            added: added,
            removed: removed,
            unsupported: unsupported,
            data: data
        )
    }

    /// - Returns: The new slot, when this answer accepts the track.
    private mutating func accept(
        _ placement: OfferedSection.Placement,
        at index: Int,
        _ answered: RemoteSection
    ) -> NegotiatedSlot? {
        let section = sections[index]
        guard !answered.isRejected, answered.direction.receives else {
            sections[index].use = .declined(placement.key, isRefused: answered.isRejected)
            return nil
        }
        guard !section.hasSlot else { return nil }
        let formats = agreed(answered, offered: placement.codecs, flow: .toPeer)
        guard formats.codecs.contains(where: { $0.name != .red }) else {
            sections[index].use = .declined(placement.key, isRefused: false)
            return nil
        }
        sections[index].hasSlot = true
        let usesRTX = formats.codecs.contains { $0.rtxPayloadType != nil }
        return NegotiatedSlot(
            streamID: placement.key.streamID,
            track: placement.key.track.mid,
            parameters: SendTrackParameters(
                mid: section.mid,
                kind: section.kind,
                codecs: formats.codecs,
                extensions: formats.extensions,
                ssrc: placement.ssrc,
                rtxSSRC: usesRTX ? placement.rtxSSRC : nil,
                cname: placement.cname
            )
        )
    }

    /// The track that the client sends in its own m-line; `nil` when it sends nothing.
    private func clientTrack(
        in section: OfferedSection,
        _ answered: RemoteSection
    ) throws(NegotiationError) -> ReceiveTrackParameters? {
        guard answered.direction.sends, let codec = clientCodecs[section.kind] else { return nil }
        let formats = agreed(answered, offered: [codec], flow: .fromPeer)
        guard !formats.codecs.isEmpty else {
            throw .unsupported(
                "The answer accepts no codec of the \(answered.label); \(codec.name.rawValue) was offered as payload "
                    + "type \(codec.payloadType)."
            )
        }
        let sent = Set(answered.layers.map(\.attribute.rid))
        let rids = section.kind == .video ? clientMedia.layers.map(\.rid).filter(sent.contains) : []
        guard rids.isEmpty || formats.extensions[.mid] != nil && formats.extensions[.rtpStreamID] != nil else {
            throw .unsupported(
                "The \(answered.label) of the answer sends simulcast without the header extensions "
                    + "\(HeaderExtension.mid.uri) and \(HeaderExtension.rtpStreamID.uri); layers cannot be told apart "
                    + "without them."
            )
        }
        var track = ReceiveTrackParameters(
            mid: section.mid,
            kind: section.kind,
            codecs: formats.codecs,
            extensions: formats.extensions,
            rids: rids,
            ssrcs: rids.isEmpty ? answered.ssrcs : [],
            rtxSSRCs: rids.isEmpty ? answered.rtxSSRCs : [:]
        )
        track.layersAscend = !rids.isEmpty
        track.canPauseLayers = rids.count > 1
        return track
    }

    /// The negotiated formats of an m-line: only offered formats and extensions, with the offered identifiers.
    private func agreed(
        _ answered: RemoteSection,
        offered: [CodecParameters],
        flow: MediaFlow
    ) -> NegotiatedFormats {
        var answered = answered
        answered.codecs = answered.codecs.compactMap { codec in
            guard let match = offered.first(where: { $0.payloadType == codec.payloadType }), match.name == codec.name
            else { return nil }
            var codec = codec
            if codec.rtxPayloadType != match.rtxPayloadType { codec.rtxPayloadType = nil }
            codec.feedback.formIntersection(match.feedback)
            return codec
        }
        answered.extensionLines.removeAll { line in
            HeaderExtension(uri: line.uri).map { $0.offeredID != line.id } ?? true
        }
        let usable =
            flow == .fromPeer
            ? HeaderExtension.published(answered.kind ?? .audio) : HeaderExtension.watched(answered.kind ?? .audio)
        return answered.negotiated(flow: flow, usable: usable)
    }
}
