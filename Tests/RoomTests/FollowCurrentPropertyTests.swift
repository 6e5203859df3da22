import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Room

/// Random events against a second implementation of the rules, which evaluates the whole history instead of one event
/// at a time.
struct FollowCurrentPropertyTests {
    private struct Member {
        let id: ParticipantID
        let channel: ChannelName
        let role: Role
        let following: Following
        var kinds: [MediaKind] = []
        var isActive = false
        var isConnected = false
        /// When it became active and connected.
        var liveSince: Int?
    }

    private struct World {
        var bench = ModelBench(limits: RoomLimits(participantsPerChannelMax: 12, publishersPerChannelMax: 6))
        var members: [Member] = []
        var listeners: [(ListenerID, ChannelName)] = []
        /// What a media plane would have after carrying the effects out.
        var played: [TrackID: TrackID?] = [:]
        var plane: Set<PeerID> = []
        var step = 0
        let channels = ["a", "b", "c"].map { ChannelName($0)! }

        mutating func perform(_ effects: [ChannelModel.Effect]) {
            for effect in effects {
                switch effect {
                case .connect(let slot, let source, _, let location):
                    #expect(location == bench.locations[slot.peer])
                    #expect(source.map(\.location) == source.flatMap { bench.locations[$0.track.peer] })
                    played[slot] = .some(source?.track)
                case .removePeer(let peer, let location):
                    #expect(location == bench.locations[peer])
                    #expect(plane.remove(peer) != nil, "each peer is removed once")
                case .limitSending, .ended, .interrupted, .channelChanged, .streamsChanged, .connected, .notify,
                    .report, .checkTransport, .unusedLayersChanged, .request:
                    break
                }
            }
        }

        mutating func advance(using generator: inout SeededGenerator) throws {
            step += 1
            switch Int.random(in: 0..<12, using: &generator) {
            case 0...2: join(using: &generator)
            case 3...5: try activate(using: &generator)
            case 6...7:
                if let index = pick(using: &generator) { connect(index) }
            case 8: leave(.left, using: &generator)
            case 9: leave(.transport(.consentExpired), using: &generator)
            case 10:
                let id = ListenerID(rawValue: UInt64(step))
                let channel = channels.randomElement(using: &generator)!
                try bench.model.listenerArrived(id, at: channel)
                listeners.append((id, channel))
            default:
                guard let index = listeners.indices.randomElement(using: &generator) else { return }
                let (id, channel) = listeners.remove(at: index)
                bench.model.listenerLeft(id, from: channel)
            }
        }

        private func pick(using generator: inout SeededGenerator) -> Int? {
            members.indices.randomElement(using: &generator)
        }

        private mutating func join(using generator: inout SeededGenerator) {
            let channel = channels.randomElement(using: &generator)!
            let role = Role.allCases.randomElement(using: &generator)!
            var following = Following.currentPublisher
            if Bool.random(using: &generator), let target = members.randomElement(using: &generator) {
                following = .participant(target.id)
            }
            guard let id = try? bench.reserve(role, following: following, in: channel) else { return }
            members.append(Member(id: id, channel: channel, role: role, following: following))
        }

        private mutating func activate(using generator: inout SeededGenerator) throws {
            guard let index = pick(using: &generator), !members[index].isActive else { return }
            let kinds: [MediaKind] = [[.audio], [.video], [.audio, .video], [.video, .audio]]
                .randomElement(using: &generator)!
            plane.insert(bench.peers[members[index].id]!)
            members[index].isActive = true
            members[index].kinds = kinds
            if members[index].isConnected { members[index].liveSince = step }
            perform(try bench.activate(members[index].id, kinds: kinds))
        }

        private mutating func connect(_ index: Int) {
            if members[index].isActive, !members[index].isConnected { members[index].liveSince = step }
            members[index].isConnected = true
            perform(bench.receive(.connected(over: .udp), from: members[index].id))
        }

        mutating func leave(_ reason: EndReason, using generator: inout SeededGenerator) {
            guard let index = pick(using: &generator) else { return }
            let member = members.remove(at: index)
            let peer = bench.peers[member.id]!
            if case .transport(let why) = reason {
                plane.remove(peer)
                perform(bench.receive(.closed(why), from: member.id))
            } else {
                perform(bench.model.left(member.id, reason: reason))
            }
            for mid in [ModelBench.audio, ModelBench.video] { played[TrackID(peer: peer, mid: mid)] = nil }
        }

        /// Compares every slot with what the rules say.
        func check() {
            for viewer in members where viewer.isActive && viewer.role.watches {
                let source: Member?
                switch viewer.following {
                case .currentPublisher:
                    source = members.filter {
                        $0.channel == viewer.channel && $0.role.publishes && $0.liveSince != nil && $0.id != viewer.id
                    }.max { $0.liveSince! < $1.liveSince! }
                case .participant(let id):
                    source = members.first { $0.id == id && $0.isActive }
                case .everyone: source = nil
                }
                for kind in viewer.kinds {
                    let mid = kind == .audio ? ModelBench.audio : ModelBench.video
                    let slot = bench.track(viewer.id, mid)
                    let expected = source.flatMap { $0.kinds.contains(kind) ? bench.track($0.id, mid) : nil }
                    #expect((played[slot] ?? nil) == expected)
                    #expect(bench.model.slots(of: viewer.id)?.first { $0.mid == mid }?.source == expected)
                }
            }
            #expect(plane == Set(members.filter(\.isActive).map { bench.peers[$0.id]! }))
            var carried = [0, 0]
            for member in members { carried[Int(bench.location(member.id).loop.rawValue)] += 1 }
            #expect(bench.model.placement.members == carried)
            for (name, channel) in bench.model.node.channels {
                let locations = members.filter { $0.channel == name }.map { bench.location($0.id) }
                #expect(channel.locations == Dictionary(locations.map { ($0, 1) }, uniquingKeysWith: +))
            }
            #expect(bench.model.counts.viewers == members.filter { $0.isActive && $0.role.watches }.count)
            let inUse = Set(members.map(\.channel)).union(listeners.map(\.1))
            #expect(Set(bench.model.channels.keys) == inUse)
        }
    }

    @Test(arguments: 0..<40)
    func `random events lead to the expected subscriptions, and to an empty model at the end`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var world = World()
        for _ in 0..<400 {
            try world.advance(using: &generator)
            world.check()
        }
        while !world.members.isEmpty {
            world.leave(.left, using: &generator)
            world.check()
        }
        for (id, channel) in world.listeners { world.bench.model.listenerLeft(id, from: channel) }
        #expect(world.bench.model.isEmpty && world.plane.isEmpty, "seed \(seed)")
    }
}
