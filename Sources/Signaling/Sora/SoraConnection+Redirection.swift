import Access
import ChannelTypes
import Room
import Web

extension SoraConnection {
    /// The node that a client connects to instead of this one; `nil` to go on here.
    func redirect(_ connect: SoraConnect) async -> NodeAddress? {
        // A client that was sent here is not sent on, and one whose place is here comes back to it.
        guard let cluster = context.cluster, !connect.isRedirected, !hasPlace(connect.options?.resumeToken) else {
            return nil
        }
        let isRefused = context.directory.refusesJoins(to: connect.channel)
        return await cluster.redirect(
            for: connect.channel,
            because: isRefused ? .draining : .newcomer,
            in: context.directory
        )
    }

    /// What ends the connection of an admitted client while too many join at once.
    enum Crowding {
        case redirect(NodeAddress)
        /// No other node takes the client.
        case refuse
    }

    /// Counts an admitted newcomer, unless the rooms refuse it anyway.
    /// - Parameter isRedirected: whether another node sent the client here.
    /// - Returns: `nil` to go on.
    func crowding(_ request: JoinRequest, isRedirected: Bool) async -> Crowding? {
        guard let joins = context.joins, !context.directory.refusesJoins(to: request.channel),
            !hasPlace(request.resumeToken), await !joins.take()
        else { return nil }
        guard !isRedirected, let cluster = context.cluster,
            let address = await cluster.redirect(
                for: request.channel,
                because: .overloaded,
                in: context.directory
            )
        else { return .refuse }
        return .redirect(address)
    }

    private func hasPlace(_ resumeToken: String?) -> Bool {
        resumeToken.map { context.directory.hasPlace(forResumeToken: $0) } ?? false
    }
}
