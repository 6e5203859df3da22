import Base
import MediaTypes
import RoomTestSupport
import SeedSupport
import Speakers
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// A model whose members follow everyone, with an independent record of its events: states, requests and speech.
/// ``expected`` computes from the record alone what every slot plays.
struct PropertyWorld {
    struct Seen {
        var sender: ParticipantID
        var track: MID
        var kind: MediaKind
    }
    struct Person {
        var request: JoinRequest
        var publications: [Publication] = []
        var isActive = false
        var isTransportUp = false
        var connectedStep: Int?
        var endSecond: Int64?
        var slots: [MID: Seen] = [:]
        var layers: [ParticipantID: LayerChoice] = [:]
        var heights: [ParticipantID: Int] = [:]
        var spotlights: [ParticipantID: Spotlight] = [:]
        /// What it was told last that it may see.
        var visible: [ParticipantID] = []
        var speaking: Set<MID> = []
        /// The tracks whose packets come.
        var flowing: Set<MID> = []
        /// What it does in the channel at present.
        var role: Role
        /// When it went live last.
        var liveStep: Int?
        var isAnnounced = false
        var mutedByItself: Set<MediaKind> = []
        var mutedByOperator: Set<MediaKind> = []
        var subscriptions: [(isSubscribed: Bool, selection: SubscriptionSelection)] = []
        /// What it was told of users; `nil` before it joined.
        var view: View?

        var isConnected: Bool { connectedStep != nil }
        var isLive: Bool { isConnected && role.publishes }
        /// Whether it is told of users.
        var observes: Bool { isConnected && request.options != nil && request.receivesNotifications }
    }
    /// The users of a channel as one member knows them.
    struct View: Equatable {
        var users: Set<String> = []
        /// Those of connections that publish.
        var tracks: [ParticipantID: PublishedTracks] = [:]
    }
    enum Turn {
        case began(ParticipantID)
        case ceased(ParticipantID)
        case put(ParticipantID, isFixed: Bool)
        case dismissed(ParticipantID)
    }
    struct Session {
        var filters: [ForwardingFilter] = []
        var turns: [Turn] = []
        var number: Int?
        var usesSpotlight = false
        var profile: ChannelProfile?
    }

    let run: SeededRun
    /// The budget of members' own changes has tests of its own.
    var model = SynchronousNode(limits: RoomLimits(changeBurst: 10_000), loopCount: 2)
    var people: [ParticipantID: Person] = [:]
    var peers: [ParticipantID: PeerID] = [:]
    var locations: [PeerID: MediaLocation] = [:]
    var sessions: [ChannelName: Session] = [:]
    var played: [TrackID: (source: PlacedTrack, preference: LayerPreference)] = [:]
    var step = 0
    var midNext = 1
    var second: Int64 = 100
    var told: Set<ParticipantID> = []
    static let channels = [ChannelName("a")!, ChannelName("b")!]
    static let tracks: [(mid: MID, kind: MediaKind)] = [(MID("a")!, .audio), (MID("v")!, .video), (MID("w")!, .video)]

    init(_ run: SeededRun) { self.run = run }

    /// Bundles by participant, of those too who left.
    var bundles: [ParticipantID: String] = [:]
    func bundle(_ id: ParticipantID) -> String { bundles[id] ?? "" }
    static let networks: [ClientNetwork] = [.unknown, ClientNetwork(IPAddress("10.0.0.1")!)]
    static let membersMax = 5
    func client(_ id: ParticipantID) -> String { people[id]?.request.clientID ?? id.value }
    /// In the order of joining, which peers are numbered by.
    func everybody(_ isIncluded: (ParticipantID, Person) -> Bool = { _, _ in true }) -> [ParticipantID] {
        people.filter(isIncluded).keys.sorted { peers[$0]!.rawValue < peers[$1]!.rawValue }
    }
}

// MARK: - Checks

extension PropertyWorld {
    func expect(_ holds: Bool, _ what: @autoclosure () -> String, _ line: Int = #line) {
        run.expect(holds, "\(what()), line \(line)")
    }

    func visible(to id: ParticipantID) -> [ParticipantID] {
        guard let person = people[id], person.request.role.watches else { return [] }
        return everybody { other, publisher in
            publisher.isLive && publisher.request.channel == person.request.channel && bundle(other) != bundle(id)
        }
        .sorted { people[$0]!.liveStep! < people[$1]!.liveStep! }
    }

