import Base
import Foundation
import MediaTypes
import RoomTestSupport
import SeedSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// Random events against ``PropertyWorld``, a second implementation of the rules.
struct FollowEveryonePropertyTests {
    @Test(arguments: Seeds.cases(0..<10))
    func `random events lead to the expected subscriptions, and to an empty model at the end`(seeds: Seeds) async {
        for failure in await seeds.failures(of: Self.self, Self.run) { Issue.record("\(failure)") }
    }

    private static func run(_ run: SeededRun) throws {
        var world = PropertyWorld(run)
        try run.takeSteps(300) { generator in
            try world.advance(using: &generator)
            world.check()
        }
        for id in world.everybody() {
            world.begin()
            world.perform(world.model.left(id, reason: .left))
            world.check()
        }
        run.expect(world.model.isEmpty && world.played.isEmpty, "the model is empty")
    }
}

/// A ``ChannelModel`` is a value that can be stored and continued with.
struct ChannelCodingTests {
    @Test(arguments: Seeds.cases(100..<106))
    func `a channel that is encoded and decoded after every event behaves like one that is not`(seeds: Seeds) async {
        let failures = await seeds.failures(of: Self.self) { run in
            let plain = try Self.model(run, codes: false)
            let coded = try Self.model(run, codes: true)
            run.expect(plain.trace == coded.trace, "both decide the same")
            run.expect(coded.isEmpty, "the model is empty")
        }
        for failure in failures { Issue.record("\(failure)") }
    }

    private static func model(_ run: SeededRun, codes: Bool) throws -> SynchronousNode {
        var world = PropertyWorld(run)
        world.model.codesChannels = codes
        try run.takeSteps(200) { try world.advance(using: &$0) }
        for id in world.everybody() {
            world.begin()
            world.perform(world.model.left(id, reason: .left))
        }
        return world.model
    }

    @Test func `a channel keeps its members, session and revision`() throws {
        var bench = ModelBench()
        _ = try bench.member(.sendonly)
        let viewer = try bench.viewer()
        let channel = try #require(bench.model.channels[ModelBench.channel])
        let copy = SynchronousNode.coded(channel)
        #expect(copy.snapshot == channel.snapshot && copy.connections == channel.connections)
        #expect(copy.session == channel.session && copy.summary == channel.summary)
        #expect(copy.slots(of: viewer) == channel.slots(of: viewer))
    }

    @Test func `decoding refuses text that is not an identifier`() {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([ParticipantID].self, from: Data("[\"nobody\"]".utf8))
        }
    }
}

