import CongestionControl

/// The bytes of media that arrived within each tenth of a second.
struct ArrivalHistogram {
    static let slot = 0.1
    private var slots: [Int] = []

    init(_ flows: [Flow]) {
        for flow in flows {
            for record in flow.records where record.purpose != .padding {
                guard let arrivedAt = record.arrivedAt else { continue }
                let slot = Int(arrivedAt / 100_000)
                if slot >= slots.count { slots += Array(repeating: 0, count: slot + 1 - slots.count) }
                slots[slot] += record.bytes
            }
        }
    }

    /// Bits a second over slots from a time on.
    func rate(from: Double, to: Double) -> Double {
        let first = Int((from / Self.slot).rounded())
        let end = min(Int((to / Self.slot).rounded()), slots.count)
        guard first < end else { return 0 }
        return Double(slots[first..<end].reduce(0, +)) * 8 / (to - from)
    }

    /// Seconds from a time until a rate arrives over a span.
    func seconds(after at: Double, until rate: Double, end: Double, span: Double = 1) -> Double {
        var slot = 0
        while at + Double(slot) * Self.slot + span <= end + 1e-9 {
            let from = at + Double(slot) * Self.slot
            if self.rate(from: from, to: from + span) >= rate { return Double(slot) * Self.slot + span }
            slot += 1
        }
        return .infinity
    }

    /// The lowest rate over any such span.
    func lowest(from: Double, to: Double, span: Double) -> Double {
        var lowest = Double.infinity
        var slot = 0
        while from + Double(slot) * Self.slot + span <= to + 1e-9 {
            let start = from + Double(slot) * Self.slot
            lowest = min(lowest, rate(from: start, to: start + span))
            slot += 1
        }
        return lowest
    }
}

/// A finished run of a case and what it shows. Times are seconds from its start, rates bits a second.
struct Run {
    let testbed: Testbed
    /// Seconds.
    let end: Double
    let arrivals: ArrivalHistogram
    let arrivalsOfFlows: [ArrivalHistogram]

    init(_ testbed: Testbed, end: Double) {
        self.testbed = testbed
        self.end = end
        arrivals = ArrivalHistogram(testbed.flows)
        arrivalsOfFlows = testbed.flows.map { ArrivalHistogram([$0]) }
    }

    private var link: LinkSettings { testbed.links[0].settings }

    // MARK: - Rates

    /// The arrivals of the flows that use a link.
    private func arrivals(over index: Int) -> ArrivalHistogram {
        ArrivalHistogram(testbed.flows.filter { $0.settings.route.contains(index) })
    }

    /// What the flows that use a link would send.
    private func demand(over index: Int) -> Double {
        testbed.flows.filter { $0.settings.route.contains(index) }.reduce(0) { $0 + $1.settings.demand }
    }

    /// Media that arrived as a share of a link's capacity, without 5 s after a start and 3 s after a change.
    func utilisation(of index: Int) -> Double {
        let link = testbed.links[index].settings
        let demand = demand(over: index)
        let arrivals = arrivals(over: index)
        let starts = testbed.flows.map(\.settings.startAt)
        var used = 0.0
        var offered = 0.0
        for slot in 0..<Int((end / ArrivalHistogram.slot).rounded()) {
            let seconds = Double(slot) * ArrivalHistogram.slot
            let isSettled =
                link.isWalk
                ? seconds >= 5
                : starts.allSatisfy { seconds < $0 || seconds >= $0 + 5 }
                    && link.capacity.dropFirst().allSatisfy { seconds < $0.at || seconds >= $0.at + 3 }
            guard isSettled else { continue }
            offered += min(link.rate(at: Int64(seconds * 1e6)), demand)
            used += arrivals.rate(from: seconds, to: seconds + ArrivalHistogram.slot)
        }
        return used / max(offered, 1)
    }

    /// The longest time from a step up of a link until 80 % of it arrive; the start is the first step.
    func rise(of index: Int) -> Double {
        let link = testbed.links[index].settings
        guard !link.isWalk else { return 0 }
        let demand = demand(over: index)
        let arrivals = arrivals(over: index)
        let steps = link.capacity
        var longest = 0.0
        for index in steps.indices where index == 0 || steps[index].rate > steps[index - 1].rate {
            let until = index + 1 < steps.count ? steps[index + 1].at : end
            let share = 0.8 * min(steps[index].rate, demand)
            longest = max(longest, arrivals.seconds(after: steps[index].at, until: share, end: until))
        }
        return longest
    }

    /// The share of the first link that arrives from a time on, of all flows or one.
    func share(from: Double, of flow: Int? = nil) -> Double {
        let histogram = flow.map { arrivalsOfFlows[$0] } ?? arrivals
        return histogram.rate(from: from, to: end) / link.rate(at: Int64(from * 1e6))
    }

    /// Jain's index of the flows' rates in the last third.
    var fairness: Double {
        let rates = arrivalsOfFlows.map { $0.rate(from: (end * 20 / 3).rounded() / 10, to: end) }
        let sum = rates.reduce(0, +)
        let squares = rates.reduce(0) { $0 + $1 * $1 }
        return squares > 0 ? sum * sum / (Double(rates.count) * squares) : 0
    }

    // MARK: - Queues

    /// Whether a time is within 2 s after a step down, in which a queue is nobody's fault.
    private func isAfterStepDown(_ time: Int64) -> Bool {
        if link.isWalk { return false }
        let seconds = Double(time) / 1e6
        return link.capacity.indices.dropFirst().contains {
            link.capacity[$0].rate < link.capacity[$0 - 1].rate
                && seconds >= link.capacity[$0].at && seconds < link.capacity[$0].at + 2
        }
    }