    func focused(in name: ChannelName) -> [ParticipantID] {
        guard let session = sessions[name], session.usesSpotlight else { return [] }
        var states: [ParticipantID: (speaks: Bool, put: Bool, since: Int)] = [:]
        var fixed: [ParticipantID] = []
        for (index, turn) in session.turns.enumerated() {
            switch turn {
            case .began(let id):
                for (other, state) in states where state.put { states[other] = (false, false, state.since) }
                states[id] = (true, false, index)
            case .ceased(let id):
                if let state = states[id], state.speaks, !state.put { states[id] = (false, false, index) }
            case .put(let id, let isFixed):
                states[id] = (true, true, index)
                if !isFixed { fixed.removeAll { $0 == id } }
                if isFixed, !fixed.contains(id) { fixed.append(id) }
            case .dismissed(let id):
                states[id] = nil
                fixed.removeAll { $0 == id }
            }
        }
        let speakers = states.filter { !fixed.contains($0.key) }.sorted {
            $0.value.speaks == $1.value.speaks ? $0.value.since > $1.value.since : $0.value.speaks
        }
        return Array((fixed + speakers.map(\.key)).prefix(session.number ?? 1))
    }

    private func holds(_ rule: ForwardingFilter.Rule, _ sender: ParticipantID, _ kind: MediaKind) -> Bool {
        let value =
            switch rule.field {
            case .connectionID: sender.value
            case .clientID: client(sender)
            case .kind: kind.rawValue
            }
        return rule.operator == .isIn ? rule.values.contains(value) : !rule.values.contains(value)
    }

    private func isBlocked(_ filters: [ForwardingFilter], _ sender: ParticipantID, _ kind: MediaKind) -> Bool {
        let fitting = filters.filter { filter in
            filter.rules.contains { $0.allSatisfy { holds($0, sender, kind) } }
        }
        if let first = fitting.max(by: { $0.priority < $1.priority }) { return first.action == .block }
        return filters.contains { $0.action == .allow && !$0.rules.isEmpty }
    }

    private func isSubscribed(_ person: Person, _ seen: Seen) -> Bool {
        let source = people[seen.sender]?.request.options?.source ?? .camera
        let last = person.subscriptions.last { _, selection in
            (selection.user ?? client(seen.sender)) == client(seen.sender)
                && (selection.kind ?? seen.kind) == seen.kind && (selection.source ?? source) == source
        }
        return last?.isSubscribed ?? !(person.request.options?.subscribesManually ?? false)
    }

    /// What a member is told of users by the rules.
    private func expectedView(of id: ParticipantID) -> View {
        var view = View()
        for (other, person) in people
        where person.isAnnounced && person.request.channel == people[id]?.request.channel && client(other) != client(id)
        {
            view.users.insert(client(other))
            guard person.role.publishes, !person.publications.isEmpty else { continue }
            let muted = person.mutedByItself.union(person.mutedByOperator)
            view.tracks[other] = PublishedTracks(
                user: client(other),
                connection: other,
                source: person.request.options?.source ?? .camera,
                audio: person.publications.contains { $0.kind == .audio && person.flowing.contains($0.mid) },
                video: person.publications.contains { $0.kind == .video && person.flowing.contains($0.mid) },
                isAudioMuted: muted.contains(.audio),
                isVideoMuted: muted.contains(.video)
            )
        }
        return view
    }

    /// What a slot plays by the rules.
    private func expected(
        _ id: ParticipantID,
        _ seen: Seen,
        _ focus: [ChannelName: [ParticipantID]]
    ) -> (source: PlacedTrack, preference: LayerPreference)? {
        guard let person = people[id], let sender = people[seen.sender], sender.isLive, let peer = peers[seen.sender],
            sender.request.channel == person.request.channel, bundle(seen.sender) != bundle(id),
            let track = sender.publications.first(where: { $0.mid == seen.track && $0.kind == seen.kind }),
            !isBlocked(sessions[person.request.channel]?.filters ?? [], seen.sender, seen.kind),
            !isBlocked(person.request.filters, seen.sender, seen.kind),
            !sender.mutedByOperator.contains(seen.kind), isSubscribed(person, seen)
        else { return nil }
        var layer = LayerChoice.richest
        if let spotlight = person.spotlights[seen.sender] ?? person.request.spotlight {
            let isFocused = focus[person.request.channel]?.contains(seen.sender) == true
            switch seen.kind {
            case .audio: layer = isFocused ? .richest : .nothing
            case .video: layer = isFocused ? spotlight.focus : spotlight.unfocus
            }
        } else if seen.kind == .video {
            layer = person.layers[seen.sender] ?? person.request.layer
        }
        guard layer != .nothing else { return nil }
        let source = PlacedTrack(track: TrackID(peer: peer, mid: track.mid), location: locations[peer]!)
        var preference = LayerPreference(cap: track.isSimulcast ? layer : .richest)
        if seen.kind == .video {
            preference.importance = importance(of: seen.sender, to: person, focus)
            preference.height = person.heights[seen.sender] ?? person.request.videoHeight
        }
        return (source, preference)
    }

