import Base
import ChannelTypes
import TestSupport
import Testing
import Wire

@testable import Webhooks

/// The queue behind a reference, so that an expectation can change it.
private final class Queue {
    private var queue: DeliveryQueue<Int>
    init(limits: WebhookLimits) { queue = DeliveryQueue(limits: limits) }
    var count: Int { queue.count }
    func add(_ item: Int, of channel: ChannelName) -> Bool { queue.add(item, of: channel) == .taken }
    func addition(_ item: Int, of channel: ChannelName, isEssential: Bool = true) -> DeliveryQueue<Int>.Addition {
        queue.add(item, of: channel, isEssential: isEssential)
    }
    func next() -> (channel: ChannelName, item: Int)? { queue.next() }
    func finished(_ channel: ChannelName, isDelivered: Bool) -> DeliveryQueue<Int>.Outcome {
        queue.finished(channel, isDelivered: isDelivered)
    }
    func waited(for channel: ChannelName) { queue.waited(for: channel) }
    func startDraining() { queue.startDraining() }
}

@Suite struct DeliveryQueueTests {
    private static func limits(waiting: Int = 100, concurrency: Int = 2, attempts: Int = 3) -> WebhookLimits {
        var limits = WebhookLimits()
        limits.waitingMax = waiting
        limits.concurrencyMax = concurrency
        limits.attemptsMax = attempts
        limits.backoffMin = .seconds(1)
        limits.backoffMax = .seconds(3)
        return limits
    }
    private static let (a, b, c) = (ChannelName("a")!, ChannelName("b")!, ChannelName("c")!)

    @Test func `events are sequential within a channel and parallel across channels up to the limit`() {
        let queue = Queue(limits: Self.limits())
        for (item, channel) in [(1, Self.a), (2, Self.a), (3, Self.b), (4, Self.c)] {
            #expect(queue.add(item, of: channel))
        }
        #expect(queue.next()?.item == 1)
        #expect(queue.next()?.item == 3)
        #expect(queue.next() == nil, "two are under way")
        #expect(queue.finished(Self.b, isDelivered: true) == .delivered)
        #expect(queue.next()?.item == 4)
        #expect(queue.finished(Self.c, isDelivered: true) == .delivered)
        #expect(queue.next() == nil, "the second of a channel waits for its first")
        #expect(queue.finished(Self.a, isDelivered: true) == .delivered)
        #expect(queue.next()?.item == 2)
        #expect(queue.finished(Self.a, isDelivered: true) == .delivered)
        #expect(queue.count == 0 && queue.next() == nil)
    }

    @Test func `a failed event is retried with doubling waits, then dropped, and the next starts at the first wait`() {
        let queue = Queue(limits: Self.limits(attempts: 4))
        #expect(queue.add(1, of: Self.a) && queue.add(2, of: Self.a) && queue.add(3, of: Self.b))
        for wait in [Duration.seconds(1), .seconds(2), .seconds(3)] {
            #expect(queue.next()?.item == 1)
            #expect(queue.finished(Self.a, isDelivered: false) == .retry(after: wait))
            // The other channel continues, and this one waits.
            if wait == .seconds(1) {
                #expect(queue.next()?.item == 3)
                #expect(queue.finished(Self.b, isDelivered: true) == .delivered)
            }
            #expect(queue.next() == nil)
            queue.waited(for: Self.a)
        }
        #expect(queue.next()?.item == 1)
        #expect(queue.finished(Self.a, isDelivered: false) == .gaveUp)
        #expect(queue.next()?.item == 2)
        #expect(queue.finished(Self.a, isDelivered: false) == .retry(after: .seconds(1)))
        #expect(queue.count == 1)
    }

    @Test func `a full queue refuses events until one is delivered`() {
        let queue = Queue(limits: Self.limits(waiting: 2))
        #expect(queue.add(1, of: Self.a) && queue.add(2, of: Self.b))
        #expect(!queue.add(3, of: Self.a) && !queue.add(4, of: Self.c))
        _ = queue.next()
        _ = queue.finished(Self.a, isDelivered: true)
        #expect(queue.add(5, of: Self.c))
        #expect(queue.next()?.item == 2)
        #expect(queue.next()?.item == 5)
    }

