import ChannelTypes
import Cluster
import Foundation
import MediaTypes
import Room
import Signaling
import Web
import Wire

/// The cluster as signaling uses it.
struct ClusterSignaling: SignalingCluster {
    let cluster: ClusterNode
    let directory: ChannelDirectory
    let settings: ClusterSettings

    /// A channel of so few members is best on one node.
    private static let smallChannelMax = 8
    /// In per cent. A node below it serves whoever asks it: a load balancer chose it.
    private static let loadMax = 70

    var incarnation: NodeIncarnation { cluster.media }

    func redirect(for channel: ChannelName, because reason: RedirectReason) async -> NodeAddress? {
        switch reason {
        case .newcomer:
            if let node = await smallChannelNode(channel) { return node }
            return cluster.own.record.load < Self.loadMax ? nil : lessLoaded()
        case .overloaded: return lessLoaded()
        case .draining: return otherNode { _ in true }
        }
    }

    /// The node that has a small channel whole, if it is near and takes clients.
    private func smallChannelNode(_ channel: ChannelName) async -> NodeAddress? {
        // Most nodes have no address for clients: no look at the channel then.
        guard cluster.neighbours.contains(where: { $0.publicURL != nil }) else { return nil }
        let counts = await directory.memberCounts(of: channel)
        guard counts.count == 1, let (media, members) = counts.first, media != cluster.media,
            members <= Self.smallChannelMax, let member = cluster.member(of: media)
        else { return nil }
        let record = member.record
        guard record.state == .ready, !member.isAbsent, record.region == settings.region, record.load < Self.loadMax
        else { return nil }
        return cluster.publicURL(of: member).flatMap { NodeAddress($0) }
    }

    private func lessLoaded() -> NodeAddress? {
        let load = cluster.own.record.load
        return otherNode { $0.load < load }
    }

    private func otherNode(where isSuitable: (NodeRecord) -> Bool) -> NodeAddress? {
        cluster.publicURLOfOther(region: settings.region, where: isSuitable).flatMap { NodeAddress($0) }
    }

    // MARK: Sessions

    func forward(
        _ request: ForwardedRequest,
        to node: NodeIncarnation
    ) async throws(ForwardFailure) -> ForwardedResponse {
        guard let body = try? JSONEncoder().encode(request) else { throw .unreachable }
        let question = LinkRequest(kind: .forward, body: Array(body))
        let answer: [UInt8]
        do throws(LinkRequestError) {
            answer = try await cluster.ask(question, of: node, within: ForwardedRequest.timeout)
        } catch {
            throw error == .noNode ? .nodeUnknown : .unreachable
        }
        guard let response = try? JSONDecoder().decode(ForwardedResponse.self, from: Data(answer)) else {
            throw .unreachable
        }
        return response
    }

    /// Answers a request that another node passed on.
    static func answer(_ body: [UInt8], _ server: PublicServer) async -> [UInt8]? {
        guard let request = try? JSONDecoder().decode(ForwardedRequest.self, from: Data(body)) else { return nil }
        let response = await server.respond(to: request)
        return (try? JSONEncoder().encode(response)).map { Array($0) }
    }

    func connections(_ question: [UInt8], at node: NodeIncarnation) async -> [UInt8]? {
        try? await cluster.ask(LinkRequest(kind: .connections, body: question), of: node, within: .seconds(1))
    }

    // MARK: Status

    var status: ClusterStatus {
        var status = ClusterStatus(
            name: settings.name.rawValue,
            own: Self.node(cluster.own, cluster.media, cluster.configuration.publicURL),
            others: cluster.neighbours.map { neighbour in
                var node = Self.node(neighbour.member, neighbour.media, neighbour.publicURL)
                node.isAbsent = neighbour.member.isAbsent
                node.isIgnored = neighbour.isIgnored
                node.link = neighbour.link?.state
                node.roundTrip = neighbour.link?.roundTrip
                return node
            },
            store: cluster.isStoreUp ? .up : .down
        )
        status.roomsByNodeCount = cluster.channelsByNodeCount
        return status
    }

    private static func node(
        _ member: ClusterView.Member,
        _ media: NodeIncarnation,
        _ publicURL: String?
    ) -> ClusterStatus.Node {
        let record = member.record
        var node = ClusterStatus.Node(
            name: member.instance.node.rawValue,
            incarnation: media,
            state: record.state
        )
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