    /// From a time on until the last packet leaves as ECT(1).
    func secondsMarked(after at: Double) -> Double {
        let last = testbed.flows.flatMap(\.records).filter(\.isMarked).map(\.sentAt).max() ?? 0
        return max(Double(last) / 1e6 - at, 0)
    }

    /// The 95th percentile of the packets' waits in queues, in milliseconds.
    var queue95: Double { queue(percent: 95) { _ in 0 } }

    /// The 99th percentile of the packets' waits in the first link's queue without their own transmission, in milliseconds.
    var wait99: Double { queue(percent: 99) { Int64(Double($0.bytes) * 8e6 / link.rate(at: $0.sentAt)) } }

    private func queue(percent: Int, without: (Flow.Record) -> Int64) -> Double {
        var waits: [Int64] = []
        for flow in testbed.flows {
            for record in flow.records {
                if let wait = record.queueDelay, !isAfterStepDown(record.sentAt + wait) {
                    waits.append(wait - without(record))
                }
            }
        }
        waits.sort()
        return waits.isEmpty ? 0 : Double(waits[waits.count * percent / 100]) / 1e3
    }

    /// The longest queue in milliseconds.
    func queueMax(from: Double, to: Double) -> Double { samples(from: from, to: to).map(\.queueMS).max() ?? 0 }

    /// The longest time from a step down until the queue is shorter than 50 ms and stays so for a second.
    var drain: Double {
        let steps = link.capacity
        guard !link.isWalk else { return 0 }
        return steps.indices.dropFirst().filter { steps[$0].rate < steps[$0 - 1].rate }
            .map { secondsUntilShort(after: steps[$0].at) }.max() ?? 0
    }

    private func secondsUntilShort(after at: Double) -> Double {
        var since: Int64?
        for sample in samples(from: at, to: end) {
            guard sample.queueMS < 50 else {
                since = nil
                continue
            }
            let start = since ?? sample.at
            since = start
            if sample.at - start >= 1_000_000 { return Double(start) / 1e6 - at }
        }
        return .infinity
    }

    /// From the end of the first transfer until the queue is shorter than 30 ms.
    var secondsUntilEmptyAfterTransfer: Double {
        guard let doneAt = testbed.cubics.first?.doneAt else { return .infinity }
        let sample = testbed.samples.first { $0.at > doneAt && $0.queueMS < 30 }
        return sample.map { Double($0.at - doneAt) / 1e6 } ?? .infinity
    }

    func samples(from: Double, to: Double) -> ArraySlice<Testbed.Sample> {
        let first = testbed.samples.firstIndex { Double($0.at) / 1e6 >= from } ?? testbed.samples.endIndex
        let last = testbed.samples.lastIndex { Double($0.at) / 1e6 < to } ?? testbed.samples.startIndex
        return first <= last ? testbed.samples[first...last] : []
    }

    // MARK: - Targets of the first flow

    func target(at seconds: Double) -> Double {
        testbed.samples.last { Double($0.at) / 1e6 <= seconds }?.targets.first ?? 0
    }

    func targetMin(from: Double, to: Double) -> Double {
        samples(from: from, to: to).compactMap(\.targets.first).min() ?? 0
    }

    func targetMax(from: Double, to: Double) -> Double {
        samples(from: from, to: to).compactMap(\.targets.first).max() ?? 0
    }

    /// The most falls of the target by more than 100 kbit/s within half a second, from a time on.
    func dips(from: Double) -> Double {
        let targets = samples(from: from, to: end).compactMap(\.targets.first)
        let falls = zip(targets, targets.dropFirst()).map { $0 - $1 > 100_000 ? 1 : 0 }
        return Double(falls.indices.map { falls[$0..<min($0 + 10, falls.count)].reduce(0, +) }.max() ?? 0)
    }

    /// The longest time for which the target stays above a rate.
    func secondsAbove(_ rate: Double) -> Double {
        var longest: Int64 = 0
        var since: Int64?
        for sample in testbed.samples {
            guard let target = sample.targets.first, target > rate else {
                since = nil
                continue
            }
            let start = since ?? sample.at
            since = start
            longest = max(longest, sample.at - start)
        }
        return Double(longest) / 1e6
    }

    // MARK: - Packets

    /// The share of packets that a full queue dropped, without 2 s after steps down.
    var loss: Double {
        var sent = 0
        var dropped = 0
        for flow in testbed.flows {
            sent += flow.records.count
            for record in flow.records where record.isDropped && !isAfterStepDown(record.sentAt) { dropped += 1 }
        }
        return Double(dropped) / Double(max(sent, 1))
    }

    /// The share of packets from a time on that a full queue dropped.
    func loss(from: Double) -> Double {
        var sent = 0
        var dropped = 0
        for flow in testbed.flows {
            for record in flow.records where Double(record.sentAt) / 1e6 >= from {
                sent += 1
                if record.isDropped { dropped += 1 }
            }
        }
        return Double(dropped) / Double(max(sent, 1))
    }

    /// The share of audio packets that a full queue dropped.
    var audioLoss: Double {
        var sent = 0
        var dropped = 0
        for flow in testbed.flows {
            for record in flow.records where record.purpose == .audio {
                sent += 1
                if record.isDropped { dropped += 1 }
            }
        }
        return Double(dropped) / Double(max(sent, 1))
    }

    /// The share of bytes that is padding.
    var overhead: Double {
        var sent = 0
        var padding = 0
        for flow in testbed.flows {
            for record in flow.records {
                sent += record.bytes
                if record.purpose == .padding { padding += record.bytes }
            }
        }
        return Double(padding) / Double(max(sent, 1))
    }
}