    /// A channel that dropped its only event stays in the list of those that are ready, and comes to it again.
    @Test func `a channel that dropped its only event and got another one delivers that one once`() {
        let queue = Queue(limits: Self.limits(waiting: 1))
        #expect(queue.addition(1, of: Self.a, isEssential: false) == .taken)
        #expect(queue.addition(2, of: Self.b) == .displaced(Self.a))
        #expect(queue.next()?.item == 2)
        #expect(queue.finished(Self.b, isDelivered: true) == .delivered)
        #expect(queue.addition(3, of: Self.a, isEssential: false) == .taken)
        #expect(queue.next()?.item == 3)
        #expect(queue.next() == nil, "it is under way")
        #expect(queue.finished(Self.a, isDelivered: true) == .delivered)
        #expect(queue.count == 0 && queue.next() == nil)
    }

    @Test func `the channel with the most events drops its own, joins and leaves last`() {
        let queue = Queue(limits: Self.limits(waiting: 6, concurrency: 1))
        #expect(queue.add(0, of: Self.a))
        #expect(queue.next()?.item == 0, "it is under way")
        for item in 1..<4 { #expect(queue.addition(item, of: Self.a, isEssential: item != 3) == .taken) }
        #expect(queue.add(10, of: Self.b) && queue.add(11, of: Self.b))
        #expect(queue.addition(20, of: Self.c) == .displaced(Self.a), "3, which is not essential")
        #expect(queue.addition(4, of: Self.a) == .displaced(Self.a), "1, the oldest")
        #expect(queue.addition(21, of: Self.c) == .displaced(Self.a), "2")
        #expect(queue.count == 6)
        var told: [Int] = []
        var channel = Self.a
        while true {
            #expect(queue.finished(channel, isDelivered: true) == .delivered)
            guard let next = queue.next() else { break }
            told.append(next.item)
            channel = next.channel
        }
        #expect(told.filter { $0 < 10 } == [4])
        #expect(told.filter { (10..<20).contains($0) } == [10, 11] && told.filter { $0 >= 20 } == [20, 21])
        #expect(queue.count == 0)
    }

    @Test func `ten thousand queued joins of one channel cost another channel no event`() {
        let queue = Queue(limits: Self.limits(waiting: 1_000, concurrency: 16))
        for item in 0..<10_400 {
            let addition = queue.addition(item, of: Self.a)
            #expect(addition == .taken || addition == .displaced(Self.a))
            if item == 0 { _ = queue.next() }
        }
        #expect(queue.addition(-1, of: Self.b) == .displaced(Self.a))
        #expect(queue.next()?.item == -1, "and it is told at once")
    }

    @Test func `failure events of ten thousand channels displace no join or leave and are delivered later`() throws {
        let queue = Queue(limits: Self.limits(waiting: 1_000, concurrency: 4))
        for item in 0..<10_000 {
            let addition = queue.addition(item, of: try #require(ChannelName("flood-\(item)")), isEssential: false)
            #expect(addition == (item < 1_000 ? .taken : .refused))
        }
        for _ in 0..<3 { _ = queue.next() }
        for item in 10_000..<10_500 {
            let addition = queue.addition(item, of: try #require(ChannelName("honest-\(item)")))
            guard case .displaced(let loser) = addition else {
                Issue.record("\(addition)")
                continue
            }
            #expect(loser.value.hasPrefix("flood"))
        }
        #expect(queue.count == 1_000)
        #expect(queue.next()?.item == 10_000, "an honest event goes before the failures that came earlier")
    }

    @Test(arguments: 0..<20)
    func `in any order no channel drops an event while another has more`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let channels = [Self.a, Self.b, Self.c]
        let queue = Queue(limits: Self.limits(waiting: 12, concurrency: 2))
        var sizes: [ChannelName: Int] = [:]
        var underWay: [ChannelName] = []
        for item in 0..<500 {
            if Int.random(in: 0..<3, using: &generator) > 0 {
                let channel = channels[min(Int.random(in: 0..<6, using: &generator), 2)]
                let before = sizes
                switch queue.addition(item, of: channel, isEssential: Bool.random(using: &generator)) {
                case .taken: break
                case .displaced(let loser):
                    #expect(before[loser] == before.values.max())
                    sizes[loser, default: 0] -= 1
                case .refused:
                    Issue.record("there are fewer channels than places")
                    continue
                }
                sizes[channel, default: 0] += 1
            } else if Bool.random(using: &generator), let next = queue.next() {
                underWay.append(next.channel)
            } else if let channel = underWay.popLast() {
                #expect(queue.finished(channel, isDelivered: true) == .delivered)
                sizes[channel, default: 0] -= 1
            }
            #expect(queue.count == sizes.values.reduce(0, +) && queue.count <= 12)
        }
    }

    @Test func `during shutdown a failure is final`() {
        let queue = Queue(limits: Self.limits())
        #expect(queue.add(1, of: Self.a))
        _ = queue.next()
        queue.startDraining()
        #expect(queue.finished(Self.a, isDelivered: false) == .gaveUp)
        #expect(queue.count == 0)
    }

    @Test(arguments: 0..<20)
    func `in any order of completions each event is delivered in its channel's order, or dropped`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let channels = [Self.a, Self.b, Self.c]
        let queue = Queue(limits: Self.limits(waiting: 1_000, concurrency: 2, attempts: 2))
        var added: [ChannelName: [Int]] = [:]
        var over: [ChannelName: [Int]] = [:]
        var underWay: [(channel: ChannelName, item: Int)] = []
        var waiting: [ChannelName] = []
        var number = 0
        while number < 200 || queue.count > 0 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0 where number < 200:
                let channel = channels[Int.random(in: 0..<3, using: &generator)]
                #expect(queue.add(number, of: channel))
                added[channel, default: []].append(number)
                number += 1
            case 1:
                guard let next = queue.next() else { continue }
                #expect(!underWay.contains { $0.channel == next.channel } && underWay.count < 2)
                underWay.append(next)
            case 2 where !underWay.isEmpty:
                let ended = underWay.remove(at: Int.random(in: underWay.indices, using: &generator))
                switch queue.finished(ended.channel, isDelivered: Bool.random(using: &generator)) {
                case .delivered, .gaveUp: over[ended.channel, default: []].append(ended.item)
                case .retry: waiting.append(ended.channel)
                }
            case 3 where !waiting.isEmpty:
                queue.waited(for: waiting.remove(at: Int.random(in: waiting.indices, using: &generator)))
            default: continue
            }
        }
        #expect(over == added)
    }
}

@Suite struct OpenQuestionTests {
    private func network(_ number: Int) -> ClientNetwork { ClientNetwork(IPAddress("192.0.2.\(number)")!) }

    @Test func `networks at their limit leave room for another network`() {
        var limits = WebhookLimits()
        limits.questionsMax = 200
        limits.questionsPerNetworkMax = 40
        var questions = PendingAdmissions(limits)
        var taken = 0
        for round in 0..<2_000 where questions.open(for: network(round % 20)) == nil { taken += 1 }
        #expect(taken < 200)
        #expect(questions.open(for: network(99)) == nil)
        #expect(questions.open(for: network(0)) == .networkShare)
        questions.close(for: network(0))
        #expect(questions.open(for: network(98)) == nil, "room comes back")
    }

    @Test func `a shared network has no limit of its own, only the total limit`() {
        var limits = WebhookLimits()
        limits.questionsMax = 20
        limits.questionsPerNetworkMax = 2
        var questions = PendingAdmissions(limits)
        for round in 0..<20 {
            #expect(questions.open(for: round % 2 == 0 ? .unknown : ClientNetwork(.loopbackV4)) == nil)
        }
        #expect(questions.open(for: .unknown) == .full)
    }
}
