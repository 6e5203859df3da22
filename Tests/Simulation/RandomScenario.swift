import Base
import ChannelTypes
import Client
import MediaTypes
import Room
import RoomTestSupport
import SeedSupport
import TestSupport
import Wire

@testable import Forwarding

/// Some seconds of nodes that a seed draws: rooms whose participants come, go, vanish, change addresses and restart ICE on
/// a network that treats them badly, then a quiet time, then the end.
final class RandomScenario {
    let world: World
    private let run: SeededRun
    private var generator: SeededGenerator
    /// Everybody who ever joined, with who left.
    private var everybody: [RoomParticipant] = []
    private var gone: Set<ParticipantID> = []
    private var vanished: Set<ParticipantID> = []
    /// Viewers on another node than their publisher's.
    private var relayed: [(viewer: World.Host, publisher: RoomParticipant, arrivals: Arrivals)] = []
    /// Whether nothing gets lost on the way, so that nobody may miss anything.
    private let isClean: Bool
    private let rooms: [ChannelName]
    private var nextAddress: UInt32 = 1
    /// How many links got a bottleneck.
    private(set) var limitedLinks = 0

    init(_ run: SeededRun, isTraced: Bool = false) throws {
        self.run = run
        generator = SeededGenerator(seed: run.seed &* 0x9E37_79B9)
        let nodes = Int.random(in: 1...3, using: &generator)
        let loops = Int.random(in: 1...3, using: &generator)
        world = try World(seed: run.seed, nodes: nodes, loops: loops, estimates: .random(using: &generator))
        isClean = Int.random(in: 0..<3, using: &generator) == 0
        rooms = ["lobby", "kitchen", "study"].compactMap { ChannelName($0) }
        if isTraced { world.trace = Trace() }
        for node in world.nodes {
            node.delay = .microseconds(.random(in: 0...3_000, using: &generator))
            var loads = SeededGenerator(seed: generator.next())
            node.drawLoad = { LoopLoad(busyShare: .random(in: 0...0.6, using: &loads)) }
        }
        world.network.standard = LinkConditions(delay: .milliseconds(.random(in: 1...40, using: &generator)))
        guard !isClean else { return }
        world.network.standard.jitter = .milliseconds(.random(in: 0...10, using: &generator))
        world.network.standard.loss = .random(in: 0...0.05, using: &generator)
        world.network.standard.duplication = 0.01
        world.network.standard.reordering = 0.01
    }