extension PropertyWorld {
    mutating func begin() {
        step += 1
        told = []
        model.now = RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: 0)
        for id in Array(people.keys) {
            let seen = visible(to: id)
            people[id]?.visible = seen
        }
    }

    mutating func advance(using generator: inout SeededGenerator) throws {
        begin()
        switch Int.random(in: 0..<37, using: &generator) {
        case 0...3: join(using: &generator)
        case 4...7: try activate(using: &generator)
        case 8...11: connect(using: &generator)
        case 12: leave(using: &generator)
        case 13...17: try changeSlots(using: &generator)
        case 18...19: speak(using: &generator)
        case 20: flow(using: &generator)
        case 21: try focus(using: &generator)
        case 22: try changeNumber(using: &generator)
        case 23...25: changeFilters(using: &generator)
        case 26: requestLayer(using: &generator)
        case 27: requestSpotlightLayers(using: &generator)
        case 28: requestHeight(using: &generator)
        case 29...31: changeRole(using: &generator)
        case 32...33: mute(using: &generator)
        case 34...35: subscribe(using: &generator)
        default: pass(using: &generator)
        }
    }

    private func pick(
        using generator: inout SeededGenerator,
        _ isIncluded: (ParticipantID, Person) -> Bool = { _, _ in true }
    ) -> ParticipantID? {
        everybody(isIncluded).randomElement(using: &generator)
    }

    private func layer(using generator: inout SeededGenerator) -> LayerChoice {
        [.richest, .level(0), .level(1), .nothing].randomElement(using: &generator)!
    }

    private func spotlight(using generator: inout SeededGenerator) -> Spotlight {
        Spotlight(
            number: Bool.random(using: &generator) ? Int.random(in: 1...3, using: &generator) : nil,
            focus: layer(using: &generator),
            unfocus: layer(using: &generator)
        )
    }

    private func filter(using generator: inout SeededGenerator) -> ForwardingFilter {
        let rule = { (generator: inout SeededGenerator) -> ForwardingFilter.Rule in
            let isIn = Bool.random(using: &generator)
            let someone = pick(using: &generator)?.value ?? "x"
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: return .init(field: .connectionID, operator: isIn ? .isIn : .isNotIn, values: [someone, "y"])
            case 1: return .init(field: .clientID, operator: isIn ? .isIn : .isNotIn, values: ["c1"])
            default: return .init(field: .kind, operator: isIn ? .isIn : .isNotIn, values: ["audio"])
            }
        }
        let rules = (0..<Int.random(in: 0..<3, using: &generator)).map { _ in
            (0..<Int.random(in: 0..<3, using: &generator)).map { _ in rule(&generator) }
        }
        // Equal priorities are a matter of age, which a table test shows.
        let name = ["x", "y", "z"].randomElement(using: &generator)!
        return ForwardingFilter(
            name: name,
            priority: 10 * Int.random(in: 0..<3, using: &generator) + ["x": 0, "y": 1, "z": 2][name]!,
            action: Bool.random(using: &generator) ? .block : .allow,
            rules: rules
        )
    }

    private mutating func join(using generator: inout SeededGenerator) {
        guard people.count < 14 else { return }
        let id = ParticipantID(using: &generator)
        var request = JoinRequest(
            channel: Self.channels.randomElement(using: &generator)!,
            role: Role.allCases.randomElement(using: &generator)!,
            following: .everyone,
            clientID: ["c1", "c2", nil].randomElement(using: &generator)!,
            bundleID: ["b", nil, nil, nil].randomElement(using: &generator)!,
            receivesNotifications: Int.random(in: 0..<5, using: &generator) > 0,
            notifiesICEState: Int.random(in: 0..<5, using: &generator) == 0,
            announces: Int.random(in: 0..<5, using: &generator) > 0,
            layer: layer(using: &generator),
            network: Self.networks.randomElement(using: &generator)!,
            channelConnectionsMax: [nil, nil, Self.membersMax].randomElement(using: &generator)!
        )
        if Int.random(in: 0..<3, using: &generator) == 0 { request.spotlight = spotlight(using: &generator) }
        if Int.random(in: 0..<4, using: &generator) == 0 { request.filters = [filter(using: &generator)] }
        if Int.random(in: 0..<6, using: &generator) == 0 { request.lifetime = .seconds(90) }
        if Int.random(in: 0..<3, using: &generator) > 0 { request.options = options(using: &generator) }
        let session = ChannelSessionID(using: &generator)
        let members = people.values.count { $0.request.channel == request.channel }
        let isFull = request.channelConnectionsMax.map { members >= $0 } ?? false
        let profile = sessions[request.channel]?.profile
        let isMismatched = profile != nil && request.options?.profile != nil && request.options?.profile != profile
        guard let place = try? model.joinRequested(request, id: id, session: session) else {
            expect(isFull || isMismatched, "who is refused")
            return
        }
        expect(!isFull && !isMismatched, "who gets a place, connected members or not")
        run.note("\(id) joins \(request.channel), \(request.role)")
        bundles[id] = request.bundleID.map { "\($0) \(request.network)" } ?? id.value
        peers[id] = place.peer
        locations[place.peer] = place.location
        if sessions[request.channel] == nil { sessions[request.channel] = Session() }
        if profile == nil, let options = request.options {
            sessions[request.channel]?.profile = options.profile ?? .communication
        }
        let isAudience = request.role == .sendrecv && request.options?.role == .audience
        let isInteractive = sessions[request.channel]?.profile == .interactive
        people[id] = Person(request: request, role: isAudience && isInteractive ? .recvonly : request.role)
        let seen = visible(to: id)
        people[id]?.visible = seen
    }

    private mutating func activate(using generator: inout SeededGenerator) throws {
        guard let id = pick(using: &generator, { !$1.isActive }), let person = people[id] else { return }
        let tracks = Self.tracks.filter { _ in Bool.random(using: &generator) }
        let rids = ["r0", "r1", "r2"].map { RID($0)! }
        let publications = tracks.map { track in
            let isSimulcast = track.kind == .video && Bool.random(using: &generator)
            return Publication(mid: track.mid, kind: track.kind, rids: isSimulcast ? rids : [])
        }
        run.note("\(id) is set up with \(publications.map(\.mid))")
        people[id]?.isActive = true
        let name = person.request.channel
        if person.request.role.watches, let spotlight = person.request.spotlight {
            sessions[name]?.usesSpotlight = true
            if sessions[name]?.number == nil { sessions[name]?.number = spotlight.number }
        }
        if person.request.role.publishes { people[id]?.publications = publications }
        let assigned = person.request.role.watches ? newSlots(of: id, using: &generator) : []
        if person.isTransportUp { arrived(id) }
        perform(try model.setupCompleted(id, publications: publications, slots: [], assigned: assigned))
    }

    private mutating func arrived(_ id: ParticipantID) {
        people[id]?.connectedStep = step
        wentLive(id)
        if people[id]?.request.lifetime != nil { people[id]?.endSecond = second + 90 }
    }

    /// A connected member may be announced, and received if it publishes.
    private mutating func wentLive(_ id: ParticipantID) {
        guard let person = people[id] else { return }
        let name = person.request.channel
        people[id]?.isAnnounced =
            person.request.announces && (person.role.publishes || sessions[name]?.profile != .interactive)
        guard person.isLive else { return }
        people[id]?.liveStep = step
        if !person.speaking.isEmpty, !person.mutedByOperator.contains(.audio) {
            sessions[name]?.turns.append(.began(id))
        }
    }

    private mutating func newSlots(of id: ParticipantID, using generator: inout SeededGenerator) -> [SlotAssignment] {
        (0..<Int.random(in: 0..<4, using: &generator)).compactMap { _ in
            guard let sender = pick(using: &generator), let track = Self.tracks.randomElement(using: &generator)
            else { return nil }
            let mid = MID("s\(midNext)")!
            midNext += 1
            people[id]?.slots[mid] = Seen(sender: sender, track: track.mid, kind: track.kind)
            return SlotAssignment(
                sender: sender,
                track: track.mid,
                parameters: SendTrackParameters(
                    mid: mid,
                    kind: track.kind,
                    codecs: [],
                    ssrc: SSRC(rawValue: UInt32(midNext)),
                    cname: "c"
                )
            )
        }
    }

    private mutating func changeSlots(using generator: inout SeededGenerator) throws {
        guard let id = pick(using: &generator, { $1.isActive && $1.request.role.watches }) else { return }
        let removed = people[id]!.slots.keys.sorted { $0.value < $1.value }
            .filter { _ in Int.random(in: 0..<5, using: &generator) == 0 }
        for mid in removed {
            people[id]?.slots[mid] = nil
            played[TrackID(peer: peers[id]!, mid: mid)] = nil
        }
        let added = newSlots(of: id, using: &generator)
        run.note("\(id) has \(added.count) slots more and \(removed.count) fewer")
        perform(try model.slotsChanged(of: id, add: added, remove: removed))
    }

    private mutating func connect(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let person = people[id] else { return }
        run.note("\(id) connects")
        if person.isActive, !person.isConnected { arrived(id) }
        people[id]?.isTransportUp = true
        perform(model.received(.connected(over: .udp), from: peers[id]!))
    }

    private mutating func leave(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator) else { return }
        run.note("\(id) leaves")
        if Bool.random(using: &generator) {
            perform(model.received(.closed(.consentExpired), from: peers[id]!))
        } else {
            perform(model.left(id, reason: .left))
        }
    }

    private mutating func speak(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let track = Self.tracks.randomElement(using: &generator) else { return }
        let begins = Bool.random(using: &generator)
        run.note("\(id) \(begins ? "begins" : "ceases") to speak in \(track.mid)")
        if track.kind == .audio, people[id]?.publications.contains(where: { $0.mid == track.mid }) == true {
            if begins { people[id]?.speaking.insert(track.mid) } else { people[id]?.speaking.remove(track.mid) }
            if let person = people[id], person.isLive, !person.mutedByOperator.contains(.audio) {
                let name = person.request.channel
                sessions[name]?.turns.append(begins ? .began(id) : .ceased(id))
            }
        }
        perform(model.received(.speech(mid: track.mid, isSpeaking: begins), from: peers[id]!))
    }

    private mutating func flow(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator, { $1.isActive }),
            let track = people[id]?.publications.randomElement(using: &generator)
        else { return }
        let begins = Bool.random(using: &generator)
        run.note("\(id) \(begins ? "sends" : "pauses") \(track.mid)")
        if begins { people[id]?.flowing.insert(track.mid) } else { people[id]?.flowing.remove(track.mid) }
        let codec = track.kind == .audio ? CodecName.opus : .vp8
        let event = begins ? PeerEvent.trackStarted(mid: track.mid, codec: codec) : .trackPaused(mid: track.mid)
        perform(model.received(event, from: peers[id]!))
    }

    private mutating func focus(using generator: inout SeededGenerator) throws {
        guard let id = pick(using: &generator, { $1.isLive }), let name = people[id]?.request.channel else { return }
        switch Int.random(in: 0..<3, using: &generator) {
        case 0:
            run.note("\(id) loses the focus")
            sessions[name]?.turns.append(.dismissed(id))
            perform(try model.perform(.unfocus(id), in: name))
        case let choice:
            run.note("\(id) gets the focus\(choice == 1 ? " for good" : "")")
            sessions[name]?.turns.append(.put(id, isFixed: choice == 1))
            perform(try model.perform(.focus(id, isFixed: choice == 1), in: name))
        }
    }

    private mutating func changeNumber(using generator: inout SeededGenerator) throws {
        let name = Self.channels.randomElement(using: &generator)!
        let number = Int.random(in: 1...4, using: &generator)
        guard sessions[name] != nil else { return }
        run.note("\(name) has \(number) in the spotlight")
        sessions[name]?.number = number
        perform(try model.perform(.setSpotlightNumber(number), in: name))
    }

    private mutating func changeFilters(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator, { $1.request.role.watches }), let name = people[id]?.request.channel
        else { return }
        let isOfChannel = Bool.random(using: &generator)
        let scope = isOfChannel ? FilterScope.channel : .participant(id)
        var list = (isOfChannel ? sessions[name]?.filters : people[id]?.request.filters) ?? []
        let filter = filter(using: &generator)
        run.note("\(scope) has filter \(filter.name) changed")
        let effects: [ChannelModel.Effect]
        let isThere = list.contains { $0.name == filter.name }
        list.removeAll { $0.name == filter.name }
        if !isThere {
            list.append(filter)
            effects = (try? model.perform(.createFilter(filter, scope: scope), in: name)) ?? []
        } else if Bool.random(using: &generator) {
            list.append(filter)
            effects = (try? model.perform(.updateFilter(filter, scope: scope, expected: nil), in: name)) ?? []
        } else {
            effects =
                (try? model.perform(.deleteFilter(name: filter.name, scope: scope, expected: nil), in: name)) ?? []
        }
        if isOfChannel { sessions[name]?.filters = list } else { people[id]?.request.filters = list }
        perform(effects)
    }

    private mutating func requestLayer(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let sender = pick(using: &generator) else { return }
        let layer = layer(using: &generator)
        let isForAll = Bool.random(using: &generator)
        run.note("\(id) requests \(layer) of \(isForAll ? "all" : "\(sender)")")
        guard let effects = try? model.layerRequested(layer, by: id, of: isForAll ? nil : sender) else { return }
        if isForAll { people[id]?.request.layer = layer } else { people[id]?.layers[sender] = layer }
        perform(effects)
    }

    private mutating func requestHeight(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let sender = pick(using: &generator) else { return }
        let height = [nil, 180, 720].randomElement(using: &generator)!
        let isForAll = Bool.random(using: &generator)
        run.note("\(id) requests height \(height ?? 0) of \(isForAll ? "all" : "\(sender)")")
        let effects = try? model.change(of: id) { model throws(RoomError) in
            try model.heightRequested(height, by: id, of: isForAll ? nil : sender)
        }
        guard let effects else { return }
        if isForAll { people[id]?.request.videoHeight = height } else { people[id]?.heights[sender] = height }
        perform(effects)
    }

    private mutating func requestSpotlightLayers(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator, { $1.request.spotlight != nil }), let sender = pick(using: &generator)
        else { return }
        let layers = Bool.random(using: &generator) ? spotlight(using: &generator) : nil
        run.note("\(id) requests spotlight layers of \(sender)")
        let effects = try? model.spotlightLayersRequested(layers.map { ($0.focus, $0.unfocus) }, by: id, of: sender)
        guard let effects else { return }
        people[id]?.spotlights[sender] = layers
        perform(effects)
    }

    private func options(using generator: inout SeededGenerator) -> MemberOptions {
        MemberOptions(
            profile: [nil, nil, .communication, .interactive].randomElement(using: &generator)!,
            role: [nil, .host, .audience].randomElement(using: &generator)!,
            source: Int.random(in: 0..<4, using: &generator) == 0 ? .screen : .camera,
            subscribesManually: Int.random(in: 0..<4, using: &generator) == 0
        )
    }

    private mutating func changeRole(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let person = people[id] else { return }
        let role = ChannelRole.allCases.randomElement(using: &generator)!
        run.note("\(id) becomes \(role)")
        let isInteractive = sessions[person.request.channel]?.profile == .interactive
        let hasRole = person.role.publishes == (role == .host)
        let isPermitted = person.isActive && isInteractive && (hasRole || person.request.role == .sendrecv)
        if isPermitted, !hasRole { take(role, of: id) }
        let before = played
        let effects = try? model.change(of: id) { model throws(RoomError) in
            try model.roleRequested(role, of: id, by: .member)
        }
        expect((effects != nil) == isPermitted, "who may change its role")
        perform(effects ?? [])
        for (slot, source) in before where source.source.track.peer != peers[id] {
            let viewer = peers.first { $0.value == slot.peer }?.key
            guard let viewer = viewer.flatMap({ people[$0] }), viewer.request.spotlight == nil,
                viewer.spotlights.isEmpty
            else { continue }
            let isSame = played[slot]?.source == source.source && played[slot]?.preference == source.preference
            expect(isSame, "a role change touches no other pair: \(slot)")
        }
    }

    private mutating func take(_ role: ChannelRole, of id: ParticipantID) {
        guard let person = people[id] else { return }
        people[id]?.role = role == .host ? .sendrecv : .recvonly
        guard person.isConnected else { return }
        if role == .host { return wentLive(id) }
        people[id]?.isAnnounced = false
        people[id]?.liveStep = nil
        for other in people.keys {
            people[other]?.layers[id] = nil
            people[other]?.heights[id] = nil
            people[other]?.spotlights[id] = nil
        }
        sessions[person.request.channel]?.turns.append(.dismissed(id))
    }

    private mutating func mute(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator), let person = people[id] else { return }
        let kind = MediaKind.allCases.randomElement(using: &generator)!
        let (isMuted, isOwn) = (Bool.random(using: &generator), Bool.random(using: &generator))
        run.note("\(kind) of \(id) is \(isMuted ? "muted" : "heard")\(isOwn ? "" : " by an operator")")
        let isPermitted = person.isActive && (!isOwn || isMuted || !person.mutedByOperator.contains(kind))
        if isPermitted {
            var muted = isOwn ? person.mutedByItself : person.mutedByOperator
            if isMuted { muted.insert(kind) } else { muted.remove(kind) }
            let isChange = !isOwn && muted != person.mutedByOperator
            if isOwn { people[id]?.mutedByItself = muted } else { people[id]?.mutedByOperator = muted }
            if isChange, kind == .audio, person.isLive, !person.speaking.isEmpty {
                sessions[person.request.channel]?.turns.append(isMuted ? .ceased(id) : .began(id))
            }
        }
        let effects = try? model.change(of: id) { model throws(RoomError) in
            try model.muteRequested(isMuted, [kind], of: id, by: isOwn ? .member : .operator)
        }
        expect((effects != nil) == isPermitted, "who may be muted")
        perform(effects ?? [])
    }

    private mutating func subscribe(using generator: inout SeededGenerator) {
        guard let id = pick(using: &generator) else { return }
        let user = pick(using: &generator).map(client)
        let request = (
            Bool.random(using: &generator),
            SubscriptionSelection(
                user: [nil, user].randomElement(using: &generator)!,
                kind: [nil, .audio, .video].randomElement(using: &generator)!,
                source: [nil, nil, .camera, .screen].randomElement(using: &generator)!
            )
        )
        run.note("\(id) \(request.0 ? "subscribes to" : "unsubscribes from") \(request.1)")
        guard let effects = try? model.subscribe(request.0, request.1, by: id) else { return }
        people[id]?.subscriptions.append(request)
        perform(effects)
    }

    private mutating func pass(using generator: inout SeededGenerator) {
        second += Int64.random(in: 0..<80, using: &generator)
        run.note("it is second \(second)")
        let now = RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: 0)
        let due = Set(everybody { _, person in person.endSecond.map { $0 <= second } ?? false })
        let effects = model.tick(at: now)
        let ended = effects.compactMap { effect -> ParticipantID? in
            if case .ended(let id, .lifetimeExpired) = effect { id } else { nil }
        }
        expect(Set(ended) == due, "whose time is over")
        perform(effects)
    }
}
