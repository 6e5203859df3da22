import Base
import MediaTypes
import Wire

extension OfferedDescription {
    /// Whether a new offer would differ from the previous one in its remote tracks. O(tracks).
    public func wouldChange(_ remote: [RemoteStream]) -> Bool {
        guard version > 0 else { return true }
        var rest = wantedTracks(remote).byName
        for section in sections {
            guard let key = section.key else { continue }
            guard let track = rest.removeValue(forKey: key.name), track == key else { return true }
        }
        return rest.values.contains { !withoutFormats.contains($0) && hasRoom(for: $0.track.kind) }
    }

    /// Makes the next offer, for the current remote streams.
    ///
    /// - Precondition: No offer is outstanding.
    /// - Parameters:
    ///   - remote: All streams for the client. Of several tracks with equal stream and MID, the first counts.
    ///   - generator: Chooses SSRCs and names.
    /// - Returns: The SDP.
    public mutating func makeOffer(
        _ remote: [RemoteStream],
        using generator: inout some RandomNumberGenerator
    ) -> String {
        precondition(!isOfferOutstanding, "one offer at a time")
        let wanted = wantedTracks(remote)
        release(allBut: wanted.byName)
        place(wanted.order, using: &generator)
        isOfferOutstanding = true
        version += 1
        return describe()
    }

    /// The tracks to offer, in order, each once. Formats are compared, not hashed: an unchanged track has the same array.
    private func wantedTracks(
        _ remote: [RemoteStream]
    ) -> (order: [OfferedSection.TrackKey], byName: [OfferedSection.TrackName: OfferedSection.TrackKey]) {
        var order: [OfferedSection.TrackKey] = []
        var byName: [OfferedSection.TrackName: OfferedSection.TrackKey] = [:]
        guard receivesMedia else { return (order, byName) }
        for stream in remote {
            for track in stream.tracks where kinds.contains(track.kind) {
                let key = OfferedSection.TrackKey(streamID: stream.id, track: track)
                guard byName[key.name] == nil else { continue }
                byName[key.name] = key
                order.append(key)
            }
        }
        return (order, byName)
    }

    private func hasRoom(for kind: MediaKind) -> Bool {
        line(of: sections.count) < Self.sectionsMax || sections[head...].contains { $0.kind == kind && $0.isVacant }
    }

    private mutating func release(allBut wanted: [OfferedSection.TrackName: OfferedSection.TrackKey]) {
        let head = head
        for index in sections.indices {
            guard let key = sections[index].key, wanted[key.name] != key else { continue }
            let isHead = index == head
            switch sections[index].use {
            case .playing:
                if sections[index].hasSlot { closed.append(sections[index].mid) }
                sections[index].use = isHead ? .parked : .closing
            case .declined(_, isRefused: false): sections[index].use = isHead ? .parked : .closing
            case .declined(_, isRefused: true): sections[index].use = .free
            case .sentByClient, .empty, .parked, .closing, .free: break
            }
        }
    }

    private mutating func place(
        _ wanted: [OfferedSection.TrackKey],
        using generator: inout some RandomNumberGenerator
    ) {
        withoutFormats = []
        let placed = Set(sections.compactMap { $0.key?.name })
        var cnames: [String: String] = [:]
        for case .playing(let placement) in sections.lazy.map(\.use) {
            cnames[placement.key.streamID] = placement.cname
        }
        let taken = Set(receive.flatMap { $0.ssrcs + $0.rtxSSRCs.values })
        var vacancies = Vacancies(sections[head...])
        for key in wanted where !placed.contains(key.name) {
            let kind = key.track.kind
            var codecs: [CodecParameters] = []
            // Opus first: RED refers to its payload type.
            for format in key.track.formats where format.name.kind == kind && format.name != .red {
                guard codecs.count < Self.formatsPerTrackMax else { break }
                if let numbered = payloadTypes.number(format), !codecs.contains(numbered) { codecs.append(numbered) }
            }
            guard !codecs.isEmpty else {
                withoutFormats.insert(key)
                continue
            }
            if let red = key.track.formats.first(where: { $0.name == .red && kind == .audio }) {
                codecs += [payloadTypes.number(red)].compactMap { $0 }
            }
            let vacancy = vacancies.take(kind)
            guard vacancy != nil || line(of: sections.count) < Self.sectionsMax else { continue }
            let cname = cnames[key.streamID] ?? makeCanonicalName(using: &generator)
            cnames[key.streamID] = cname
            let use = OfferedSection.Use.playing(
                OfferedSection.Placement(
                    key: key,
                    codecs: codecs,
                    ssrc: sources.next(except: taken),
                    rtxSSRC: kind == .video ? sources.next(except: taken) : nil,
                    cname: cname,
                    trackID: makeTrackIdentifier(using: &generator)
                )
            )
            guard let vacancy else {
                sections.append(OfferedSection(kind: kind, mid: mids.next(kind), use: use))
                continue
            }
            // An m-line that was never used keeps its MID.
            if case .free = sections[vacancy].use { sections[vacancy].mid = mids.next(kind) }
            sections[vacancy].use = use
        }
    }

    /// The m-lines free for new tracks, in order. Only those after the BUNDLE-tagged m-line: an earlier one would become the
    /// tagged one.
    private struct Vacancies {
        private var indices: [MediaKind: ArraySlice<Int>]

        init(_ sections: ArraySlice<OfferedSection>) {
            let vacant = sections.indices.filter { sections[$0].isVacant }
            indices = Dictionary(grouping: vacant) { sections[$0].kind }.mapValues { $0[...] }
        }

        mutating func take(_ kind: MediaKind) -> Int? { indices[kind]?.popFirst() }
    }
}
