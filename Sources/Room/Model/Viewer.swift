import MediaTypes
import Wire

/// The receiving side of a participant: its slots, and the layers that it asked for.
struct Viewer: Sendable, Codable {
    /// The state kept for one sender that has slots of its own here.
    struct Sender: Sendable, Codable {
        var slots: [Slot] = []
        /// The layer that was requested of this sender; `nil` for the layer of all.
        var layer: LayerChoice?
        var spotlight: SpotlightLayers?

        var isUnused: Bool { slots.isEmpty && layer == nil && spotlight == nil }
    }
    struct SpotlightLayers: Hashable, Sendable, Codable {
        var focus: LayerChoice
        var unfocus: LayerChoice
    }
    /// A sender's codec that this viewer cannot decode.
    struct RefusedCodec: Hashable, Sendable, Codable {
        var sender: ParticipantID
        var codec: CodecName
    }
    let id: ParticipantID
    let peer: PeerID
    let location: MediaLocation
    let following: Following
    var isActive = false
    /// Whether it is connected and gets notifications.
    var receivesNotifications = false
    var filters: FilterList { didSet { verdicts = [:] } }
    /// The verdict of ``filters`` on each sender, once it was needed.
    private var verdicts: [ParticipantID: FilterVerdict] = [:]
    /// Codecs that its first description refused, until it can be told: at most as many as there are m-lines.
    var refusedCodecs: [RefusedCodec] = []
    private var layer: LayerChoice
    /// `nil` for one that joined without spotlight.
    private let spotlightJoined: SpotlightLayers?
    private var spotlight: SpotlightLayers?
    /// The slots that play the followed publisher, by kind and position.
    private var slots: [Slot] = []
    private(set) var senders: [ParticipantID: Sender] = [:]
    private var senderOfSlot: [MID: ParticipantID] = [:]

    init(_ request: JoinRequest, as place: ParticipantPlace, filters: FilterList) {
        id = place.participant
        peer = place.peer
        location = place.location
        following = request.following
        self.filters = filters
        layer = request.layer
        spotlightJoined = request.spotlight.map { SpotlightLayers(focus: $0.focus, unfocus: $0.unfocus) }
        spotlight = spotlightJoined
    }

    var usesSpotlight: Bool { spotlightJoined != nil }

    /// The slots of the followed publisher in their order, then those of single senders by their MIDs.
    var allSlots: [Slot] { slots + senders.values.flatMap(\.slots).sorted { $0.mid.value < $1.mid.value } }

    /// The senders that it has slots of.
    var slotSenders: Set<ParticipantID> { Set(senderOfSlot.values) }

    /// The slots of single senders that filters block.
    var blocked: [(sender: ParticipantID, kind: MediaKind)] {
        senders.sorted { $0.key.precedes($1.key) }.flatMap { sender, state in
            state.slots.filter(\.isBlocked).map { (sender, $0.kind) }
        }
    }
}

// MARK: - Slots that come and go

extension Viewer {
    /// Sets the slots of the followed publisher, in the order of the description.
    mutating func adopt(_ slots: [Slot]) { self.slots = slots }

    /// Makes a slot for one track of one sender. Nothing happens when there is one of this MID.
    mutating func add(_ slot: Slot, track: MID, of sender: ParticipantID) {
        guard senderOfSlot.updateValue(sender, forKey: slot.mid) == nil else { return }
        var slot = slot
        slot.track = track
        senders[sender, default: Sender()].slots.append(slot)
    }

    /// Nothing happens when there is none.
    mutating func removeSlot(_ mid: MID) {
        guard let sender = senderOfSlot.removeValue(forKey: mid) else { return }
        senders[sender]?.slots.removeAll { $0.mid == mid }
        dropIfUnused(sender)
    }

    /// Forgets the requests about a sender that left. Its slots stay until they are removed.
    mutating func forget(_ sender: ParticipantID) {
        verdicts[sender] = nil
        guard senders[sender] != nil else { return }
        senders[sender]?.layer = nil
        senders[sender]?.spotlight = nil
        dropIfUnused(sender)
    }

    private mutating func dropIfUnused(_ sender: ParticipantID) {
        if senders[sender]?.isUnused == true { senders[sender] = nil }
    }
}

// MARK: - Requested layers

extension Viewer {
    /// - Parameter sender: `nil` for every sender that nothing else is asked of.
    mutating func ask(for layer: LayerChoice, of sender: ParticipantID?) {
        guard let sender else {
            self.layer = layer
            return
        }
        senders[sender, default: Sender()].layer = layer
    }

    /// - Parameters:
    ///   - layers: `nil` for what it joined with.
    ///   - sender: `nil` for every sender that nothing else is asked of.
    mutating func ask(forSpotlight layers: SpotlightLayers?, of sender: ParticipantID?) {
        guard let sender else {
            spotlight = layers ?? spotlightJoined
            return
        }
        if let layers {
            senders[sender, default: Sender()].spotlight = layers
        } else {
            senders[sender]?.spotlight = nil
            dropIfUnused(sender)
        }
    }

    /// The layer that it should get of a sender's track.
    private func wish(_ kind: MediaKind, of source: Source) -> LayerChoice {
        let sender = senders[source.id]
        if let layers = sender?.spotlight ?? spotlight {
            switch kind {
            case .audio: return source.isFocused ? .richest : .nothing
            case .video: return source.isFocused ? layers.focus : layers.unfocus
            }
        }
        return kind == .audio ? .richest : sender?.layer ?? layer
    }
}

// MARK: - Sources of slots

