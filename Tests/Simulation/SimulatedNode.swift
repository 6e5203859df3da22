import Base
import Client
import MediaTypes
import Negotiation
import RoomTestSupport

@testable import Admission
@testable import ChannelTypes
@testable import Forwarding
@testable import Room

/// One node of a world: its rooms, and the commands of their channels to its loops.
///
/// The models and the ``MediaCommandQueue``s are the product's. What `Channel` and `MediaLoop` do around them with
/// `await` takes ``delay`` in virtual time here.
final class SimulatedNode {
    private struct Queue: Hashable {
        let channel: ChannelName
        let location: MediaLocation
    }
    private struct Arrival: Hashable {
        let track: TrackID
        let home: Int
    }

    /// Its place in ``World/nodes``.
    let number: Int
    /// The places of its loops in ``World/loops``.
    let loops: Range<Int>
    let incarnation: NodeIncarnation
    /// Those of its loops, in their order.
    private let locations: [MediaLocation]
    private(set) var rooms: SynchronousNode
    /// The participants that are there.
    private(set) var participants: [ParticipantID: RoomParticipant] = [:]
    /// What a call from a channel to a loop takes, or an event the other way.
    var delay = Interval.zero
    /// Draws loads that the loops are said to measure each second; without it placement sees only participants.
    var drawLoad: (() -> LoopLoad)?
    /// Connections of slots that a loop refused, because a peer or a track had gone.
    private(set) var refusedConnections = 0
    unowned var world: World!

    private var commands: [Queue: MediaCommandQueue] = [:]
    private var working: Set<Queue> = []
    private var crossLoopConnects: Set<TrackID> = []
    /// Tracks that are being brought to a loop, with what waits for them.
    private var arriving: [Arrival: [() -> Void]] = [:]

    init(number: Int, loops: Range<Int>) {
        self.number = number
        self.loops = loops
        guard let incarnation = NodeIncarnation(rawValue: UInt32(number) + 1) else {
            preconditionFailure("a world has few nodes")
        }
        self.incarnation = incarnation
        let locations = (0..<loops.count).map { index in
            MediaLocation(node: incarnation, loop: LoopIndex(rawValue: UInt16(index)))
        }
        rooms = SynchronousNode(node: incarnation, locations: locations)
        self.locations = locations
    }

    /// The place of a loop in ``World/loops``.
    func index(of location: MediaLocation) -> Int { loops.lowerBound + Int(location.loop.rawValue) }

    /// Whether nothing is under way between the channels and the loops.
    var isSettled: Bool { commands.isEmpty && working.isEmpty && crossLoopConnects.isEmpty && arriving.isEmpty }

    // MARK: - Events

    /// Hands an event to a channel and performs its effects.
    func change<Refusal>(
        _ name: ChannelName,
        _ event: (inout SynchronousNode) throws(Refusal) -> [ChannelModel.Effect]
    ) throws(Refusal) {
        rooms.now = world.roomTime
        perform(try event(&rooms), of: name)
    }

    func reserve(
        _ request: JoinRequest,
        id: ParticipantID,
        session: ChannelSessionID
    ) throws(RoomError) -> ParticipantLocation {
        rooms.now = world.roomTime
        let place = try rooms.joinRequested(request, id: id, session: session)
        precondition(rooms.evictions.isEmpty, "a world's nodes are not full")
        world.startTicking()
        return place
    }

    func add(_ participant: RoomParticipant) { participants[participant.id] = participant }

    /// A loop reports an event of a peer.
    func received(_ event: PeerEvent, from peer: PeerID) {
        guard peer.node == incarnation else { return }
        world.schedule(after: delay) { [self] in
            guard let name = rooms.channel(of: peer) else { return }
            change(name) { $0.received(event, from: peer) }
        }
    }

    func tick() {
        let second = world.now.nanoseconds / 1_000_000_000
        let now = world.roomTime
        for name in rooms.node.channelsDue(at: second).sorted(by: { $0.value < $1.value }) {
            change(name) { rooms in rooms.change(name) { $0.tick(at: now) } }
        }
        guard let drawLoad else { return }
        for location in locations {
            var load = drawLoad()
            load.peers = world.loops[index(of: location)].core.peerCount
            rooms.node.loadMeasured(load, of: location)
        }
    }

    /// Ends a participant, as its signaling or an operator does.
    func end(_ participant: RoomParticipant, reason: EndReason) {
        change(participant.channel) { $0.left(participant.id, reason: reason) }
    }

    // MARK: - Effects

    private func perform(_ effects: [ChannelModel.Effect], of name: ChannelName) {
        for effect in effects {
            world.trace?.note(effect, at: world.now)
            switch effect {
            case .connect(let slot, let source, let preference, let location):
                let queue = Queue(channel: name, location: location)
                let target = MediaCommandQueue.Target(source: source, preference: preference)
                if commands[queue, default: MediaCommandQueue()].setTarget(target, for: slot) {
                    enqueue(.connect(slot), at: queue)
                }
            case .limitSending(let peer, let bitsPerSecond, let location):
                let queue = Queue(channel: name, location: location)
                enqueue(.limitSending(peer, bitsPerSecond: bitsPerSecond), at: queue)
            case .removePeer(let peer, let location):
                enqueue(.remove(peer), at: Queue(channel: name, location: location))
            case .streamsChanged(let id): participants[id]?.streamsChanged()
            case .ended(let id, let reason): participants.removeValue(forKey: id)?.endReason = reason
            case .checkTransport(let id, let peer, let location):
                world.schedule(after: delay) { [self] in checkTransport(id, peer, of: name, at: location) }
            case .requestKeyFrames(let peer, let location):
                enqueue(.requestKeyFrames(peer), at: Queue(channel: name, location: location))
            case .connected, .interrupted, .notify, .channelChanged, .report, .unusedLayersChanged, .request, .push:
                break
            }
        }
    }

