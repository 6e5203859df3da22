package import ChannelTypes
package import MediaTypes
package import Room

extension ClusterNode: OtherNodes {
    package var nodeID: NodeID { configuration.node }
    package var incarnation: NodeIncarnation { media }

    // MARK: Rooms of the 1:1 relay

    package func candidates(for room: ChannelName) async -> RoomCandidates {
        let open = await membership.placement.nodes(for: room).map(\.node)
        let all = await membership.placementWithClosed.nodes(for: room).map(\.node)
        return RoomCandidates(open: open, closed: all.filter { !open.contains($0) })
    }

    package func want(_ node: NodeID) { links.want(node) }
    package func release(_ node: NodeID) { links.release(node) }
    package func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool {
        links.sendCallMessage(message, to: node)
    }

    // MARK: Status

    package var status: ClusterStatus {
        var status = ClusterStatus(
            name: configuration.cluster.rawValue,
            own: Self.node(own, media, configuration.publicURL),
            others: neighbours.map { neighbour in
                var node = Self.node(neighbour.member, neighbour.media, neighbour.publicURL)
                node.isAbsent = neighbour.member.isAbsent
                node.isIgnored = neighbour.isIgnored
                node.link = neighbour.link?.state
                node.roundTrip = neighbour.link?.roundTrip
                return node
            },
            store: isStoreUp ? .up : .down
        )
        status.roomsByNodeCount = channelsByNodeCount
        return status
    }

    private static func node(
        _ member: ClusterView.Member,
        _ media: NodeIncarnation,
        _ publicURL: String?
    ) -> ClusterStatus.Node {
        let record = member.record
        var node = ClusterStatus.Node(name: member.instance.node.rawValue, incarnation: media, state: record.state)
        node.address = publicURL.flatMap { NodeAddress($0) }
        node.region = record.region
        node.zone = record.zone
        node.version = record.build
        node.load = record.load
        node.members = record.members
        node.rooms = record.rooms
        return node
    }
}

// MARK: - Newcomers

extension ClusterNode {
    /// A channel of so few members is best on one node.
    private static let smallChannelMax = 8
    /// In per cent. A node below it serves whoever asks it: a load balancer chose it.
    private static let loadMax = 70

    package func redirect(
        for channel: ChannelName,
        because reason: RedirectReason,
        in directory: ChannelDirectory
    ) async -> NodeAddress? {
        switch reason {
        case .newcomer:
            if let node = await smallChannelNode(channel, directory) { return node }
            return own.record.load < Self.loadMax ? nil : lessLoaded()
        case .overloaded: return lessLoaded()
        case .draining: return otherNode { _ in true }
        }
    }

    /// The node that has a small channel whole, if it is near and takes clients.
    private func smallChannelNode(_ channel: ChannelName, _ directory: ChannelDirectory) async -> NodeAddress? {
        // Most nodes have no address for clients: no look at the channel then.
        guard neighbours.contains(where: { $0.publicURL != nil }) else { return nil }
        let counts = await directory.memberCounts(of: channel)
        guard counts.count == 1, let (node, members) = counts.first, node != media, members <= Self.smallChannelMax,
            let member = member(of: node)
        else { return nil }
        let record = member.record
        guard record.state == .ready, !member.isAbsent, record.region == configuration.region,
            record.load < Self.loadMax
        else { return nil }
        return publicURL(of: member).flatMap { NodeAddress($0) }
    }

    private func lessLoaded() -> NodeAddress? {
        let load = own.record.load
        return otherNode { $0.load < load }
    }

    private func otherNode(where isSuitable: (NodeRecord) -> Bool) -> NodeAddress? {
        publicURLOfOther(region: configuration.region, where: isSuitable).flatMap { NodeAddress($0) }
    }
}
