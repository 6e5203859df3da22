import Wire

extension OfferedSession {
    /// Whether a new offer would say anything new about what others send. O(tracks).
    public func wouldChange(_ remote: [RemoteStream]) -> Bool {
        guard version > 0 else { return true }
        let wanted = tracks(of: remote)
        let isWanted = Set(wanted)
        var placed: Set<OfferedSection.TrackKey> = []
        for section in sections {
            guard let key = section.key else { continue }
            guard isWanted.contains(key) else { return true }
            placed.insert(key)
        }
        return wanted.contains { key in
            !placed.contains(key) && !withoutFormats.contains(key) && hasRoom(for: key.track.kind)
        }
    }

    /// The next description: the lines as they were, changed for what others send now.
    ///
    /// No offer may be outstanding.
    /// - Parameters:
    ///   - remote: Everything that the client is to receive. Of several streams with one `id` and tracks with one name
    ///     the first counts.
    ///   - generator: Chooses SSRCs and names.
    /// - Returns: The SDP.
    public mutating func makeOffer(
        _ remote: [RemoteStream],
        using generator: inout some RandomNumberGenerator
    ) -> String {
        precondition(!isOfferOutstanding, "one offer at a time")
        let wanted = tracks(of: remote)
        release(allBut: Set(wanted))
        place(wanted, using: &generator)
        isOfferOutstanding = true
        version += 1
        return description
    }

    /// The tracks to be offered, in order, each once.
    private func tracks(of remote: [RemoteStream]) -> [OfferedSection.TrackKey] {
        guard receivesMedia else { return [] }
        var names: Set<[String]> = []
        return remote.flatMap { stream in
            stream.tracks.compactMap { track in
                guard kinds.contains(track.kind), names.insert([stream.id, track.mid.value]).inserted else {
                    return nil
                }
                return OfferedSection.TrackKey(streamID: stream.id, track: track)
            }
        }
    }

    private func hasRoom(for kind: MediaKind) -> Bool {
        sections.count < Self.sectionsMax || sections[head...].contains { $0.kind == kind && $0.isVacant }
    }

    private mutating func release(allBut wanted: Set<OfferedSection.TrackKey>) {
        let head = head
        for index in sections.indices {
            guard let key = sections[index].key, !wanted.contains(key) else { continue }
            let isHead = index == head
            switch sections[index].use {
            case .playing(let placement):
                if placement.hasSlot { closed.append(sections[index].mid) }
                sections[index].use = isHead ? .parked : .closing
            case .declined(_, isRefused: false): sections[index].use = isHead ? .parked : .closing
            case .declined(_, isRefused: true): sections[index].use = .free
            case .own, .empty, .parked, .closing, .free: break
            }
        }
    }

    private mutating func place(
        _ wanted: [OfferedSection.TrackKey],
        using generator: inout some RandomNumberGenerator
    ) {
        withoutFormats = []
        let placed = Set(sections.compactMap(\.key))
        var cnames: [String: String] = [:]
        for case .playing(let placement) in sections.lazy.map(\.use) {
            cnames[placement.key.streamID] = placement.cname
        }
        let taken = Set(receive.flatMap { $0.ssrcs + $0.rtxSSRCs.values })
        var vacancies = Vacancies(sections[head...])
        for key in wanted where !placed.contains(key) {
            let kind = key.track.kind
            var codecs: [CodecParameters] = []
            // Opus first, because redundant audio is of it.
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
            guard vacancy != nil || sections.count < Self.sectionsMax else { continue }
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
            // A line that nobody had yet keeps its name.
            if case .free = sections[vacancy].use { sections[vacancy].mid = mids.next(kind) }
            sections[vacancy].use = use
        }
    }

    /// The lines that may be given away, first to last. None comes before the head of the bundle, whose place it would
    /// take.
    private struct Vacancies {
        private var indices: [MediaKind: ArraySlice<Int>]

        init(_ sections: ArraySlice<OfferedSection>) {
            let vacant = sections.indices.filter { sections[$0].isVacant }
            indices = Dictionary(grouping: vacant) { sections[$0].kind }.mapValues { $0[...] }
        }

        mutating func take(_ kind: MediaKind) -> Int? { indices[kind]?.popFirst() }
    }
}
