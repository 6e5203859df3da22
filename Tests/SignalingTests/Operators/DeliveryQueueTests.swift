import Room
import Testing

@testable import Signaling

/// The queue behind a reference, so that an expectation can change it.
private final class Queue {
    private var queue: DeliveryQueue<Int>
    init(limits: WebhookLimits) { queue = DeliveryQueue(limits: limits) }
    var count: Int { queue.count }
    func add(_ item: Int, of channel: ChannelName) -> Bool { queue.add(item, of: channel) }
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

    @Test func `a channel's events go one after the other, channels side by side up to the limit`() {
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

    @Test func `a failure is tried again after waits that double, then given up, and the next one begins anew`() {
        let queue = Queue(limits: Self.limits(attempts: 4))
        #expect(queue.add(1, of: Self.a) && queue.add(2, of: Self.a) && queue.add(3, of: Self.b))
        for wait in [Duration.seconds(1), .seconds(2), .seconds(3)] {
            #expect(queue.next()?.item == 1)
            #expect(queue.finished(Self.a, isDelivered: false) == .retry(after: wait))
            // The other channel goes on, and this one waits.
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

    @Test func `what is too much is not taken, and room comes back`() {
        let queue = Queue(limits: Self.limits(waiting: 2))
        #expect(queue.add(1, of: Self.a) && queue.add(2, of: Self.b))
        #expect(!queue.add(3, of: Self.a) && !queue.add(4, of: Self.c))
        _ = queue.next()
        _ = queue.finished(Self.a, isDelivered: true)
        #expect(queue.add(5, of: Self.c))
        #expect(queue.next()?.item == 2)
        #expect(queue.next()?.item == 5)
    }

    @Test func `at the end a failure is final`() {
        let queue = Queue(limits: Self.limits())
        #expect(queue.add(1, of: Self.a))
        _ = queue.next()
        queue.startDraining()
        #expect(queue.finished(Self.a, isDelivered: false) == .gaveUp)
        #expect(queue.count == 0)
    }

    @Test(arguments: 0..<20)
    func `in any order of ends each event is told in its channel's order, or given up`(seed: UInt64) {
        var generator = OperatorsGenerator(seed: seed)
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
