import Room

/// Decides which event is told next, and what becomes of one that could not be told: no clock, no I/O.
///
/// The events of one channel are told one after the other in their order, those of different channels side by side. An event
/// that fails is tried again after a wait that doubles; meanwhile the rest of its channel waits behind it.
///
/// What waits is bounded for all channels together. Where that is reached, the channel with the most waiting loses its
/// oldest event, one that says nothing of a coming or going first; so what one channel brings costs no other an event as
/// long as that has fewer. Where no channel has more than one, those that say nothing of a coming or going are lost first.
/// Channels whose next event tells of a coming or going are told first, because failures cost a client nothing to make.
struct DeliveryQueue<Item: Sendable>: Sendable {
    /// What becomes of an event that came.
    enum Addition: Hashable, Sendable {
        case taken
        /// It is taken, and the channel with the most waiting, its own or another, lost one.
        case displaced(ChannelName)
        /// It is forgotten: nothing else may be lost for it.
        case refused
    }

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
        var items: [(item: Item, isEssential: Bool)] = []
        /// Those that may be lost first.
        var inessentialCount = 0
        /// Of the first item.
        var failures = 0
        /// Whether the first item is under way or waits for its next attempt.
        var isBusy = false
    }
    private let limits: WebhookLimits
    private var lanes: [ChannelName: Lane] = [:]
    /// Channels by the number of their events, and the highest of these numbers.
    private var channelsBySize: [Int: Set<ChannelName>] = [:]
    private var sizeMax = 0
    /// Channels with something to tell and nothing under way, in the order in which they became so: those whose next event
    /// is essential, and the others. A channel that lost its only event may still be named, and one may be named twice.
    private var readyEssential: [ChannelName] = []
    private var readyOthers: [ChannelName] = []
    /// Channels that have an event that may be lost first.
    private var inessentialChannels: Set<ChannelName> = []
    private var underWay = 0
    /// Events that are not over.
    private(set) var count = 0
    /// Whether failures are final, because the node ends.
    private var isDraining = false

    init(limits: WebhookLimits) { self.limits = limits }

    /// Takes an event.
    ///
    /// - Parameter isEssential: whether it tells of a coming or going, so that others are lost before it.
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

    /// Forgets one event for another that came. Returns the channel that lost it; `nil` when there was none to lose.
    private mutating func makeRoom(for channel: ChannelName, isEssential: Bool) -> ChannelName? {
        if sizeMax > 1 {
            guard let loser = loser(to: channel), displaceOne(of: loser) else { return nil }
            return loser
        }
        guard isEssential else { return nil }
        // Those under way or between two attempts cannot be lost; the look at others is bounded.
        return inessentialChannels.prefix(Self.losersLookedAt).first { displaceOne(of: $0) }
    }

    private static var losersLookedAt: Int { 64 }

    /// The channel with the most waiting, or the given one when it has as many.
    private func loser(to channel: ChannelName) -> ChannelName? {
        let largest = channelsBySize[sizeMax] ?? []
        return largest.contains(channel) ? channel : largest.first
    }

    /// Forgets the oldest event that is not under way. Returns whether there was one.
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

    /// Sizes change by one, so the highest follows in one step.
    private mutating func resized(_ channel: ChannelName, from old: Int, to new: Int) {
        channelsBySize[old]?.remove(channel)
        if channelsBySize[old]?.isEmpty == true { channelsBySize[old] = nil }
        if new > 0 { channelsBySize[new, default: []].insert(channel) }
        sizeMax = max(sizeMax, new)
        if channelsBySize[sizeMax] == nil { sizeMax = max(sizeMax - 1, 0) }
    }

    /// The next event to be told; ``finished(_:isDelivered:)`` is to be called for it. `nil` while there is none, or as
    /// many are under way as may be.
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

    /// Channels that may be named although they have nothing to tell.
    private static var staleMax: Int { 64 }

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
        becameReady(channel)
    }

    /// From now on an event that fails is not tried again.
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