    private func importance(
        of sender: ParticipantID,
        to person: Person,
        _ focus: [ChannelName: [ParticipantID]]
    ) -> SlotImportance {
        let name = person.request.channel
        let isFocused = focus[name]?.contains(sender) == true
        let usesSpotlight = person.request.spotlight != nil || person.spotlights[sender] != nil
        if usesSpotlight, isFocused { return .stage }
        if !usesSpotlight, let requested = person.layers[sender] {
            let order: [LayerChoice] = [.nothing, .level(0), .level(1), .richest]
            let isHigher = order.firstIndex(of: requested)! > order.firstIndex(of: person.request.layer)!
            if isHigher || requested == .richest { return .stage }
        }
        return model.channels[name]?.state.session?.recentSpeakers.contains(sender) == true ? .speaker : .other
    }

    func check() {
        var focus: [ChannelName: [ParticipantID]] = [:]
        for name in Self.channels { focus[name] = focused(in: name) }
        for (id, person) in people where person.isActive {
            for (mid, seen) in person.slots {
                let slot = TrackID(peer: peers[id]!, mid: mid)
                let expected = expected(id, seen, focus)
                expect(played[slot]?.source == expected?.source, "\(slot) plays \(seen)")
                expect(played[slot]?.preference == expected?.preference, "the preference of \(slot)")
            }
            expect(Set(model.slots(of: id)?.map(\.mid) ?? []) == Set(person.slots.keys), "the slots of \(id)")
        }
        for (id, viewer) in model.viewers {
            let person = people[id]
            let asked = [
                person?.layers.keys.map { $0 }, person?.heights.keys.map { $0 }, person?.spotlights.keys.map { $0 },
            ]
            let kept = Set(person?.slots.values.map(\.sender) ?? []).union(asked.flatMap { $0 ?? [] })
            expect(Set(viewer.senders.keys) == kept, "what is kept for \(id)")
        }
        for (id, person) in people {
            let now = visible(to: id)
            expect(model.visibleStreams(to: id).map(\.sender) == now, "what \(id) sees")
            expect(person.view == (person.observes ? expectedView(of: id) : nil), "the users that \(id) knows")
            expect(told.contains(id) == (now != person.visible), "\(id) is told exactly when that changed")
        }
        for network in Self.networks {
            let share = model.networks[network]
            let own = everybody { $1.request.network == network }
            expect(share.participants == own.count, "the participants of \(network)")
            expect(Array(share.unconnected) == own.filter { people[$0]?.isConnected != true }, "who is to connect")
            let channels = Dictionary(grouping: own) { people[$0]!.request.channel }.mapValues(\.count)
            expect(share.channels == channels, "the channels of \(network)")
        }
        for name in Self.channels {
            expect(model.channels[name]?.state.session?.speakers.focused ?? [] == focus[name], "focus in \(name)")
            var counts = ChannelCounts()
            for person in people.values where person.request.channel == name && person.isConnected {
                counts.add(1, person.role)
            }
            expect(model.counts(of: name) == counts, "the counts of \(name)")
            let isInUse = people.values.contains { $0.request.channel == name }
            expect((model.session(of: name) != nil) == isInUse, "the session of \(name)")
        }
    }
}

// MARK: - Effects

extension PropertyWorld {
    /// Does what the model decided, as media planes and signaling would, and checks what it says.
    mutating func perform(_ effects: [ChannelModel.Effect]) {
        for effect in effects {
            switch effect {
            case .connect(let slot, let source, let preference, let location):
                expect(location == locations[slot.peer], "the location of \(slot)")
                let isSame = played[slot]?.source == source && (source == nil || played[slot]?.preference == preference)
                expect(!isSame, "nothing is decided twice")
                played[slot] = source.map { ($0, preference) }
            case .streamsChanged(let id): told.insert(id)
            case .ended(let id, _): forget(id)
            case .notify(let content, let ids):
                checkNews(content, ids)
                for id in ids { updateView(of: id, content) }
            case .limitSending, .removePeer, .interrupted, .channelChanged, .connected, .report, .checkTransport,
                .unusedLayersChanged, .request, .push, .requestKeyFrames:
                break
            }
        }
    }

    private mutating func forget(_ id: ParticipantID) {
        guard let person = people.removeValue(forKey: id) else { return }
        let name = person.request.channel
        for mid in person.slots.keys { played[TrackID(peer: peers[id]!, mid: mid)] = nil }
        for other in people.keys {
            people[other]?.layers[id] = nil
            people[other]?.heights[id] = nil
            people[other]?.spotlights[id] = nil
        }
        sessions[name]?.turns.append(.dismissed(id))
        if !people.values.contains(where: { $0.request.channel == name }) { sessions[name] = nil }
    }

