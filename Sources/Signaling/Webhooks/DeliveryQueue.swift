import Room

/// Decides which event is told next, and what becomes of one that could not be told: no clock, no I/O.
///
/// The events of one channel are told one after the other in their order, those of different channels side by side. An event
/// that fails is tried again after a wait that doubles; meanwhile the rest of its channel waits behind it.
struct DeliveryQueue<Item: Sendable>: Sendable {
    /// What follows the end of an attempt.
    enum Outcome: Hashable, Sendable {
        /// It is over; the next of the channel may go.
        case delivered
        /// Try again after this time, then call ``waited(for:)``.
        case retry(after: Duration)
        /// It failed as often as it may.
        case gaveUp
    }

    private struct Lane {
        var items: [Item] = []
        /// Of the first item.
        var failures = 0
        /// Whether the first item is under way or waits for its next attempt.
        var isBusy = false
    }
    private let limits: WebhookLimits
    private var lanes: [ChannelName: Lane] = [:]
    /// Channels with something to tell and nothing under way, in the order in which they became so.
    private var ready: [ChannelName] = []
    private var underWay = 0
    /// Events that are not over.
    private(set) var count = 0
    /// Whether failures are final, because the node ends.
    private var isDraining = false

    init(limits: WebhookLimits) { self.limits = limits }

    /// Takes an event. Returns `false`, and forgets it, when too many wait.
    mutating func add(_ item: Item, of channel: ChannelName) -> Bool {
        guard count < limits.waitingMax else { return false }
        count += 1
        lanes[channel, default: Lane()].items.append(item)
        if lanes[channel]?.isBusy == false, lanes[channel]?.items.count == 1 { ready.append(channel) }
        return true
    }

    /// The next event to be told; ``finished(_:isDelivered:)`` is to be called for it. `nil` while there is none, or as
    /// many are under way as may be.
    mutating func next() -> (channel: ChannelName, item: Item)? {
        guard underWay < limits.concurrencyMax, !ready.isEmpty else { return nil }
        let channel = ready.removeFirst()
        guard let item = lanes[channel]?.items.first else { preconditionFailure("a ready channel has an event") }
        lanes[channel]?.isBusy = true
        underWay += 1
        return (channel, item)
    }

    /// An attempt to tell the first event of the channel ended.
    mutating func finished(_ channel: ChannelName, isDelivered: Bool) -> Outcome {
        underWay -= 1
        guard isDelivered else {
            lanes[channel]?.failures += 1
            let failures = lanes[channel]?.failures ?? 0
            guard failures < limits.attemptsMax, !isDraining else {
                advance(channel)
                return .gaveUp
            }
            let doubled = limits.backoffMin * (1 << min(failures - 1, 16))
            return .retry(after: min(doubled, limits.backoffMax))
        }
        advance(channel)
        return .delivered
    }

    /// The wait before a further attempt is over.
    mutating func waited(for channel: ChannelName) {
        lanes[channel]?.isBusy = false
        ready.append(channel)
    }

    /// From now on an event that fails is not tried again.
    mutating func startDraining() { isDraining = true }

    private mutating func advance(_ channel: ChannelName) {
        count -= 1
        guard var lane = lanes.removeValue(forKey: channel) else { return }
        lane.items.removeFirst()
        lane.failures = 0
        lane.isBusy = false
        guard !lane.items.isEmpty else { return }
        lanes[channel] = lane
        ready.append(channel)
    }
}