extension Viewer {
    /// Sets the source of one sender's slots, and adds a connection for each slot that changed. Returns how many slots and
    /// rules were visited.
    ///
    /// - Parameter wasAsked: whether another layer was requested.
    mutating func point(
        at source: Source?,
        of sender: ParticipantID,
        wasAsked: Bool = false,
        into effects: inout [ChannelModel.Effect]
    ) -> Int {
        guard isActive, let slots = senders[sender]?.slots else { return 0 }
        var looked = slots.count
        let verdict = verdict(on: source, looked: &looked)
        for (index, slot) in slots.enumerated() {
            let publication = source?.publications.first { $0.mid == slot.track && $0.kind == slot.kind }
            let after = revised(slot, source, publication, verdict, wasAsked: wasAsked, into: &effects)
            if after != slot { senders[sender]?.slots[index] = after }
        }
        return looked
    }

    /// Sets the source of the slots of the followed publisher, by kind and position. Returns how many slots and rules were
    /// visited.
    mutating func follow(
        _ source: Source?,
        wasAsked: Bool = false,
        into effects: inout [ChannelModel.Effect]
    ) -> Int {
        guard isActive else { return 0 }
        var looked = slots.count
        let verdict = verdict(on: source, looked: &looked)
        var positions: [MediaKind: Int] = [:]
        for index in slots.indices {
            let slot = slots[index]
            let position = positions[slot.kind, default: 0]
            positions[slot.kind] = position + 1
            let publication = source?.publications.lazy.filter { $0.kind == slot.kind }.dropFirst(position).first
            slots[index] = revised(
                slot,
                source,
                publication,
                verdict,
                wasAsked: wasAsked,
                into: &effects
            )
        }
        return looked
    }

    /// Senders whose verdicts are kept: as many as a channel has publishers by default, and some that left.
    private static let verdictsMax = 256

    /// The verdict of the channel's filters and of its own on a sender. Its own are evaluated once a sender.
    private mutating func verdict(on source: Source?, looked: inout Int) -> FilterVerdict {
        guard let source else { return FilterVerdict() }
        var verdict = source.channelVerdict
        guard !filters.isEmpty else { return verdict }
        let own = verdicts[source.id] ?? filters.verdict(on: source, looked: &looked)
        if verdicts.count >= Self.verdictsMax { verdicts = [:] }
        verdicts[source.id] = own
        verdict.audio = verdict.audio || own.audio
        verdict.video = verdict.video || own.video
        return verdict
    }

    private func revised(
        _ slot: Slot,
        _ source: Source?,
        _ publication: Publication?,
        _ verdict: FilterVerdict,
        wasAsked: Bool,
        into effects: inout [ChannelModel.Effect]
    ) -> Slot {
        var after = slot
        var playing: Playing?
        after.isBlocked = false
        if let source, let publication {
            if verdict.blocks(slot.kind) {
                after.isBlocked = true
            } else {
                playing = self.playing(publication, of: source)
            }
            if after.isBlocked != slot.isBlocked, receivesNotifications {
                let news = Notification.Content.forwarding(
                    isBlocked: after.isBlocked,
                    kind: slot.kind,
                    source: source.id,
                    destination: id
                )
                effects.append(.notify(news, to: [id]))
            }
        }
        after.source = playing?.track
        after.layer = playing?.layer ?? .richest
        after.wish = playing?.wish ?? .richest
        guard after.source != slot.source || after.layer != slot.layer else { return after }
        after.awaitsAskedLayer = wasAsked && after.source != nil
        if after.source != slot.source { after.rid = nil }
        if wasAsked, receivesNotifications, after.source == nil, let source, publication?.isSimulcast == true {
            // The media plane knows of nothing to switch to.
            let news = Notification.LayerSwitch(
                sender: source.id,
                wished: .nothing,
                current: nil,
                previous: slot.rid,
                isHigher: false,
                trigger: .receiver
            )
            effects.append(.notify(.layerSwitched(news), to: [id]))
        }
        effects.append(
            .connect(
                slot: TrackID(peer: peer, mid: slot.mid),
                to: playing.map { PlacedTrack(track: $0.track, location: $0.location) },
                layer: after.layer,
                location: location
            )
        )
        return after
    }

    private func playing(_ publication: Publication, of source: Source) -> Playing? {
        let layer = wish(publication.kind, of: source)
        guard layer != .nothing else { return nil }
        return Playing(
            track: TrackID(peer: source.peer, mid: publication.mid),
            location: source.location,
            layer: publication.isSimulcast ? publication.ranked(layer) : .richest,
            wish: publication.isSimulcast ? layer : .richest
        )
    }

    /// A slot plays another layer. Returns the slot as it was, and whether the layer was asked for; `nil` for an
    /// unknown slot.
    mutating func layerSwitched(in mid: MID, to rid: RID?, isWished: Bool) -> (slot: Slot, wasAsked: Bool)? {
        guard let slot = slot(mid) else { return nil }
        let wasAsked = isWished && slot.awaitsAskedLayer
        var after = slot
        after.rid = rid
        if wasAsked { after.awaitsAskedLayer = false }
        replace(after)
        return (slot, wasAsked)
    }

    func slot(_ mid: MID) -> Slot? {
        let slots = senderOfSlot[mid].flatMap { senders[$0]?.slots } ?? self.slots
        return slots.first { $0.mid == mid }
    }

    private mutating func replace(_ slot: Slot) {
        if let sender = senderOfSlot[slot.mid] {
            guard let index = senders[sender]?.slots.firstIndex(where: { $0.mid == slot.mid }) else { return }
            senders[sender]?.slots[index] = slot
        } else if let index = slots.firstIndex(where: { $0.mid == slot.mid }) {
            slots[index] = slot
        }
    }
}
