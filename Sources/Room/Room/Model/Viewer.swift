import Admission
import ChannelTypes
import MediaTypes
import Wire

/// The receiving side of a participant: its slots and the layers that it requested.
struct Viewer: Sendable, Codable {
    /// The slots and requests of one sender that the viewer has slots of.
    struct Sender: Sendable, Codable {
        var slots: [Slot] = []
        /// The layer that was requested of this sender; `nil` for the layer of all.
        var layer: LayerChoice?
        /// The height that was requested of this sender; `nil` for the height of all.
        var height: Int?
        var spotlight: SpotlightLayers?

        var isUnused: Bool { slots.isEmpty && layer == nil && height == nil && spotlight == nil }
    }
    /// A sender's codec that this viewer cannot decode.
    struct RefusedCodec: Hashable, Sendable, Codable {
        var sender: ParticipantID
        var codec: CodecName
    }
    let id: ParticipantID
    private(set) var peer: PeerID
    private(set) var location: MediaLocation
    let following: Following
    var isActive = false
    /// Whether it is connected and gets notifications.
    var receivesNotifications = false
    var filters: FilterList { didSet { verdicts = [:] } }
    /// The cached verdict of ``filters`` on each sender.
    private var verdicts: [ParticipantID: FilterDecision] = [:]
    /// Codecs that its first description refused, until it can be notified: at most one for each m-line.
    var refusedCodecs: [RefusedCodec] = []
    private var layer: LayerChoice
    /// The height in pixels at which it shows video; `nil` for as high as there is.
    private var height: Int?
    /// `nil` for a viewer that joined without spotlight.
    private let spotlightJoined: SpotlightLayers?
    private var spotlight: SpotlightLayers?
    var subscription: Subscription
    /// The slots that play the followed publisher, by kind and position.
    private var slots: [Slot] = []
    private(set) var senders: [ParticipantID: Sender] = [:]
    private var senderOfSlot: [MID: ParticipantID] = [:]

    init(_ request: JoinRequest, as place: ParticipantLocation, filters: FilterList) {
        id = place.participant
        peer = place.peer
        location = place.location
        following = request.following
        self.filters = filters
        layer = request.layer
        height = request.videoHeight
        spotlightJoined = request.spotlight.map { SpotlightLayers(focus: $0.focus, unfocus: $0.unfocus) }
        spotlight = spotlightJoined
        subscription = Subscription(isManual: request.options?.subscribesManually ?? false)
    }

    var usesSpotlight: Bool { spotlightJoined != nil }

    /// The slots of the followed publisher in their order, then those of single senders by MID.
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

// MARK: - Adding and removing slots

extension Viewer {
    /// Sets the slots of the followed publisher, in the order of the description.
    mutating func setFollowedSlots(_ slots: [Slot]) { self.slots = slots }

    /// Adds a slot for one track of one sender. Does nothing when the MID is in use.
    mutating func add(_ slot: Slot, track: MID, of sender: ParticipantID) {
        guard senderOfSlot.updateValue(sender, forKey: slot.mid) == nil else { return }
        var slot = slot
        slot.track = track
        senders[sender, default: Sender()].slots.append(slot)
    }

    /// Does nothing when there is no such slot.
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
        senders[sender]?.height = nil
        senders[sender]?.spotlight = nil
        dropIfUnused(sender)
    }

    private mutating func dropIfUnused(_ sender: ParticipantID) {
        if senders[sender]?.isUnused == true { senders[sender] = nil }
    }
}

// MARK: - Lost connections

extension Viewer {
    /// Its connection is lost. Its requests and filters stay for the next one.
    mutating func interrupted() {
        isActive = false
        receivesNotifications = false
        slots = []
        senderOfSlot = [:]
        refusedCodecs = []
        for sender in senders.keys {
            senders[sender]?.slots = []
            dropIfUnused(sender)
        }
    }

    /// A new connection takes its place.
    mutating func resumed(at place: ParticipantLocation) {
        peer = place.peer
        location = place.location
    }
}

// MARK: - Requested layers

