package import ChannelTypes
package import MediaTypes
package import Wire

/// A track that a participant publishes.
package struct Publication: Hashable, Sendable, Codable {
    package let mid: MID
    /// The name by which viewers' slots know the track. It stays when a new connection takes the sender's place, and is
    /// the first connection's MID.
    package internal(set) var track: MID
    package let kind: MediaKind
    /// The negotiated simulcast layers in the order of the description; empty without simulcast.
    package let rids: [RID]
    /// The formats that may arrive, the preferred one first.
    package let formats: [CodecParameters]
    /// The codec that arrives; `nil` before the first packet.
    package internal(set) var codec: CodecName?
    /// Whether media arrives at present.
    package internal(set) var isActive = false

    package init(mid: MID, kind: MediaKind, rids: [RID] = [], formats: [CodecParameters] = []) {
        self.mid = mid
        track = mid
        self.kind = kind
        self.rids = rids
        self.formats = formats
    }
    /// Whether several simulcast layers were negotiated.
    package var isSimulcast: Bool { rids.count > 1 }

    /// The names of three layers, the lowest first: those that the server gives, and those that publishers often choose.
    private static let layerNames = [["r0", "r1", "r2"], ["q", "h", "f"]]

    /// The layers' numbers in ascending order if all have names of one list of ``layerNames``; `nil` for other names,
    /// whose order is unknown.
    private var layerNumbers: [Int]? {
        for names in Self.layerNames {
            let numbers = rids.compactMap { names.firstIndex(of: $0.value) }
            if numbers.count == rids.count { return numbers.sorted() }
        }
        return nil
    }

    /// Converts a layer that was requested by its number to a rank among the negotiated layers: of `r0` and `r2`,
    /// number 1 is rank 0 and number 2 is rank 1.
    func ranked(_ layer: LayerChoice) -> LayerChoice {
        guard case .level(let number) = layer, let numbers = layerNumbers else { return layer }
        return .level(max(numbers.count { $0 <= number } - 1, 0))
    }
}

/// A live sender that a participant may receive.
package struct VisibleStream: Hashable, Sendable {
    package let sender: ParticipantID
    /// In the order of the sender's description.
    package let tracks: [Publication]
}

extension [Publication] {
    /// The kinds of which media arrives at present.
    var flowingKinds: Set<MediaKind> { Set(filter(\.isActive).map(\.kind)) }

    /// These tracks with the names of earlier ones, by kind and position.
    func continuing(_ earlier: [Publication]) -> [Publication] {
        var rest = earlier
        var taken = Set(earlier.map(\.track))
        return map { publication in
            var publication = publication
            if let index = rest.firstIndex(where: { $0.kind == publication.kind }) {
                publication.track = rest.remove(at: index).track
            } else if taken.contains(publication.mid),
                let free = (0...taken.count).lazy
                    .compactMap({ MID("\(publication.kind.rawValue)\($0)") }).first(where: { !taken.contains($0) })
            {
                publication.track = free
            }
            taken.insert(publication.track)
            return publication
        }
    }
}
