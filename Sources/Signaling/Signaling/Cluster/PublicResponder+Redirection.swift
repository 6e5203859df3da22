import ChannelTypes
import HTTPTypes
import Hummingbird
import Room
import Web

// Newcomers over WHIP and WHEP that are better, or only, served by another node of the cluster.

extension RequestTarget {
    /// The parameter of a client that another node sent here. It is not sent on, so that two nodes with different views do
    /// not send it to and fro.
    static let redirectMark = "redirected"

    /// Whether another node sent the client here.
    var isRedirected: Bool { queryValue(Self.redirectMark) != nil }

    /// The target for the other node.
    fileprivate var marked: Self {
        Self(text + (query == nil ? "?" : "&") + "\(Self.redirectMark)=1")
    }
}

extension PublicResponder {
    /// Sends a newcomer to another node.
    /// - Returns: the redirect; `nil` to go on here.
    func redirected(_ target: RequestTarget, to channel: ChannelName) async -> Response? {
        guard let cluster, !target.isRedirected else { return nil }
        let reason = directory.refusesJoins(to: channel) ? RedirectReason.draining : .newcomer
        guard let address = await cluster.redirect(for: channel, because: reason, in: directory) else { return nil }
        return Self.redirect(to: address, target.marked)
    }

    /// Counts an admitted newcomer, unless the rooms refuse it anyway. Others could use up the places of those who may join.
    /// - Throws: 503 when too many join at once, with a random `Retry-After` of 1 to 5 seconds, so that clients that were
    ///   refused together return apart.
    func limitJoins(to channel: ChannelName) async throws(HTTPFailure) {
        guard let joins, !directory.refusesJoins(to: channel), await !joins.take() else { return }
        throw HTTPFailure(
            .serviceUnavailable,
            "Too many clients join at once; connect again in a moment.",
            headers: [.retryAfter: String(Int.random(in: 1...5))]
        )
    }
}
