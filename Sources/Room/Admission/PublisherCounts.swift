import ChannelTypes

/// The participants of a node that publish, in total and by the app whose tokens admitted them.
struct PublisherCounts: Hashable, Sendable {
    private var total = 0
    /// Only apps with publishers have an entry.
    private var ofApps: [String: Int] = [:]

    var isEmpty: Bool { total == 0 && ofApps.isEmpty }

    /// - Parameters:
    ///   - change: how many more there are.
    ///   - app: `nil` for participants that no app's token admitted.
    mutating func add(_ change: Int, app: String?) {
        total += change
        guard let app else { return }
        let count = ofApps[app, default: 0] + change
        ofApps[app] = count == 0 ? nil : count
    }

    /// The limit that another publisher would exceed; `nil` for none.
    ///
    /// - Parameter leaving: publishers whose places it takes.
    func exceeded(
        _ limits: RoomLimits,
        app: String?,
        without leaving: PublisherCounts = PublisherCounts()
    ) -> RoomError? {
        if let app, limits.publishersPerAppMax > 0,
            ofApps[app, default: 0] - leaving.ofApps[app, default: 0] >= limits.publishersPerAppMax
        {
            return .appPublishersFull
        }
        guard limits.publishersMax > 0, total - leaving.total >= limits.publishersMax else { return nil }
        return .nodePublishersFull
    }
}
