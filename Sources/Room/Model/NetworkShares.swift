import Wire

/// What each network holds of the node.
struct NetworkShares: Sendable {
    struct Share: Sendable {
        var participants = 0
        /// Participants whose transport has not come up yet, the oldest first.
        var unconnected = Roster()
        /// The channels that the network has members in, with their number.
        var channels: [ChannelName: Int] = [:]
    }
    private var shares: [ClientNetwork: Share] = [:]

    var isEmpty: Bool { shares.isEmpty }

    subscript(network: ClientNetwork) -> Share { shares[network] ?? Share() }

    func unconnectedCount(of network: ClientNetwork) -> Int { shares[network]?.unconnected.count ?? 0 }

    /// The participants still to connect of the network that has most of them; of two with equally many the one with the
    /// higher address. In proportion to the networks: it is for a node that is full.
    var mostUnconnected: Roster {
        let rank = { (one: (key: ClientNetwork, value: Share)) in
            (one.value.unconnected.count, one.key.prefix.high, one.key.prefix.low)
        }
        return shares.max { rank($0) < rank($1) }?.value.unconnected ?? Roster()
    }

    mutating func joined(_ participant: Participant) {
        shares[participant.network, default: Share()].participants += 1
        shares[participant.network]?.unconnected.insert(participant.id, order: participant.order)
        shares[participant.network]?.channels[participant.channel, default: 0] += 1
    }

    mutating func connected(_ participant: Participant) {
        shares[participant.network]?.unconnected.remove(order: participant.order)
    }

    mutating func left(_ participant: Participant) {
        connected(participant)
        shares[participant.network]?.participants -= 1
        let others = (self[participant.network].channels[participant.channel] ?? 1) - 1
        shares[participant.network]?.channels[participant.channel] = others > 0 ? others : nil
        if shares[participant.network]?.participants == 0 { shares[participant.network] = nil }
    }
}
