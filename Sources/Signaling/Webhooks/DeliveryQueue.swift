import ChannelTypes

/// Orders the delivery of webhook events and their retries, without clock and I/O.
///
/// Events of one channel are delivered in order, events of different channels in parallel. A failed event is retried with
/// exponential backoff, and later events of its channel wait.
///
/// The queue is bounded. When it is full, the channel with the most events drops its oldest one, inessential ones first, so
/// that one channel costs no smaller channel an event. When no channel has more than one event, an inessential event of any
/// channel is dropped. Essential events report what connected members did: joins, leaves, publishing and interruptions. Channels
/// whose next event is essential go first, because clients can cause failure events at no cost.
struct DeliveryQueue<Item: Sendable>: Sendable {
    /// The result of adding an event.
    enum Addition: Hashable, Sendable {
        case taken
        /// The event was added, and this channel dropped one.
        case displaced(ChannelName)
        /// The event was dropped, because no other event may be dropped for it.
        case refused
    }

    /// The next step after a delivery attempt.
    enum Outcome: Hashable, Sendable {
        /// The event was delivered.
        case delivered
        /// The event is retried: call ``waited(for:)`` after this time.
        case retry(after: Duration)
        /// The event was dropped after the last attempt.
        case gaveUp
    }

    private struct Lane {
        var items: [(item: Item, isEssential: Bool)] = []
        /// The number of inessential events.
        var inessentialCount = 0
        /// The failed attempts of the first item.
        var failures = 0
        /// Whether the first item is being delivered or waits for its retry.
        var isBusy = false
    }
    private let limits: WebhookLimits
    private var lanes: [ChannelName: Lane] = [:]
    /// The channels by their number of events, and the maximum of these numbers.
    private var channelsBySize: [Int: Set<ChannelName>] = [:]
    private var sizeMax = 0
    /// The channels with events and no delivery in progress, oldest first, by whether their next event is essential. They can
    /// contain duplicates, and channels that dropped their only event.
    private var readyEssential: [ChannelName] = []
    private var readyOthers: [ChannelName] = []
    /// The channels with inessential events.
    private var inessentialChannels: Set<ChannelName> = []
    private var underWay = 0
    /// The number of events in the queue, with those being delivered.
    private(set) var count = 0
    /// Whether failures are final, because the node is shutting down.
    private(set) var isDraining = false

    init(limits: WebhookLimits) { self.limits = limits }

    /// Adds an event.
    ///
    /// - Parameter isEssential: Whether it is not to be missed. Inessential events are dropped first.
    mutating func add(_ item: Item, of channel: ChannelName, isEssential: Bool = true) -> Addition {
        var addition = Addition.taken
        if count >= limits.waitingMax {
            guard let loser = makeRoom(for: channel, isEssential: isEssential) else { return .refused }
            addition = .displaced(loser)
        }
        count += 1
        let size = lanes[channel]?.items.count ?? 0
        lanes[channel, default: Lane()].items.append((item, isEssential))
        if !isEssential {
            lanes[channel]?.inessentialCount += 1
            inessentialChannels.insert(channel)
        }
        resized(channel, from: size, to: size + 1)
        if size == 0 { becameReady(channel) }
        return addition
    }

    /// Drops one event for a new one. Returns the channel that dropped it; `nil` when none may be dropped.
    private mutating func makeRoom(for channel: ChannelName, isEssential: Bool) -> ChannelName? {
        if sizeMax > 1 {
            guard let loser = loser(to: channel), displaceOne(of: loser) else { return nil }
            return loser
        }
        guard isEssential else { return nil }
        // Events in delivery or waiting for a retry are not dropped. The search is bounded.
        return inessentialChannels.prefix(Self.losersLookedAt).first { displaceOne(of: $0) }
    }

    private static var losersLookedAt: Int { 64 }

    /// The channel with the most events; the given channel if it has as many.
    private func loser(to channel: ChannelName) -> ChannelName? {
        let largest = channelsBySize[sizeMax] ?? []
        return largest.contains(channel) ? channel : largest.first
    }

    /// Drops the oldest event that is not in delivery. Returns whether there was one.
    private mutating func displaceOne(of channel: ChannelName) -> Bool {
        guard let lane = lanes[channel] else { return false }
        let candidates = lane.items.indices.dropFirst(lane.isBusy ? 1 : 0)
        let inessential = lane.inessentialCount > 0 ? candidates.first { !lane.items[$0].isEssential } : nil
        guard let index = inessential ?? candidates.first else { return false }
        remove(at: index, of: channel)
        if lanes[channel]?.items.isEmpty == true { lanes[channel] = nil }
        return true
    }

    private mutating func remove(at index: Int, of channel: ChannelName) {
        guard let removed = lanes[channel]?.items.remove(at: index) else { return }
        let size = lanes[channel]?.items.count ?? 0
        if !removed.isEssential {
            lanes[channel]?.inessentialCount -= 1
            if lanes[channel]?.inessentialCount == 0 { inessentialChannels.remove(channel) }
        }
        count -= 1
        resized(channel, from: size + 1, to: size)
    }

    /// Sizes change by one, so the maximum changes by at most one.
    private mutating func resized(_ channel: ChannelName, from old: Int, to new: Int) {
        channelsBySize[old]?.remove(channel)
        if channelsBySize[old]?.isEmpty == true { channelsBySize[old] = nil }
        if new > 0 { channelsBySize[new, default: []].insert(channel) }
        sizeMax = max(sizeMax, new)
        if channelsBySize[sizeMax] == nil { sizeMax = max(sizeMax - 1, 0) }
    }

    /// The next event to deliver, which the caller completes with ``finished(_:isDelivered:)``. `nil` when there is none, or
    /// the limit of parallel deliveries is reached.
    mutating func next() -> (channel: ChannelName, item: Item)? {
        guard underWay < limits.concurrencyMax else { return nil }
        while let channel = nextReady() {
            guard let lane = lanes[channel], !lane.isBusy, let item = lane.items.first?.item else { continue }
            lanes[channel]?.isBusy = true
            underWay += 1
            return (channel, item)
        }
        return nil
    }

    private mutating func nextReady() -> ChannelName? {
        if !readyEssential.isEmpty { return readyEssential.removeFirst() }
        return readyOthers.isEmpty ? nil : readyOthers.removeFirst()
    }

    private mutating func becameReady(_ channel: ChannelName) {
        if lanes[channel]?.items.first?.isEssential == true {
            readyEssential.append(channel)
        } else {
            readyOthers.append(channel)
        }
        guard readyEssential.count + readyOthers.count > 2 * lanes.count + Self.staleMax else { return }
        var named: Set<ChannelName> = []
        readyEssential.removeAll { lanes[$0]?.items.first?.isEssential != true || !named.insert($0).inserted }
        readyOthers.removeAll { lanes[$0] == nil || !named.insert($0).inserted }
    }

    /// The permitted number of stale entries in the ready lists.
    private static var staleMax: Int { 64 }

    /// Completes a delivery attempt of the channel's first event.
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

    /// Ends the wait before a retry.
    mutating func waited(for channel: ChannelName) {
        lanes[channel]?.isBusy = false
        becameReady(channel)
    }

    /// Makes all later failures final.
    mutating func startDraining() { isDraining = true }

    private mutating func advance(_ channel: ChannelName) {
        remove(at: 0, of: channel)
        lanes[channel]?.failures = 0
        lanes[channel]?.isBusy = false
        if lanes[channel]?.items.isEmpty == true {
            lanes[channel] = nil
        } else {
            becameReady(channel)
        }
    }
}