    private func checkNews(_ content: Notification.Content, _ ids: [ParticipantID]) {
        expect(Set(ids).count == ids.count, "nobody is told twice")
        let isOfICE = if case .iceStateChanged = content { true } else { false }
        let hear = ids.allSatisfy { id in
            people[id].map { $0.isConnected && (isOfICE || $0.request.receivesNotifications) } == true
        }
        expect(hear, "who is told is there and wants to be")
        switch content {
        case .created(let member, _, _, let counts, let others):
            let connected = neighbours(of: member.id) { _ in true }
            expect(counts.connections == connected.count, "the newcomer counts")
            if let others {
                expect(ids == [member.id], "the newcomer alone is told of others")
                let announced = neighbours(of: member.id) { $0.isAnnounced }
                expect(Set(others.map(\.id)) == strangers(announced, to: member), "the others")
            } else {
                expect(Set(ids) == notified(about: member), "who is told of a newcomer")
            }
        case .updated(let member, _, _, _):
            let notified = people[member.id]?.isAnnounced == true ? notified(about: member) : []
            expect(Set(ids).subtracting([member.id]) == notified, "who is told of a change")
        case .destroyed(let member, _, _, _):
            expect(people[member.id]?.isAnnounced != true, "who is said to be gone is gone")
            expect(strangers(Set(ids), to: member) == Set(ids), "a bundle is told nothing of itself")
        case .networkStatus(let level): expect(ids.count == 1 && (0...3).contains(level), "its network's own level")
        case .networkQuality: expect(ids.count == 1, "its own network's quality")
        case .iceStateChanged:
            expect(ids.allSatisfy { people[$0]?.request.notifiesICEState == true }, "who is notified of ICE")
        case .spotlightFocused(let member, _), .spotlightUnfocused(let member, _):
            expect(
                strangers(Set(ids), to: member) == Set(ids).subtracting([member.id]),
                "a bundle is not told of focus"
            )
        case .channelJoined, .userOnline, .userOffline, .roleChanged, .muted, .firstFrame, .othersQuality,
            .handChanged, .chatHistory:
            expect(ids.allSatisfy { people[$0]?.observes == true }, "who is told of users knows them")
        case .tracksChanged(let tracks):
            let others = ids.filter { people[$0]?.observes == false }
            expect(
                others.allSatisfy { people[$0]?.request.receivesNotifications == true },
                "who is told of tracks is notified"
            )
            expect(!others.contains(tracks.connection), "nobody is told of its own tracks")
        case .layerSwitched, .forwarding, .codecUnsupported, .interrupted, .resumed, .accessExpires: break
        }
    }

    private mutating func updateView(of id: ParticipantID, _ content: Notification.Content) {
        switch content {
        case .channelJoined(let joined):
            expect(people[id]?.view == nil && joined.connection == id, "joined once")
            expect(joined.profile == sessions[people[id]!.request.channel]?.profile, "the profile")
            var view = View(users: Set(joined.users.map(\.user.id)))
            for tracks in joined.users.flatMap(\.connections).map(\.tracks) {
                guard let other = people[tracks.connection], other.role.publishes, !other.publications.isEmpty else {
                    continue
                }
                view.tracks[tracks.connection] = tracks
            }
            people[id]?.view = view
        case .userOnline(let user):
            expect(people[id]?.view?.users.contains(user.id) == false, "online once")
            people[id]?.view?.users.insert(user.id)
        case .userOffline(let user, _):
            expect(people[id]?.view?.users.contains(user) == true, "offline once")
            people[id]?.view?.users.remove(user)
            let rest = people[id]?.view?.tracks.filter { $0.value.user != user }
            people[id]?.view?.tracks = rest ?? [:]
        case .tracksChanged(let tracks) where people[id]?.observes == true:
            expect(people[id]?.view?.users.contains(tracks.user) == true, "tracks are of users online")
            expect(people[id]?.view?.tracks[tracks.connection] != tracks, "nothing is told twice")
            people[id]?.view?.tracks[tracks.connection] = tracks.hasEnded ? nil : tracks
        default: break
        }
    }

    /// The connected of a member's channel, itself included.
    private func neighbours(of id: ParticipantID, _ isIncluded: (Person) -> Bool) -> Set<ParticipantID> {
        let name = people[id]?.request.channel
        return Set(people.filter { $1.request.channel == name && $1.isConnected && isIncluded($1) }.keys)
    }
    private func strangers(_ ids: Set<ParticipantID>, to member: Member) -> Set<ParticipantID> {
        ids.filter { bundle($0) != bundle(member.id) }
    }
    private func notified(about member: Member) -> Set<ParticipantID> {
        strangers(neighbours(of: member.id) { $0.request.receivesNotifications }, to: member)
    }
}
