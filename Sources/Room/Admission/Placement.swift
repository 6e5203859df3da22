import MediaTypes

/// Chooses the media loop of a newcomer by the loops' loads.
///
/// A loop's load is a share of one core: its members at the load of the node's average member, plus what the loop
/// measured beyond that. A newcomer counts as an average member from its join on. The measured load is the mean of two
/// values: the busy time, which includes all work and is noisy over one second, and the loop's packets at the node's
/// average cost, which is steady and includes packets only. A difference within ``noiseShare`` is ignored, so that idle
/// loops fill evenly.
///
/// Members of one channel stay together while load permits, because a track is transferred once to each other loop that has
/// a viewer of it. A newcomer goes to the loop with most members of its channel, unless that loop is more than
/// ``slackMembers`` average members above the least loaded one.
struct Placement: Sendable {
    private struct Loop: Sendable {
        var members = 0
        var measured = LoopLoad()
        /// Joins less leaves since the last measurement.
        var joined = 0
        /// Whether the last request for its load is unanswered.
        var isSilent = false
    }
    private var loops: [Loop]
    /// The loops' locations, and where each stands in `loops`.
    private let locations: [MediaLocation]
    private let indices: [MediaLocation: Int]

    /// How far above the least loaded loop a loop of the channel may be, in members of average load. With two, a call
    /// of two stays on its loop, and a large channel is spread evenly to within a few members.
    static let slackMembers = 2.0
    /// The noise of measured loads: a loop's share of a core over one second, on a machine that does other work too.
    static let noiseShare = 0.05
    /// The minimum load of a member, such as a viewer of a thin stream or of a publisher that has not joined yet. A
    /// stream of 1.5 Mbit/s, 160 packets a second at 0.6 µs, costs about as much.
    static let memberShareMin = 0.000_1

    /// - Parameter locations: the node's loops, at least one. Of equal loops the first is chosen.
    init(locations: [MediaLocation]) {
        precondition(!locations.isEmpty, "there is no media without a loop")
        precondition(Set(locations).count == locations.count, "each loop is named once")
        self.locations = locations
        indices = Dictionary(uniqueKeysWithValues: locations.enumerated().map { ($1, $0) })
        loops = Array(repeating: Loop(), count: locations.count)
    }

    private func index(of location: MediaLocation) -> Int {
        guard let index = indices[location] else { preconditionFailure("\(location) is a loop of this node") }
        return index
    }

    /// Participants by loop, in the order of the locations.
    package var members: [Int] { loops.map(\.members) }
    var isEmpty: Bool { loops.allSatisfy { $0.members == 0 } }

    /// Chooses the loop of a newcomer and counts it there.
    /// - Parameter channelMembers: the number of members of the newcomer's channel by loop.
    mutating func join(near channelMembers: [MediaLocation: Int]) -> MediaLocation {
        let loads = loads
        let least = loads.indices.min { loads[$0] < loads[$1] } ?? 0
        let bound = loads[least] + Self.slackMembers * memberShare
        let own = channelMembers.map { (index: index(of: $0.key), members: $0.value) }
            .filter { loads[$0.index] <= bound }
            .max { ($0.members, $1.index) < ($1.members, $0.index) }
        let chosen = own?.index ?? least
        loops[chosen].members += 1
        loops[chosen].joined += 1
        return locations[chosen]
    }

    /// A participant of the loop at `location` left.
    mutating func leave(_ location: MediaLocation) {
        let index = index(of: location)
        precondition(loops[index].members > 0, "only a member leaves")
        loops[index].members -= 1
        loops[index].joined -= 1
    }

    /// Takes the load that the loop at `location` measured. The measurements of a loop have about equal periods.
    mutating func measured(_ load: LoopLoad, of location: MediaLocation) {
        let index = index(of: location)
        loops[index].measured = LoopLoad(
            packetsPerSecond: load.packetsPerSecond.isFinite ? max(load.packetsPerSecond, 0) : 0,
            busyShare: load.busyShare.isFinite ? min(max(load.busyShare, 0), 1) : 0,
            peers: max(load.peers, 0)
        )
        loops[index].joined = 0
        loops[index].isSilent = false
    }

    /// The loop at `location` did not report its load within a period. It is stalled, so it gets no newcomers until it
    /// reports, unless there is no other loop.
    mutating func loadMissing(of location: MediaLocation) { loops[index(of: location)].isSilent = true }

    /// The load of each loop in shares of a core.
    var loads: [Double] {
        let packetShare = packetShare
        let memberShare = memberShare
        return loops.map { loop in
            if loop.isSilent { return .infinity }
            let measured = (loop.measured.busyShare + loop.measured.packetsPerSecond * packetShare) / 2
            let beyond = measured - Double(loop.measured.peers) * memberShare
            let significant = max(beyond.magnitude - Self.noiseShare, 0) * (beyond < 0 ? -1 : 1)
            // A loop may have peers that are not members.
            let count = max(loop.members, loop.measured.peers + loop.joined)
            return Double(count) * memberShare + significant
        }
    }

    /// The load of an average member of the node.
    var memberShare: Double {
        let busy = loops.reduce(0) { $0 + $1.measured.busyShare }
        let peers = loops.reduce(0) { $0 + $1.measured.peers }
        return peers > 0 ? max(busy / Double(peers), Self.memberShareMin) : Self.memberShareMin
    }

    /// The average cost of a packet on the node in seconds, including the loops' other work.
    private var packetShare: Double {
        let busy = loops.reduce(0) { $0 + $1.measured.busyShare }
        let packets = loops.reduce(0) { $0 + $1.measured.packetsPerSecond }
        return packets > 0 ? busy / packets : 0
    }
}
