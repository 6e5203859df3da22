public import Wire

/// The tracks that a receiver subscribes to or unsubscribes from; `nil` matches any.
public struct SubscriptionSelection: Hashable, Sendable, Codable {
    /// The client identifier of the tracks' senders. `nil` also for those who join later.
    public var user: String?
    public var kind: MediaKind?
    public var source: VideoSource?

    public init(user: String? = nil, kind: MediaKind? = nil, source: VideoSource? = nil) {
        self.user = user
        self.kind = kind
        self.source = source
    }
}

/// The tracks that one receiver is subscribed to: the last request that matches a track decides.
struct Subscription: Hashable, Sendable, Codable {
    private struct Cell: Hashable, Sendable, Codable {
        var kind: MediaKind
        var source: VideoSource
    }
    /// The most users with a request of their own.
    static let usersMax = 1_024

    private static let cells = MediaKind.allCases.flatMap { kind in
        VideoSource.allCases.map { Cell(kind: kind, source: $0) }
    }

    /// The subscriptions to users without an exception.
    private var defaults: Set<Cell>
    /// What differs from ``defaults``, by user. A request for all users replaces the exceptions that it matches.
    private var exceptions: [String: Set<Cell>] = [:]

    /// - Parameter isManual: whether it starts with no subscription, and not with all.
    init(isManual: Bool = false) { defaults = isManual ? [] : Set(Self.cells) }

    func includes(_ user: String, _ kind: MediaKind, _ source: VideoSource) -> Bool {
        let cell = Cell(kind: kind, source: source)
        return defaults.contains(cell) != (exceptions[user]?.contains(cell) ?? false)
    }

    /// - Throws: ``RoomError/subscriptionsFull`` when the request is the first for one user too many.
    mutating func request(_ isSubscribed: Bool, _ selection: SubscriptionSelection) throws(RoomError) {
        let requested = Set(
            Self.cells.filter { cell in
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
