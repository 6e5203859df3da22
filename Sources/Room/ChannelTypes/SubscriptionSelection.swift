package import Wire

/// The tracks that a receiver subscribes to or unsubscribes from; `nil` matches any.
package struct SubscriptionSelection: Hashable, Sendable, Codable {
    /// The client identifier of the tracks' senders. `nil` also for those who join later.
    package var user: String?
    package var kind: MediaKind?
    package var source: VideoSource?

    package init(user: String? = nil, kind: MediaKind? = nil, source: VideoSource? = nil) {
        self.user = user
        self.kind = kind
        self.source = source
    }
}

/// The tracks of a user that are of one kind, in connections with one source.
package struct TrackSelector: Hashable, Sendable, Codable, CaseIterable {
    package let kind: MediaKind
    package let source: VideoSource

    package init(kind: MediaKind, source: VideoSource) {
        self.kind = kind
        self.source = source
    }

    package static let allCases = MediaKind.allCases.flatMap { kind in
        VideoSource.allCases.map { Self(kind: kind, source: $0) }
    }
}
