import Room

extension SoraConnection {
    /// What ends the connection of a newcomer that is better, or only, served by another node.
    enum Elsewhere {
        case redirect(NodeAddress)
        /// Too many join at once, and no other node takes the client.
        case overloaded
    }

    /// - Returns: `nil` to go on here.
    func elsewhere(_ connect: SoraConnect) async -> Elsewhere? {
        guard let cluster = context.cluster else { return nil }
        // A client whose place is here comes back to it.
        if let token = connect.options?.resumeToken, context.rooms.hasPlace(forResumeToken: token) { return nil }
        let isRefused = context.rooms.refusesNewcomers(of: connect.channel)
        let reason = isRefused ? RedirectReason.draining : .newcomer
        // A client that was sent here is not sent on.
        if !connect.isRedirected, let address = await cluster.redirect(for: connect.channel, because: reason) {
            return .redirect(address)
        }
        // The rooms refuse it with their own reason.
        guard !isRefused, let joins = context.joins, !joins.take() else { return nil }
        if !connect.isRedirected, let address = await cluster.redirect(for: connect.channel, because: .overloaded) {
            return .redirect(address)
        }
        return .overloaded
    }
}
