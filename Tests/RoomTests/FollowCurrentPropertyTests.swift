import Base
import MediaTypes
import RoomTestSupport
import SeedSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
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
        let run: SeededRun
        var bench = ModelBench(limits: RoomLimits(participantsPerChannelMax: 12, publishersPerChannelMax: 6))
        var members: [Member] = []
        var listeners: [(ListenerID, ChannelName)] = []
        /// What a media plane would have after carrying the effects out.
        var played: [TrackID: TrackID?] = [:]
        var plane: Set<PeerID> = []
        var step = 0
        let channels = ["a", "b", "c"].map { ChannelName($0)! }

        init(_ run: SeededRun) { self.run = run }

        mutating func perform(_ effects: [ChannelModel.Effect]) {
            for effect in effects {
                switch effect {
                case .connect(let slot, let source, _, let location):
                    run.expect(location == bench.locations[slot.peer], "the location of \(slot)")
                    let isThere = source.map(\.location) == source.flatMap { bench.locations[$0.track.peer] }
                    run.expect(isThere, "the location of what \(slot) plays")
                    played[slot] = .some(source?.track)
                case .removePeer(let peer, let location):
                    run.expect(location == bench.locations[peer], "the location of \(peer)")
                    run.expect(plane.remove(peer) != nil, "each peer is removed once")
                case .limitSending, .ended, .interrupted, .channelChanged, .streamsChanged, .connected, .notify,
                    .report, .checkTransport, .unusedLayersChanged, .request, .push, .requestKeyFrames:
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
                run.note("a listener comes to \(channel)")
                try bench.model.listenerArrived(id, at: channel)
                listeners.append((id, channel))
            default:
                guard let index = listeners.indices.randomElement(using: &generator) else { return }
                let (id, channel) = listeners.remove(at: index)
                run.note("a listener leaves \(channel)")
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
            run.note("\(id) joins \(channel), \(role) of \(following)")
            members.append(Member(id: id, channel: channel, role: role, following: following))
        }

        private mutating func activate(using generator: inout SeededGenerator) throws {
            guard let index = pick(using: &generator), !members[index].isActive else { return }
            let kinds: [MediaKind] = [[.audio], [.video], [.audio, .video], [.video, .audio]]
                .randomElement(using: &generator)!
            run.note("\(members[index].id) is set up with \(kinds)")
            plane.insert(bench.peers[members[index].id]!)
            members[index].isActive = true
            members[index].kinds = kinds
            if members[index].isConnected { members[index].liveSince = step }
            perform(try bench.activate(members[index].id, kinds: kinds))
        }

        private mutating func connect(_ index: Int) {
            run.note("\(members[index].id) connects")
            if members[index].isActive, !members[index].isConnected { members[index].liveSince = step }
            members[index].isConnected = true
            perform(bench.receive(.connected(over: .udp), from: members[index].id))
        }

        mutating func leave(_ reason: EndReason, using generator: inout SeededGenerator) {
            guard let index = pick(using: &generator) else { return }
            let member = members.remove(at: index)
            run.note("\(member.id) leaves, \(reason)")
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
                    run.expect((played[slot] ?? nil) == expected, "\(slot) plays another track")
                    let modeled = bench.model.slots(of: viewer.id)?.first { $0.mid == mid }?.source
                    run.expect(modeled == expected, "the source of \(slot)")
                }
            }
            let peers = Set(members.filter(\.isActive).map { bench.peers[$0.id]! })
            run.expect(plane == peers, "the peers of the media plane")
            var carried = [0, 0]
            for member in members { carried[Int(bench.location(member.id).loop.rawValue)] += 1 }
            run.expect(bench.model.placement.members == carried, "the members of the loops")
            for (name, channel) in bench.model.node.channels {
                let locations = members.filter { $0.channel == name }.map { bench.location($0.id) }
                let counts = Dictionary(locations.map { ($0, 1) }, uniquingKeysWith: +)
                run.expect(channel.locations == counts, "the locations of \(name)")
            }
            let viewers = members.count { $0.isActive && $0.role.watches }
            run.expect(bench.model.counts.viewers == viewers, "the count of viewers")
            let inUse = Set(members.map(\.channel)).union(listeners.map(\.1))
            run.expect(Set(bench.model.channels.keys) == inUse, "the channels")
        }
    }

    @Test(arguments: Seeds.cases(0..<40))
    func `random events lead to the expected subscriptions, and to an empty model at the end`(seeds: Seeds) async {
        for failure in await seeds.failures(of: Self.self, Self.run) { Issue.record("\(failure)") }
    }

    private static func run(_ run: SeededRun) throws {
        var world = World(run)
        try run.takeSteps(400) { generator in
            try world.advance(using: &generator)
            world.check()
        }
        var generator = SeededGenerator(seed: run.seed)
        while !world.members.isEmpty {
            world.leave(.left, using: &generator)
            world.check()
        }
        for (id, channel) in world.listeners { world.bench.model.listenerLeft(id, from: channel) }
        run.expect(world.bench.model.isEmpty && world.plane.isEmpty, "the model is empty")
    }
}
