package import Base
import MediaTypes
import Wire

/// Divides the rate of one receiver over the layers of its slots; nothing else decides what they are sent.
///
/// ``LayerDivision`` says what a rate is best used for. The allocator follows it downward at once when the rate falls, and
/// upward only when the rate suffices with some room for half a second, so that layers do not flap.
package struct LayerAllocator: Sendable {
    private var slots: [AllocatedSlot] = []
    private var ladders = LayerLadders()
    private var division = LayerDivision(LayerLadders())
    private var proven = ProvenRate()
    private var bar = UpgradeBackoff()
    /// When the first slots were given a limited rate.
    private var startedAt: Instant?
    /// The cost of everything while the rate last sufficed for it.
    private var coveredCost = Int.max
    /// Since when the layers cost more than the rate though it did not fall.
    private var dearSince: Instant?
    // Steps of each slot's ladder: those that it has, and those that it gets now.
    private var held: [Int] = []
    private var next: [Int] = []
    // Those by a division of the rate, of the rate less the room that upgrades need, and of that part of the proven rate.
    private var affordable: [Int] = []
    private var upgrades: [Int] = []
    private var provenUpgrades: [Int] = []
    private var raised: [Int] = []
    /// Shared with the last allocation until its reader drops it, and then used again.
    private var targets: [TargetLayer] = []

    /// An upgrade needs this much more than it costs, in thousandths.
    private static let roomPerMille = 100
    /// And at least so many bit/s more.
    private static let roomMin = 20_000
    /// So much is enough for costly layers, if it is so many bit/s, once the key frames of the start are over: with a tenth the
    /// layer of 2.5 on 3 Mbit/s comes back by chance. With less room for cheap ones the queue of a start on 600 kbit/s with a
    /// round trip of 250 ms is half as long again.
    private static let smallRoomPerMille = 75
    private static let smallRoomMin = 60_000
    private var mayHaveSmallRoom = false
    /// Layers whose costs rose keep playing below this part of them: peaks count for a while longer than they last.
    private static let toleratedPart = 0.75
    private static let toleratedTime = Interval.milliseconds(500)

    package init() {}

    /// Decides again what a receiver's slots are to be sent.
    /// - Parameters:
    ///   - requests: all of the receiver's video slots when the rate is limited; else those that changed suffice.
    ///   - rate: for video, without the share of audio.
    ///   - carried: bit/s for video that the path is known to carry and no more; `nil` while that is not known.
    ///   - bottleneck: bit/s for video beyond which no upgrade is tried; `nil` where the rate says enough.
    ///   - isGuess: nothing is known of the path. A slot begins with the lowest simulcast layer then, whose key frame is small.
    ///   - carriedLooks: times in a row that the path carried a probe at the rate of layers that failed.
    package mutating func allocate(
        _ requests: [LayerRequest],
        rate: ReceiverRate,
        carried: Int? = nil,
        bottleneck: Int? = nil,
        isGuess: Bool = false,
        carriedLooks: Int = 0,
        at now: Instant
    ) -> LayerAllocation {
        guard case .limited(let bitsPerSecond) = rate else {
            self = LayerAllocator()
            return LayerAllocation(targets: requests.map(\.unlimitedTarget))
        }
        let rate = max(0, bitsPerSecond)
        if startedAt == nil, !requests.isEmpty { startedAt = now }
        mayHaveSmallRoom = !isStarting(at: now)
        proven.note(rate, at: now)
        matchSlots(requests, at: now)
        if isGuess { for slot in slots.indices where !requests[slot].isPlaying { slots[slot].beganByGuess = true } }
        buildLadders(requests, at: now)
        division.order(ladders, held: held)
        division.carried = carried
        division.divide(rate, over: slots.count, into: &affordable)
        let isShort = downgrade(rate, at: now)
        bar.looked(carriedLooks, at: now)
        let isBarred = planUpgrades(rate, bottleneck, at: now)
        if !isShort { upgrade(requests, rate, isGuess: isGuess, at: now) }
        return settle(requests, rate, isBarred: isBarred, at: now)
    }

    /// Brings the slots into the requests' order.
    private mutating func matchSlots(_ requests: [LayerRequest], at now: Instant) {
        for index in requests.indices {
            if index >= slots.count || slots[index].id != requests[index].id {
                if let other = slots.indices.dropFirst(index).first(where: { slots[$0].id == requests[index].id }) {
                    slots.swapAt(index, other)
                } else {
                    slots.append(AllocatedSlot(requests[index], at: now))
                    slots.swapAt(index, slots.count - 1)
                }
            }
            slots[index].update(requests[index], at: now)
        }
        slots.removeLast(slots.count - requests.count)
    }

    private mutating func buildLadders(_ requests: [LayerRequest], at now: Instant) {
        ladders.removeAll()
        held.removeAll(keepingCapacity: true)
        for index in requests.indices {
            ladders.append(requests[index], costPerMille: slots[index].claim(requests[index], at: now))
            held.append(slots[index].heldCount(of: ladders[index]))
        }
    }

    private func cost(_ counts: [Int]) -> Int {
        var sum = 0
        for slot in counts.indices { sum += ladders.cost(counts[slot], of: slot) }
        return sum
    }

    // MARK: - Down

    /// Takes layers away for which the rate does not suffice. A new slot gets its lowest step, if need be from others.
    /// - Returns: whether something was taken away.
    private mutating func downgrade(_ rate: Int, at now: Instant) -> Bool {
        Self.copy(held, into: &next)
        let heldCost = cost(held)
        for slot in slots.indices where slots[slot].isNew { next[slot] = max(held[slot], min(1, affordable[slot])) }
        let isUncovered = isUncovered(heldCost, rate, at: now)
        guard isUncovered || cost(next) > max(rate, heldCost) else { return false }
        var isLower = false
        for slot in slots.indices where affordable[slot] < next[slot] {
            next[slot] = affordable[slot]
            isLower = true
        }
        if isLower, isUncovered { bar.downgraded(from: heldCost, at: now) }
        return isLower
    }

    /// Whether the rate fell below the cost of the layers, or the cost rose above the rate for too long.
    private mutating func isUncovered(_ cost: Int, _ rate: Int, at now: Instant) -> Bool {
        guard cost > rate else {
            dearSince = nil
            return false
        }
        let since = dearSince ?? now
        dearSince = since
        if rate < coveredCost { return true }
        return now - since >= Self.toleratedTime && Double(cost) * Self.toleratedPart > Double(rate)
    }

    // MARK: - Up

    private func isStarting(at now: Instant) -> Bool {
        startedAt.map { now - $0 < AllocatedSlot.connectTime } ?? true
    }

    private func isFresh(_ slot: Int, at now: Instant) -> Bool {
        isStarting(at: now) || now < slots[slot].freshUntil
    }

    /// What the layers may cost after an upgrade at a rate.
    private func upgradeBudget(_ rate: Int) -> Int {
        let usual = rate * 1_000 / (1_000 + Self.roomPerMille)
        let small = min(rate * 1_000 / (1_000 + Self.smallRoomPerMille), rate - Self.smallRoomMin)
        return min(mayHaveSmallRoom ? max(usual, small) : usual, rate - Self.roomMin)
    }

    /// The rate at which an upgrade to a cost is possible.
    private func upgradeRate(_ cost: Int) -> Int {
        let usual = (cost * Self.roomPerMille + 999) / 1_000 + 1
        let small = max((cost * Self.smallRoomPerMille + 999) / 1_000 + 1, Self.smallRoomMin)
        return cost + max(mayHaveSmallRoom ? min(usual, small) : usual, Self.roomMin)
    }

    /// - Returns: whether upgrades that failed of late are barred.
    private mutating func planUpgrades(_ rate: Int, _ bottleneck: Int?, at now: Instant) -> Bool {
        let barred = bar.limit(atRate: rate, bottleneck: bottleneck, at: now)
        let limit = min(barred ?? .max, bottleneck ?? .max)
        division.divide(min(upgradeBudget(rate), limit), over: slots.count, into: &upgrades)
        division.divide(min(upgradeBudget(proven.rate), limit), over: slots.count, into: &provenUpgrades)
        return barred != nil
    }

    /// What a slot could have if it need not wait for others.
    private func wanted(_ slot: Int, at now: Instant) -> Int {
        isFresh(slot, at: now) ? upgrades[slot] : min(upgrades[slot], provenUpgrades[slot])
    }

    private mutating func upgrade(_ requests: [LayerRequest], _ rate: Int, isGuess: Bool, at now: Instant) {
        let isStarting = isStarting(at: now)
        let turn = isStarting ? nil : slotWithTurn(requests, at: now)
        Self.copy(next, into: &raised)
        for slot in slots.indices where isStarting || slots[slot].upgradesAt(now) == nil {
            var count = keyFrameUpgrade(slot, requests[slot], upTo: wanted(slot, at: now), rate)
            if isGuess || slots[slot].beganByGuess { count = withoutSwitch(slot, upTo: count) }
            if !isStarting, slot != turn, needsTurn(slot, requests[slot], count) {
                count = temporalUpgrade(slot, upTo: count)
            }
            raised[slot] = max(count, next[slot])
        }
        guard raised != next else { return }
        // What does not fit besides is taken from those that have more than their part.
        let isCovered = cost(raised) <= upgradeBudget(rate)
        for slot in slots.indices {
            next[slot] = isCovered || raised[slot] > next[slot] ? raised[slot] : min(next[slot], upgrades[slot])
        }
        bar.upgraded(to: cost(next), rate: rate, at: now)
    }

    /// Whether an upgrade needs a key frame while another picture plays: those come one after the other.
    private func needsTurn(_ slot: Int, _ request: LayerRequest, _ count: Int) -> Bool {
        guard request.isPlaying, next[slot] > 0, count > next[slot] else { return false }
        let steps = ladders[slot]
        return steps[steps.startIndex + count - 1].differsSpatially(from: steps[steps.startIndex + next[slot] - 1])
    }

    /// A picture that stands still for longer than this while a key frame is sent is a freeze.
    private static let keyFrameSendTimeMax = 0.4

    /// The highest step whose key frame is sent in time beside the media of the other slots, or the lowest one on the way if
    /// there is none.
    private func keyFrameUpgrade(_ slot: Int, _ request: LayerRequest, upTo count: Int, _ rate: Int) -> Int {
        guard needsTurn(slot, request, count) else { return count }
        let available = Double(rate - cost(next) + ladders.cost(next[slot], of: slot))
        let steps = ladders[slot]
        func isInTime(_ index: Int) -> Bool {
            Double(steps[steps.startIndex + index].keyFrameBytes) * 8 <= available * Self.keyFrameSendTimeMax
        }
        guard !isInTime(count - 1) else { return count }
        let own = steps[steps.startIndex + next[slot] - 1]
        let between = (next[slot]..<count).filter { steps[steps.startIndex + $0].differsSpatially(from: own) }
        if let index = between.last(where: isInTime) { return index + 1 }
        guard let lowest = between.first else { return count }
        let level = steps[steps.startIndex + lowest]
        return between.last { !steps[steps.startIndex + $0].differsSpatially(from: level) }.map { $0 + 1 } ?? count
    }

    /// The slot that may wait for a key frame of better layers.
    private func slotWithTurn(_ requests: [LayerRequest], at now: Instant) -> Int? {
        var best: Int?
        for slot in slots.indices {
            if let since = slots[slot].awaitsSince, now - since < AllocatedSlot.keyFrameTime { return slot }
            guard needsTurn(slot, requests[slot], wanted(slot, at: now)), slots[slot].upgradesAt(now) == nil
            else { continue }
            guard let other = best else {
                best = slot
                continue
            }
            let (left, right) = (slots[slot], slots[other])
            if (left.importance, right.id.rawValue) > (right.importance, left.id.rawValue) {
                best = slot
            }
        }
        return best
    }

    /// The highest step that needs no other key frame than the slot waits for.
    private func withoutSwitch(_ slot: Int, upTo count: Int) -> Int {
        let steps = ladders[slot]
        guard count > 0 else { return 0 }
        let first = steps[steps.startIndex + max(next[slot], 1) - 1]
        return steps.prefix(count).lastIndex { !$0.differsSpatially(from: first) }.map { $0 - steps.startIndex + 1 }
            ?? count
    }

    /// The highest step above the slot's own that needs no key frame.
    private func temporalUpgrade(_ slot: Int, upTo count: Int) -> Int {
        let steps = ladders[slot]
        let own = steps[steps.startIndex + next[slot] - 1]
        return (next[slot]..<count).last { !steps[steps.startIndex + $0].differsSpatially(from: own) }
            .map { $0 + 1 } ?? next[slot]
    }

    // MARK: - Result

    private mutating func settle(
        _ requests: [LayerRequest],
        _ rate: Int,
        isBarred: Bool,
        at now: Instant
    ) -> LayerAllocation {
        var allocation = LayerAllocation()
        targets.removeAll(keepingCapacity: true)
        for slot in slots.indices {
            let steps = ladders[slot]
            if steps.isEmpty {
                slots[slot].rest(requests[slot], at: now)
            } else if next[slot] > 0 {
                slots[slot].take(steps[steps.startIndex + next[slot] - 1], at: now)
            } else {
                slots[slot].takeNothing(at: now)
            }
            targets.append(slots[slot].target)
            allocation.demand += ladders.cost(steps.count, of: slot)
        }
        allocation.targets = targets
        allocation.allocated = cost(next)
        allocation.isWhole = allocation.allocated == allocation.demand
        // A screen's cost changes with its peaks, whatever the rate does.
        allocation.isSteady = allocation.isWhole && !requests.contains(where: \.isScreen)
        allocation.demand = allocation.demand > 0 ? upgradeRate(allocation.demand) : 0
        coveredCost = allocation.allocated <= rate ? allocation.allocated : min(coveredCost, allocation.allocated)
        allocation.retryAt = retryTime(rate, at: now)
        for slot in slots.indices { next[slot] = max(next[slot], upgrades[slot]) }
        allocation.upgrade = division.nextCost(above: next).map { upgradeRate(cost(next) + $0) }
        allocation.isUpgradeBarred = isBarred
        return allocation
    }

    /// Of the layers that ``next`` holds.
    private func retryTime(_ rate: Int, at now: Instant) -> Instant? {
        var time: Instant?
        var isHeldBack = false
        for slot in slots.indices where upgrades[slot] > next[slot] {
            isHeldBack = true
            time = earliest(time, slots[slot].upgradesAt(now) ?? proven.risesAt)
        }
        for slot in slots.indices where isHeldBack {
            time = earliest(time, slots[slot].awaitsSince.map { $0 + AllocatedSlot.keyFrameTime })
        }
        if let dearSince, Double(cost(next)) * Self.toleratedPart > Double(rate) {
            time = earliest(time, dearSince + Self.toleratedTime)
        }
        if division.nextCost(above: next) != nil { time = earliest(time, bar.end(after: now)) }
        return time.map { max($0, now + .milliseconds(1)) }
    }

    /// Within the array's capacity.
    private static func copy(_ counts: [Int], into other: inout [Int]) {
        other.removeAll(keepingCapacity: true)
        other.append(contentsOf: counts)
    }
}
