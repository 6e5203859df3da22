import MediaTypes

/// Chooses the media loop of a newcomer by the loops' loads.
///
/// A loop's load is a share of one core: its members, each at the load of the node's average member, which a newcomer
/// counts as from the moment that it joins; and what the loop measured beyond that, because its members' streams are
/// richer than others'. What is measured is half the time at work and half what the loop's packets cost at the node's
/// average: the former knows everything and is noisy over one second, the latter is steady and knows packets only. A
/// difference within ``noiseShare`` means nothing, so loops with little to do are filled evenly.
///
/// Members of one channel stay together while that costs nobody anything: a track is handed over once to each other
/// loop that has a viewer of it. So a newcomer goes to a loop that has members of its channel, the one with most of
/// them first, unless that loop is more than ``slackMembers`` average members above the least loaded one.
struct Placement: Sendable {
    private struct Home: Sendable {
        var members = 0
        var measured = LoopLoad()
        /// Joins less leaves since the last measurement.
        var joined = 0
        /// It was asked for a measurement and does not answer.
        var isSilent = false
    }
    private var homes: [Home]

    /// How far above the least loaded loop a channel's own may be, in members of average load: with two a call of two
    /// never leaves its loop, and a channel that everybody watches is spread evenly to within a few members.
    static let slackMembers = 2.0
    /// How far measured loads may differ by chance: a loop's share of a core over one second, on a machine that does other
    /// work too.
    static let noiseShare = 0.05
    /// The least that a member is taken to cost: one that gets a thin stream, or one whose publisher is yet to come.
    /// 160 packets a second, a stream of 1.5 Mbit/s, at 0.6 µs each are about as much.
    static let memberShareMin = 0.000_1

    init(homeCount: Int) {
        precondition(homeCount > 0, "there is no media without a loop")
        homes = Array(repeating: Home(), count: homeCount)
    }

    /// Participants by loop.
    var members: [Int] { homes.map(\.members) }
    var isEmpty: Bool { homes.allSatisfy { $0.members == 0 } }

    /// Takes a newcomer and returns its loop.
    /// - Parameter channelMembers: how many members of the newcomer's channel are on each loop that has any.
    mutating func join(near channelMembers: [Int: Int]) -> Int {
        let loads = loads
        let least = loads.indices.min { loads[$0] < loads[$1] } ?? 0
        let bound = loads[least] + Self.slackMembers * memberShare
        let own = channelMembers.filter { loads[$0.key] <= bound }
            .max { ($0.value, $1.key) < ($1.value, $0.key) }
        let home = own?.key ?? least
        homes[home].members += 1
        homes[home].joined += 1
        return home
    }

    /// A participant of the loop `home` left.
    mutating func leave(_ home: Int) {
        precondition(homes[home].members > 0, "who leaves was there")
        homes[home].members -= 1
        homes[home].joined -= 1
    }

    /// What the loop `home` measured; the times between two measurements of one loop are to be about equal.
    mutating func measured(_ load: LoopLoad, of home: Int) {
        homes[home].measured = LoopLoad(
            packetsPerSecond: load.packetsPerSecond.isFinite ? max(load.packetsPerSecond, 0) : 0,
            busyShare: load.busyShare.isFinite ? min(max(load.busyShare, 0), 1) : 0,
            peers: max(load.peers, 0)
        )
        homes[home].joined = 0
        homes[home].isSilent = false
    }

    /// The loop `home` was asked for its load a whole period ago and did not answer. It stalls, so until it does answer
    /// nobody is sent there as long as there is another loop.
    mutating func unanswered(by home: Int) { homes[home].isSilent = true }

    /// Of each loop, in shares of a core.
    var loads: [Double] {
        let packetShare = packetShare
        let memberShare = memberShare
        return homes.map { home in
            if home.isSilent { return .infinity }
            let measured = (home.measured.busyShare + home.measured.packetsPerSecond * packetShare) / 2
            let beyond = measured - Double(home.measured.peers) * memberShare
            let significant = max(beyond.magnitude - Self.noiseShare, 0) * (beyond < 0 ? -1 : 1)
            // A loop may have peers that are nobody's members here.
            let count = max(home.members, home.measured.peers + home.joined)
            return Double(count) * memberShare + significant
        }
    }

    /// The load of an average member of the node.
    var memberShare: Double {
        let busy = homes.reduce(0) { $0 + $1.measured.busyShare }
        let peers = homes.reduce(0) { $0 + $1.measured.peers }
        return peers > 0 ? max(busy / Double(peers), Self.memberShareMin) : Self.memberShareMin
    }

    /// What a packet costs on the average of the node, the loops' other work included.
    private var packetShare: Double {
        let busy = homes.reduce(0) { $0 + $1.measured.busyShare }
        let packets = homes.reduce(0) { $0 + $1.measured.packetsPerSecond }
        return packets > 0 ? busy / packets : 0
    }
}
