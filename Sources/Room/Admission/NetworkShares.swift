import ChannelTypes
import Wire

/// The participants and channels of each network.
struct NetworkShares: Sendable {
    struct Share: Sendable {
        var participants = 0
        /// Participants whose transport has not come up yet, the oldest first.
        var unconnected = ParticipantList()
        /// The number of the network's members by channel.
        var channels: [ChannelName: Int] = [:]
    }
    private var shares: [ClientNetwork: Share] = [:]

    var isEmpty: Bool { shares.isEmpty }

    package subscript(network: ClientNetwork) -> Share { shares[network] ?? Share() }

    func unconnectedCount(of network: ClientNetwork) -> Int { shares[network]?.unconnected.count ?? 0 }

    /// The unconnected participants of the network with most of them; among equals the network with the higher address.
    /// O(networks): only a full node needs it.
    var mostUnconnected: ParticipantList {
        let rank = { (one: (key: ClientNetwork, value: Share)) in
            (one.value.unconnected.count, one.key.prefix.high, one.key.prefix.low)
        }
        return shares.max { rank($0) < rank($1) }?.value.unconnected ?? ParticipantList()
    }

    mutating func joined(_ member: NodeModel.Member) {
        shares[member.network, default: Share()].participants += 1
        shares[member.network]?.unconnected.insert(member.place.participant, order: member.place.order)
        shares[member.network]?.channels[member.channel, default: 0] += 1
    }

    mutating func connected(_ member: NodeModel.Member) {
        shares[member.network]?.unconnected.remove(order: member.place.order)
    }

    mutating func left(_ member: NodeModel.Member) {
        connected(member)
        shares[member.network]?.participants -= 1
        let others = (self[member.network].channels[member.channel] ?? 1) - 1
        shares[member.network]?.channels[member.channel] = others > 0 ? others : nil
        if shares[member.network]?.participants == 0 { shares[member.network] = nil }
    }
}