extension Viewer {
    /// - Parameter sender: `nil` for all senders without a request of their own.
    mutating func requestLayer(_ layer: LayerChoice, of sender: ParticipantID?) {
        guard let sender else {
            self.layer = layer
            return
        }
        senders[sender, default: Sender()].layer = layer
    }

    /// - Parameters:
    ///   - height: `nil` for as high as there is; with a sender, for the height of all.
    ///   - sender: `nil` for all senders without a request of their own.
    mutating func requestHeight(_ height: Int?, of sender: ParticipantID?) {
        guard let sender else {
            self.height = height
            return
        }
        if let height {
            senders[sender, default: Sender()].height = height
        } else {
            senders[sender]?.height = nil
            dropIfUnused(sender)
        }
    }

    /// - Parameters:
    ///   - layers: `nil` for the layers that it joined with.
    ///   - sender: `nil` for all senders without a request of their own.
    mutating func requestSpotlightLayers(_ layers: SpotlightLayers?, of sender: ParticipantID?) {
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

    /// - Throws: ``RoomError/subscriptionsFull``.
    mutating func requestSubscription(_ isSubscribed: Bool, _ selection: SubscriptionSelection) throws(RoomError) {
        try subscription.request(isSubscribed, selection)
    }

    /// The layer that it requests of a sender's track.
    private func requestedLayer(_ kind: MediaKind, of source: Source) -> LayerChoice {
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

// MARK: - Importance

extension Viewer {
    /// A request for one sender's highest layer, or for a higher one than of the other senders, is for the picture that
    /// the receiver looks at.
    private func importance(of publication: Publication, _ source: Source) -> SlotImportance {
        guard following == .everyone else { return .stage }
        let sender = senders[source.id]
        if (sender?.spotlight ?? spotlight) != nil {
            if source.isFocused { return .stage }
        } else if let requested = sender?.layer,
            requested.number > layer.number || requested.number >= publication.highestNumber
        {
            return .stage
        }
        return source.isSpeaker ? .speaker : .other
    }
}

extension LayerChoice {
    /// A higher one stands for a higher layer.
    fileprivate var number: Int {
        switch self {
        case .nothing: -1
        case .level(let number): number
        case .richest: .max
        }
    }
}

extension Publication {
    /// The least number in requests for its highest layer. Receivers do not know who sends several layers, so it is
    /// `r2` of those who do not.
    fileprivate var highestNumber: Int {
        guard isSimulcast else { return 2 }
        return (0...2).first { ranked(.level($0)) == .level(rids.count - 1) } ?? rids.count - 1
    }
}

// MARK: - Sources of slots

extension Viewer {
    /// Sets the source of one sender's slots, and adds a connection for each slot that changed.
    ///
    /// - Parameter layerWasRequested: whether a request for another layer is the reason.
    /// - Returns: how many slots and rules were visited.
    mutating func updateSlots(
        of sender: ParticipantID,
        _ source: Source?,
        layerWasRequested: Bool = false,
        into effects: inout [ChannelModel.Effect]
    ) -> Int {
        guard isActive, let slots = senders[sender]?.slots else { return 0 }
        var visited = slots.count
        let verdict = verdict(on: source, visited: &visited)
        for (index, slot) in slots.enumerated() {
            let publication = source?.publications.first { $0.track == slot.track && $0.kind == slot.kind }
            let after = updated(
                slot,
                source,
                publication,
                verdict,
                layerWasRequested: layerWasRequested,
                into: &effects
            )
            if after != slot { senders[sender]?.slots[index] = after }
        }
        return visited
    }

    /// Sets the source of the slots of the followed publisher, by kind and position.
    ///
    /// - Parameter layerWasRequested: whether a request for another layer is the reason.
    /// - Returns: how many slots and rules were visited.
    mutating func updateFollowedSlots(
        _ source: Source?,
        layerWasRequested: Bool = false,
        into effects: inout [ChannelModel.Effect]
    ) -> Int {
        guard isActive else { return 0 }
        var visited = slots.count
        let verdict = verdict(on: source, visited: &visited)
        var positions: [MediaKind: Int] = [:]
        for index in slots.indices {
            let slot = slots[index]
            let position = positions[slot.kind, default: 0]
            positions[slot.kind] = position + 1
            let publication = source?.publications.lazy.filter { $0.kind == slot.kind }.dropFirst(position).first
            slots[index] = updated(
                slot,
                source,
                publication,
                verdict,
                layerWasRequested: layerWasRequested,
                into: &effects
            )
        }
        return visited
    }

    /// Cached verdicts: one for each publisher of a channel by default, and some for senders that left.
    private static let verdictsMax = 256

    /// The verdict of the channel's filters and the viewer's own on a sender.
    private mutating func verdict(on source: Source?, visited: inout Int) -> FilterDecision {
        guard let source else { return FilterDecision() }
        var verdict = source.channelVerdict
        guard !filters.isEmpty else { return verdict }
        let own = verdicts[source.id] ?? filters.verdict(on: source.id.value, source.clientID, visited: &visited)
        if verdicts.count >= Self.verdictsMax { verdicts = [:] }
        verdicts[source.id] = own
        verdict.audio = verdict.audio || own.audio
        verdict.video = verdict.video || own.video
        return verdict
    }

    /// The slot with a new source and layer; adds a connection and notifications if something changed.
    private func updated(
        _ slot: Slot,
        _ source: Source?,
        _ publication: Publication?,
        _ verdict: FilterDecision,
        layerWasRequested: Bool,
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
                let notification = Notification.Content.forwarding(
                    isBlocked: after.isBlocked,
                    kind: slot.kind,
                    source: source.id,
                    destination: id
                )
                effects.append(.notify(notification, to: [id]))
            }
        }
        after.source = playing?.track
        after.preference = playing?.preference ?? LayerPreference()
        after.requestedLayer = playing?.requestedLayer ?? .richest
        guard after.source != slot.source || after.preference != slot.preference else { return after }
        if after.source != slot.source || after.layer != slot.layer {
            after.awaitsRequestedLayer = layerWasRequested && after.source != nil
        }
        if after.source != slot.source { after.rid = nil }
        if layerWasRequested, receivesNotifications, after.source == nil, let source, publication?.isSimulcast == true {
            // The media plane does not report a switch to nothing.
            let layerSwitch = Notification.LayerSwitch(
                sender: source.id,
                requested: .nothing,
                layers: publication?.rids ?? [],
                permitted: [],
                current: nil,
                previous: slot.rid,
                isHigher: false,
                trigger: .receiver
            )
            effects.append(.notify(.layerSwitched(layerSwitch), to: [id]))
        }
        effects.append(
            .connect(
                slot: TrackID(peer: peer, mid: slot.mid),
                to: playing.map { PlacedTrack(track: $0.track, location: $0.location) },
                preference: after.preference,
                location: location
            )
        )
        return after
    }

    private func playing(_ publication: Publication, of source: Source) -> Playing? {
        let layer = requestedLayer(publication.kind, of: source)
        guard layer != .nothing, subscription.includes(source.clientID, publication.kind, source.video) else {
            return nil
        }
        var preference = LayerPreference(cap: publication.isSimulcast ? publication.ranked(layer) : .richest)
        if publication.kind == .video {
            preference.importance = importance(of: publication, source)
            preference.height = senders[source.id]?.height ?? height
        }
        return Playing(
            track: TrackID(peer: source.peer, mid: publication.mid),
            location: source.location,
            preference: preference,
            requestedLayer: publication.isSimulcast ? layer : .richest
        )
    }

    /// A slot plays another layer.
    /// - Returns: the slot as it was, and whether the layer was requested; `nil` for an unknown slot.
    mutating func layerSwitched(in mid: MID, to rid: RID?, isRequested: Bool) -> (slot: Slot, wasRequested: Bool)? {
        guard let slot = slot(mid) else { return nil }
        let wasRequested = isRequested && slot.awaitsRequestedLayer
        var after = slot
        after.rid = rid
        if wasRequested { after.awaitsRequestedLayer = false }
        replace(after)
        return (slot, wasRequested)
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