    private func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        run.expect(holds, "\(world.now.nanoseconds / 1_000_000) ms: \(what())")
    }

    /// Those who are there and connected to the network, in the order of joining.
    private var present: [RoomParticipant] {
        everybody.filter { $0.endReason == nil && !gone.contains($0.id) && !vanished.contains($0.id) }
    }

    func perform() throws {
        let count = Int.random(in: 12...20, using: &generator)
        let afterSteps = generator
        try run.takeSteps(count) { step in
            generator = step
            try act()
            world.run(for: .milliseconds(.random(in: 10...300, using: &generator)))
            checkAlways()
        }
        generator = afterSteps
        calm()
        checkQuiet()
        end()
    }

    // MARK: - What happens

    private func act() throws {
        let others = present
        switch Int.random(in: 0..<16, using: &generator) {
        case 0...5 where others.count < 9: try join()
        case 6 where world.nodes.count > 1 && relayed.count < 2: try relay()
        case 7, 8: if others.count > 2, let one = others.randomElement(using: &generator) { leave(one) }
        case 9:
            guard others.count > 2, let one = others.randomElement(using: &generator) else { return }
            run.note("\(one.peer) vanishes")
            vanished.insert(one.id)
            world.vanish(one.host)
        case 10, 11:
            if let one = others.filter(\.isActive).randomElement(using: &generator) { try restartICE(one) }
        case 12:
            guard !isClean, let one = others.filter(\.isActive).randomElement(using: &generator) else { return }
            let target = address(like: one.host.address)
            run.note("\(one.peer) moves to \(target)")
            world.move(one.host, to: target)
            try restartICE(one)
        case 13:
            guard !isClean, let one = others.randomElement(using: &generator) else { return }
            var link = world.network.standard
            let start = world.now + .milliseconds(.random(in: 0...100, using: &generator))
            let outage = start..<start + .milliseconds(.random(in: 10...1_500, using: &generator))
            link.outages = [outage]
            run.note("\(one.peer) is cut off for \(outage.upperBound - start), \(start - world.now) from now")
            world.network.conditions[one.host.address] = link
        case 14:
            guard let one = others.randomElement(using: &generator) else { return }
            let isSending = Bool.random(using: &generator)
            run.note("\(one.peer) \(isSending ? "sends" : "stops sending")")
            one.client?.setSending(isSending)
        case 15:
            guard !isClean, let one = others.randomElement(using: &generator) else { return }
            let rate = Int.random(in: 40_000...600_000, using: &generator)
            run.note("the link of \(one.peer) carries \(rate) bit/s")
            var link = world.network.standard
            link.rate = rate
            world.network.conditions[one.host.address] = link
            limitedLinks += 1
        default: break
        }
    }

    private func join() throws {
        guard let room = rooms.randomElement(using: &generator) else { return }
        let roles: [Role] = [.sendonly, .recvonly, .recvonly, .sendrecv]
        var settings = RoomParticipant.Settings(room, roles.randomElement(using: &generator) ?? .sendrecv)
        settings.node = .random(in: 0..<world.nodes.count, using: &generator)
        if settings.role == .sendrecv || Int.random(in: 0..<3, using: &generator) == 0 {
            settings.following = .everyone
        } else if Int.random(in: 0..<3, using: &generator) == 0,
            let publisher = present.filter({
                $0.settings.role.publishes && $0.channel == room && $0.node.number == settings.node
            }).randomElement(using: &generator)
        {
            settings.following = .participant(publisher.id)
        }
        settings.media.sourceNumber = UInt32(everybody.count + 1)
        settings.media.video?.bitrate = 120_000
        settings.media.video?.framesPerSecond = 10
        if Int.random(in: 0..<3, using: &generator) == 0 { settings.rids = ["r0", "r1"].compactMap { RID($0) } }
        settings.setupDelay = .milliseconds(.random(in: 0...60, using: &generator))
        let participant = try world.join(settings)
        run.note("\(participant.peer) joins \(room) at \(settings.node), \(settings.role) of \(settings.following)")
        everybody.append(participant)
    }

    /// A viewer beside the rooms, on another node, watches a publisher over the link between the nodes.
    private func relay() throws {
        let publishers = present.filter { $0.settings.role.publishes && $0.isActive && isKnown($0) }
        guard let publisher = publishers.randomElement(using: &generator) else { return }
        let nodes = world.nodes.filter { $0 !== publisher.node }
        guard let node = nodes.randomElement(using: &generator), let loop = node.loops.randomElement(using: &generator)
        else { return }
        let viewer = try world.watch(loop: loop)
        run.note("a viewer at \(node.number) watches \(publisher.peer)")
        let arrivals = Arrivals()
        arrivals.attach(to: viewer, of: world)
        try world.connect(viewer, to: publisher.host)
        relayed.append((viewer, publisher, arrivals))
    }

    private func isKnown(_ participant: RoomParticipant) -> Bool {
        world.loops[participant.loop].core.peer(participant.peer) != nil
    }

    private func leave(_ participant: RoomParticipant) {
        run.note("\(participant.peer) leaves")
        gone.insert(participant.id)
        let host = participant.host
        // Some clients close their connection, others leave by signaling alone.
        if participant.isActive, Bool.random(using: &generator) {
            host.core.removePeer(participant.peer, at: world.now, into: host.batch)
            world.settle(host)
        }
        world.leave(participant)
        world.schedule(after: .milliseconds(500)) { [world] in world.vanish(host) }
    }

    private func restartICE(_ participant: RoomParticipant) throws {
        guard isKnown(participant), participant.host.core.peer(participant.peer) != nil else { return }
        run.note("\(participant.peer) restarts ICE")
        try world.restartICE(participant.host)
    }

    private func address(like address: TransportAddress) -> TransportAddress {
        nextAddress += 1
        let ip =
            address.ip.isV4
            ? IPAddress(v4: 0xCB00_7100 + nextAddress)
            : IPAddress(high: 0x2001_0DB8_0002_0000, low: UInt64(nextAddress))
        return TransportAddress(ip: ip, port: 5_000)
    }

    // MARK: - What has to be at any time

    private func checkAlways() {
        for participant in everybody {
            let sources = Set(
                everybody.filter { $0.channel == participant.channel && $0.node === participant.node }
                    .map(\.settings.media.sourceNumber)
            )
            for (mid, section) in participant.arrivals.sections {
                expect(section.sources.isSubset(of: sources), "\(participant.peer)/\(mid) gets another room's media")
                expect(
                    !section.sources.contains(participant.settings.media.sourceNumber),
                    "\(participant.peer)/\(mid) gets its own media"
                )
            }
            for receiver in participant.client?.receivers ?? [] {
                expect(receiver.verifier.duplicates == 0, "\(participant.peer)/\(receiver.mid) gets packets twice")
                expect(receiver.verifier.unreadable == 0, "\(participant.peer)/\(receiver.mid) gets broken packets")
            }
        }
        for (viewer, publisher, arrivals) in relayed {
            for (mid, section) in arrivals.sections {
                expect(
                    section.sources.isSubset(of: [publisher.settings.media.sourceNumber]),
                    "\(viewer.address)/\(mid) gets another publisher's media"
                )
            }
        }
    }

    // MARK: - The quiet time

    /// The network is perfect from now on, and whoever publishes sends.
    private func calm() {
        world.network.conditions = [:]
        // On a clean network it is already, and with another delay packets would overtake others: the handshake too, before which
        // a client can read none.
        if !isClean { world.network.standard = LinkConditions(delay: .milliseconds(10)) }
        let start = world.now
        var missing: [String] = []
        while world.now - start < .seconds(30) {
            for participant in present where participant.settings.role.publishes {
                participant.client?.setSending(true)
            }
            world.run(for: .milliseconds(100))
            missing = whatIsMissing(since: start)
            if missing.isEmpty { break }
            requestKeyFrames(since: start)
        }
        for what in missing { expect(false, "after thirty quiet seconds \(what)") }
    }

    /// A decoder that gets packets and has no picture asks for one.
    private func requestKeyFrames(since start: Instant) {
        for participant in present {
            let isStuck = participant.client?.receivers.contains {
                $0.kind == .video && !$0.hasEnded && $0.verifier.lastDecodedAt.map { $0 < start } ?? true
            }
            guard isStuck == true else { continue }
            participant.host.core.requestKeyFrame(of: participant.peer, at: world.now)
            world.settle(participant.host)
        }
    }

    private func whatIsMissing(since start: Instant) -> [String] {
        var missing: [String] = []
        for participant in present {
            guard participant.client?.isConnected == true, isKnown(participant) else {
                missing.append("\(participant.peer) is not connected")
                continue
            }
            let slots = participant.node.rooms.slots(of: participant.id) ?? []
            for slot in slots {
                guard let source = slot.source,
                    let sender = present.first(where: { $0.peer == source.peer })
                else { continue }
                let section = participant.arrivals.sections[slot.mid]
                let isThere =
                    section?.newest.map {
                        $0.at > start && $0.source == sender.settings.media.sourceNumber
                    } == true
                if !isThere { missing.append("\(participant.peer)/\(slot.mid) gets nothing of \(source)") }
                guard slot.kind == .video, isThere else { continue }
                let decoded = participant.client?.receiver(slot.mid)?.verifier.lastDecodedAt
                if decoded.map({ $0 > start }) != true {
                    missing.append("\(participant.peer)/\(slot.mid) decodes nothing of \(source)")
                }
            }
            missing += whoIsMissing(of: slots, to: participant)
        }
        for (viewer, publisher, arrivals) in relayed where present.contains(where: { $0 === publisher }) {
            for (mid, section) in arrivals.sections where section.newest.map({ $0.at > start }) != true {
                missing.append("\(viewer.address)/\(mid) gets nothing of \(publisher.peer)")
            }
        }
        return missing
    }

    /// Whether the model's slots play everybody that the participant is to see.
    private func whoIsMissing(of slots: [Slot], to participant: RoomParticipant) -> [String] {
        guard participant.settings.role.watches else { return [] }
        let senders = present.filter {
            $0 !== participant && $0.settings.role.publishes && $0.channel == participant.channel
                && $0.node === participant.node
        }
        let played = Set(slots.compactMap(\.source?.peer))
        switch participant.settings.following {
        case .everyone:
            return senders.filter { !played.contains($0.peer) }.map { "\(participant.peer) has no slot for \($0.peer)" }
        case .currentPublisher:
            return senders.isEmpty || !played.isEmpty ? [] : ["\(participant.peer) follows nobody"]
        case .participant(let target):
            return senders.contains { $0.id == target && !played.contains($0.peer) }
                ? ["\(participant.peer) does not follow its target"] : []
        }
    }

    private func checkQuiet() {
        for participant in everybody { participant.client?.setSending(false) }
        world.run(for: .milliseconds(300))
        checkAlways()
        for node in world.nodes {
            expect(node.isSettled, "node \(node.number) has commands left")
            for loop in node.loops {
                let core = world.loops[loop].core
                let own = node.participants.values.filter { $0.loop == loop && $0.isActive }
                let guests = relayed.filter { $0.viewer.client.flatMap { world.homes[$0.id] } == loop }
                expect(core.peerCount == own.count + guests.count, "loop \(loop) has the model's peers")
                expect(core.gauges.peers == core.peerCount, "the gauge of loop \(loop)")
                for participant in own { check(participant, in: core) }
            }
        }
        guard isClean else { return }
        for participant in everybody {
            for (mid, section) in participant.arrivals.sections {
                expect(section.missing == 0, "\(participant.peer)/\(mid) misses \(section.missing) packets")
            }
        }
        for (viewer, _, arrivals) in relayed {
            for (mid, section) in arrivals.sections {
                expect(section.missing == 0, "\(viewer.address)/\(mid) misses \(section.missing) packets")
            }
        }
    }

    /// The model and the core agree on what a participant's slots play.
    private func check(_ participant: RoomParticipant, in core: Forwarder) {
        let peer = core.peer(participant.peer)
        expect(peer != nil, "\(participant.peer) is on its loop")
        for slot in participant.node.rooms.slots(of: participant.id) ?? [] {
            let played = peer?.slot(slot.mid)?.source?.id
            expect(played == slot.source, "\(participant.peer)/\(slot.mid) plays \(String(describing: played))")
        }
    }

    // MARK: - The end

    private func end() {
        for participant in present { leave(participant) }
        for (viewer, _, _) in relayed { world.remove(viewer) }
        // Those who vanished are found out when their consent expires, or 30 s later if a nominated pair is not verified then.
        for _ in 0..<75 where !isEmpty { world.run(for: .seconds(1)) }
        for node in world.nodes {
            expect(node.rooms.isEmpty, "the rooms of node \(node.number) are empty")
            expect(node.participants.isEmpty && node.isSettled, "node \(node.number) has nothing to do")
        }
        for (index, loop) in world.loops.enumerated() {
            let counters = loop.core.counters
            expect(loop.core.isEmpty, "loop \(index) is empty")
            expect(loop.core.gauges.historyBytes == 0, "loop \(index) keeps no packets")
            let closed = PeerCloseReason.allCases.reduce(0) { $0 + counters[$1] }
            expect(counters.peersAdded == closed, "loop \(index) added \(counters.peersAdded), closed \(closed)")
            let carried = world.links[index].reduce(0) { $0 + ($1?.packetsCarried ?? 0) }
            expect(counters.packetsTransferred == carried, "loop \(index) relayed what its links carried")
            expect(counters.packetsNotTransferred == 0, "loop \(index) relayed everything")
        }
        let closed = world.nodeEvents.filter { if case .closed = $0.1 { true } else { false } }.map(\.0)
        expect(Set(closed).count == closed.count, "a peer is closed once")
        let cores = world.loops.map(\.core) + everybody.map(\.host.core) + relayed.map(\.viewer.core)
        let received = cores.reduce(0) { $0 + Int($1.counters.datagramsReceived) }
        let network = world.network
        expect(received == network.delivered - world.undeliverable, "every core received what the network delivered")
        expect(
            network.sent + network.duplicated == network.delivered + network.lost + network.underWay,
            "no datagram disappeared"
        )
    }

    private var isEmpty: Bool {
        world.nodes.allSatisfy { $0.rooms.isEmpty && $0.isSettled } && world.loops.allSatisfy(\.core.isEmpty)
    }
}
