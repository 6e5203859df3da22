package import ChannelTypes
import MediaTypes
import Wire

/// What one connection of a member is subscribed to.
package struct ConnectionSubscription: Hashable, Sendable {
    package let connection: ParticipantID
    let subscription: Subscription

    /// The users of whom it is subscribed to other tracks than of the rest, in no particular order.
    package var users: some Sequence<String> { subscription.users }

    /// The tracks that it is subscribed to.
    /// - Parameter user: one of ``users``; `nil` for all other users, those who join later included.
    package func tracks(of user: String?) -> [TrackSelector] {
        TrackSelector.allCases.filter { subscription.includes(user, $0.kind, $0.source) }
    }
}

/// The tracks that one receiver is subscribed to: the last request that matches a track decides.
struct Subscription: Hashable, Sendable, Codable {
    /// The most users with a request of their own.
    static let usersMax = 1_024

    /// The subscriptions to users without an exception.
    private var defaults: Set<TrackSelector>
    /// What differs from ``defaults``, by user. A request for all users replaces the exceptions that it matches.
    private var exceptions: [String: Set<TrackSelector>] = [:]

    /// - Parameter isManual: whether it starts with no subscription, and not with all.
    init(isManual: Bool = false) { defaults = isManual ? [] : Set(TrackSelector.allCases) }

    /// The users of whom other tracks are subscribed to than of the rest.
    var users: [String: Set<TrackSelector>].Keys { exceptions.keys }

    /// - Parameter user: `nil` for any user that is not one of ``users``.
    func includes(_ user: String?, _ kind: MediaKind, _ source: VideoSource) -> Bool {
        let cell = TrackSelector(kind: kind, source: source)
        let isException = user.flatMap { exceptions[$0]?.contains(cell) } ?? false
        return defaults.contains(cell) != isException
    }

    /// - Throws: ``RoomError/subscriptionsFull`` when the request is the first for one user too many.
    mutating func request(_ isSubscribed: Bool, _ selection: SubscriptionSelection) throws(RoomError) {
        let requested = Set(
            TrackSelector.allCases.filter { cell in
                (selection.kind ?? cell.kind) == cell.kind && (selection.source ?? cell.source) == cell.source
            }
        )
        guard let user = selection.user else {
            if isSubscribed { defaults.formUnion(requested) } else { defaults.subtract(requested) }
            exceptions = exceptions.compactMapValues { cells in
                let rest = cells.subtracting(requested)
                return rest.isEmpty ? nil : rest
            }
            return
        }
        var own = exceptions[user] ?? []
        own.subtract(requested)
        own.formUnion(requested.filter { defaults.contains($0) != isSubscribed })
        guard !own.isEmpty else {
            exceptions[user] = nil
            return
        }
        guard exceptions[user] != nil || exceptions.count < Self.usersMax else { throw .subscriptionsFull }
        exceptions[user] = own
    }
}