    private func checkTransport(
        _ id: ParticipantID,
        _ peer: PeerID,
        of name: ChannelName,
        at location: MediaLocation
    ) {
        let path = world.loops[index(of: location)].core.statistics(of: peer, at: world.now)?.path
        change(name) { $0.change(of: id) { $0.transportChecked(id, hasPath: path != nil) } }
    }

    // MARK: - Commands

    /// A target that waits for a slot which is gone.
    func dropTarget(for slot: TrackID, of name: ChannelName, at location: MediaLocation) {
        _ = commands[Queue(channel: name, location: location)]?.takeTarget(for: slot)
    }

    /// Ends a peer whose participant ended while it was being set up.
    func remove(_ peer: PeerID, of name: ChannelName, at location: MediaLocation) {
        enqueue(.remove(peer), at: Queue(channel: name, location: location))
    }

    private func enqueue(_ command: MediaCommandQueue.Command, at queue: Queue) {
        commands[queue, default: MediaCommandQueue()].add(command)
        guard working.insert(queue).inserted else { return }
        world.schedule(after: delay) { [self] in sendCommands(queue) }
    }

    private func sendCommands(_ queue: Queue) {
        guard let waiting = commands[queue]?.takeCommands(), !waiting.isEmpty else {
            working.remove(queue)
            if commands[queue]?.isEmpty == true { commands[queue] = nil }
            return
        }
        let home = index(of: queue.location)
        for command in waiting {
            switch command {
            case .remove(let peer):
                world.loops[home].core.removePeer(peer, at: world.now, into: world.loops[home].batch)
            case .data(let command):
                world.loops[home].core.perform([command], at: world.now, into: world.loops[home].batch)
            case .requestKeyFrames(let peer):
                world.loops[home].core.requestKeyFrame(of: peer, at: world.now)
            case .limitSending(let peer, let bitsPerSecond):
                world.loops[home].core.limitSending(to: peer, bitsPerSecond: bitsPerSecond, at: world.now)
            case .connect(let slot):
                guard !crossLoopConnects.contains(slot), let target = commands[queue]?.takeTarget(for: slot) else {
                    continue
                }
                if let source = target.source, source.location != queue.location {
                    crossLoopConnects.insert(slot)
                    connectAcrossLoops(slot, source, target.preference, home: home) { [self] in
                        crossLoopConnects.remove(slot)
                        if commands[queue]?.hasTarget(for: slot) == true { enqueue(.connect(slot), at: queue) }
                    }
                } else {
                    connect(slot, to: target.source?.track, target.preference, home: home)
                }
            }
        }
        world.settle(world.loops[home])
        world.schedule(after: delay) { [self] in sendCommands(queue) }
    }

    private func connect(_ slot: TrackID, to track: TrackID?, _ preference: LayerPreference, home: Int) {
        do {
            try world.loops[home].core.connect(slot: slot, to: track, preference: preference, at: world.now)
        } catch {
            refusedConnections += 1
        }
    }

    /// `MediaLoop.connect(slot:to:of:preference:)`: one call a track brings it to the slot's loop, the others wait for that.
    private func connectAcrossLoops(
        _ slot: TrackID,
        _ source: PlacedTrack,
        _ preference: LayerPreference,
        home: Int,
        _ completion: @escaping () -> Void
    ) {
        let (core, track, arrival) = (world.loops[home].core, source.track, Arrival(track: source.track, home: home))
        if core.mirror(of: track) != nil {
            connect(slot, to: track, preference, home: home)
            world.settle(world.loops[home])
            completion()
            return
        }
        if arriving[arrival] != nil {
            arriving[arrival]?.append { [self] in
                connectAcrossLoops(slot, source, preference, home: home, completion)
            }
            return
        }
        arriving[arrival] = []
        let finish = { [self] in
            for body in arriving.removeValue(forKey: arrival) ?? [] { body() }
            completion()
        }
        guard let relay = try? core.makeMirrorID() else { preconditionFailure("a world has few tracks") }
        let origin = world.loops[index(of: source.location)]
        world.schedule(after: delay) { [self] in
            let link = LinkID(rawValue: UInt32(home))
            guard let track = try? origin.core.exportTrack(track, as: relay, over: link, at: world.now) else {
                refusedConnections += 1
                core.discardMirrorID(relay)
                finish()
                return
            }
            world.settle(origin)
            world.schedule(after: delay) { [self] in
                core.addMirror(track, as: relay, from: LinkID(rawValue: UInt32(origin.loop ?? 0)), at: world.now)
                connect(slot, to: track.id, preference, home: home)
                core.removeUnusedMirror(of: track.id)
                world.settle(world.loops[home])
                finish()
            }
        }
    }
}
