import Base
import TestSupport
import Testing

@testable import SCTP

/// Messages over links that lose, repeat and reorder packets.
@Suite struct TransferTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var loss = 0.0
        var duplicates = 0.0
        var reorder = 0.0
        var delay = 10
        var window = 1 << 20
        var isInterleaved = true

        var testDescription: String {
            "loss \(loss) %, duplicates \(duplicates) %, reorder \(reorder) %, \(delay) ms, window \(window), "
                + "interleaved \(isInterleaved)"
        }
        var conditions: LinkConditions {
            LinkConditions(
                lossPercent: loss,
                duplicatePercent: duplicates,
                reorderPercent: reorder,
                delay: .milliseconds(delay)
            )
        }
        var settings: AssociationSettings {
            var settings = AssociationSettings()
            settings.windowBytes = window
            settings.offersInterleaving = isInterleaved
            return settings
        }
    }

    static let cases: [Case] = [
        Case(), Case(isInterleaved: false), Case(loss: 1), Case(loss: 5), Case(loss: 20, isInterleaved: false),
        Case(loss: 20), Case(duplicates: 30, reorder: 30), Case(duplicates: 30, reorder: 30, isInterleaved: false),
        Case(loss: 5, duplicates: 5, reorder: 20, delay: 100), Case(loss: 2, delay: 1, window: 10_000),
        Case(loss: 2, delay: 1, window: 10_000, isInterleaved: false), Case(loss: 10, reorder: 50, window: 6_000),
        Case(loss: 40, delay: 1),
    ]

    private func pair(_ seed: UInt64, _ scene: Case) -> Pair {
        .connected(seed: seed, scene.conditions, left: scene.settings, right: scene.settings)
    }

    /// Sends `count` messages of many lengths on three streams, as fast as the queue takes them.
    private func exchange(_ pair: Pair, count: Int, _ policy: SendPolicy, lengthMax: Int = 6_000) {
        var next = [0, 0]
        func fill() {
            for index in 0..<2 {
                while next[index] < count {
                    let number = next[index]
                    let length = number % 7 == 0 ? lengthMax : 4 + number * 37 % 1_300
                    let bytes = payload(number, count: length)
                    guard pair.nodes[index].send(bytes, on: UInt16(number % 3), policy, at: pair.now) else { break }
                    next[index] += 1
                }
            }
        }
        for _ in 0..<600 where pair.nodes.contains(where: { $0.messages.count < count }) {
            fill()
            pair.run(for: .seconds(1)) { pair.nodes.allSatisfy { $0.messages.count >= count } }
        }
    }

    @Test(arguments: cases, [1, 2])
    func `reliable ordered messages arrive once and in order`(scene: Case, seed: Int) {
        let pair = pair(UInt64(seed), scene)
        exchange(pair, count: 60, SendPolicy())
        for node in pair.nodes {
            for id in 0..<3 as Range<Int> {
                let numbers = node.messages.filter { $0.stream == stream(UInt16(id)) }.map { number(of: $0.bytes) }
                #expect(numbers == Array(stride(from: id, to: 60, by: 3)), "seed \(seed)")
            }
            #expect(node.messages.allSatisfy { $0.bytes == payload(number(of: $0.bytes), count: $0.bytes.count) })
            #expect(node.events == [.established])
        }
        pair.run(for: .seconds(5))
        for node in pair.nodes {
            #expect(node.messages.count == 60)
            #expect(node.association.heldBytes == 0)
            #expect(node.association.nextDeadline == nil, "nothing is left to do")
        }
    }

    @Test(arguments: cases)
    func `reliable unordered messages arrive once`(scene: Case) {
        let pair = pair(3, scene)
        exchange(pair, count: 60, SendPolicy(isOrdered: false))
        pair.run(for: .seconds(5))
        for node in pair.nodes {
            #expect(node.messages.map { number(of: $0.bytes) }.sorted() == Array(0..<60))
            #expect(node.messages.allSatisfy { $0.bytes == payload(number(of: $0.bytes), count: $0.bytes.count) })
            #expect(node.association.heldBytes == 0)
        }
    }

    @Test(
        arguments: cases,
        [
            SendPolicy(limit: .retransmissions(0)), SendPolicy(limit: .lifetime(.milliseconds(150))),
            SendPolicy(isOrdered: false, limit: .retransmissions(1)),
        ]
    )
    func `messages with a limit may be lost, keep their order and block nothing`(scene: Case, policy: SendPolicy) {
        let pair = pair(4, scene)
        var count = 0
        for _ in 0..<40 {
            for id in 0..<2 as Range<UInt16> {
                pair.left.send(payload(count, count: count % 5 == 0 ? 5_000 : 300), on: id, policy, at: pair.now)
                count += 1
            }
            pair.run(for: .milliseconds(30))
        }
        // A reliable message behind them gets through, so nothing waits for what was given up.
        pair.conditions.lossPercent = 0
        for id in 0..<2 as Range<UInt16> { pair.left.send(payload(9_999, count: 10), on: id, at: pair.now) }
        pair.run(for: .seconds(20))
        for id in 0..<2 as Range<UInt16> {
            let numbers = pair.right.messages.filter { $0.stream == stream(id) }.map { number(of: $0.bytes) }
            #expect(Set(numbers).count == numbers.count)
            #expect(numbers.contains(9_999))
            if policy.isOrdered { #expect(numbers == numbers.sorted()) }
        }
        if scene.loss == 0, scene.delay < 100 { #expect(pair.right.messages.count == count + 2) }
        if scene.loss >= 20, policy.limit == .retransmissions(0) { #expect(pair.right.messages.count < count) }
        #expect(pair.right.messages.allSatisfy { $0.bytes == payload(number(of: $0.bytes), count: $0.bytes.count) })
        for node in pair.nodes {
            #expect(node.association.heldBytes == 0)
            #expect(node.association.nextDeadline == nil)
        }
    }

    @Test(arguments: [1, 1_155, 1_156, 1_157, 1_160, 1_161, 2_320, 65_536, 262_144], [true, false])
    func `messages of all lengths arrive whole`(length: Int, isInterleaved: Bool) {
        let pair = pair(5, Case(isInterleaved: isInterleaved))
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        pair.left.send(bytes, at: pair.now)
        pair.left.send(bytes, SendPolicy(isOrdered: false), at: pair.now)
        pair.run(for: .seconds(10))
        #expect(pair.right.messages.map(\.bytes) == [bytes, bytes])
    }

    @Test func `what cannot be queued is refused with a reason`() {
        var settings = AssociationSettings()
        settings.queuedBytesMax = 300_000
        settings.queuedBytesPerStreamMax = 200_000
        settings.streamsMax = 3
        let pair = Pair.connected(left: settings)
        #expect(pair.left.refusal(0, at: pair.now) == .empty)
        #expect(pair.left.refusal(262_145, at: pair.now) == .tooLong)
        #expect(pair.left.refusal(150_000, on: 1, at: pair.now) == nil)
        #expect(pair.left.refusal(60_000, on: 1, at: pair.now) == .full, "the stream is full")
        #expect(pair.left.refusal(140_000, on: 2, at: pair.now) == nil)
        #expect(pair.left.refusal(20_000, on: 3, at: pair.now) == .full, "the association is full")
        #expect(pair.left.refusal(1, on: 4, at: pair.now) == .stream)
        #expect(pair.left.refusal(1, on: 65_535, at: pair.now) == .stream)
        #expect(pair.left.association.bufferedBytes == 290_000)
        pair.run(for: .seconds(10))
        #expect(pair.left.association.bufferedBytes == 0)
        #expect(pair.right.messages.count == 2)
    }

    @Test func `a message is not copied`() {
        var bytes = [UInt8](repeating: 7, count: 200_000)
        var generator = SeededGenerator(seed: 1)
        var nodes: [Node] = []
        for _ in 0..<10 { nodes.append(Node(AssociationSettings(), &generator)) }
        let address = address(of: bytes)
        for node in nodes { node.send(bytes, at: at(0)) }
        for node in nodes {
            let payload = node.association.sender.streams[stream(0)]?.messages.first?.payload ?? []
            #expect(self.address(of: payload) == address)
        }
        bytes = []
    }

    private func address(of bytes: [UInt8]) -> Int {
        unsafe bytes.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    }

    @Test func `the oldest unsent messages can be dropped`() {
        let pair = Pair.connected()
        pair.loses = { _, _ in true }
        for index in 0..<100 { pair.left.send(payload(index, count: 1_000), at: pair.now) }
        pair.flush()
        let dropped = pair.left.association.discardUnsent(on: stream(0), downTo: 10_000)
        #expect(dropped > 50)
        #expect(pair.left.association.bufferedBytes == 10_000)
        pair.loses = nil
        pair.run(for: .seconds(10))
        #expect(pair.right.messages.count == 100 - dropped)
        #expect(pair.right.messages.last.map { number(of: $0.bytes) } == 99)
    }

    // MARK: - Rates

    /// Sends for `seconds` as fast as possible.
    /// - Returns: bits a second that arrived.
    private func rate(_ pair: Pair, seconds: Int) -> Int {
        var index = 0
        let start = pair.now
        while pair.now < start + .seconds(seconds) {
            while pair.left.send(payload(index, count: 20_000), at: pair.now) { index += 1 }
            pair.run(for: .milliseconds(100))
        }
        return pair.right.messages.reduce(0) { $0 + $1.bytes.count } * 8 / seconds
    }

    @Test(arguments: [1, 2])
    func `one percent of loss at 60 ms leaves three Mbit a second`(seed: Int) {
        let pair = Pair.connected(seed: UInt64(seed), LinkConditions(lossPercent: 1, delay: .milliseconds(30)))
        let rate = rate(pair, seconds: 20)
        #expect(rate > 3_000_000, "\(rate) bit/s")
    }

    @Test func `a link of two Mbit a second is used well`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20), rate: 2_000_000))
        let rate = rate(pair, seconds: 10)
        #expect(rate > 1_700_000, "\(rate) bit/s")
    }

    @Test func `a lost tail is sent again within three round trips`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(30)))
        pair.left.send(payload(0, count: 1_000), at: pair.now)
        pair.run(for: .seconds(1))
        var lost = 0
        pair.loses = { source, packet in
            guard source == 0, packet.count > 500, lost == 0 else { return false }
            lost += 1
            return true
        }
        let start = pair.now
        pair.left.send(payload(1, count: 1_000), at: pair.now)
        pair.run(for: .seconds(3)) { pair.right.messages.count == 2 }
        #expect(lost == 1)
        #expect(pair.now - start < .milliseconds(3 * 60 + 60), "\(pair.now - start)")
    }

    @Test func `the data budget holds data back and lets control through`() {
        let pair = Pair.connected()
        pair.left.dataBudget = 0
        pair.left.send([1], at: pair.now)
        pair.right.send([2], at: pair.now)
        pair.run(for: .seconds(2))
        #expect(pair.left.messages.count == 1)
        #expect(pair.right.messages.isEmpty)
        #expect(pair.right.association.retransmissions == 0, "acknowledged without data")
        pair.left.dataBudget = 1
        pair.run(for: .seconds(1))
        #expect(pair.right.messages.count == 1)
    }

    @Test func `a paused receiver stops the sender, and nothing is lost`() {
        let pair = Pair.connected()
        pair.right.isPaused = true
        var count = 0
        for _ in 0..<40 {
            while pair.left.send(payload(count, count: 10_000), at: pair.now) { count += 1 }
            pair.run(for: .milliseconds(500))
        }
        #expect(pair.right.association.heldBytes <= (1 << 20) + (1 << 18))
        #expect(pair.right.association.heldBytes > 800_000)
        let sent = pair.sentPackets[0]
        pair.run(for: .seconds(30))
        #expect(pair.sentPackets[0] - sent < 100, "only probes")
        pair.right.isPaused = false
        pair.run(for: .seconds(20))
        #expect(pair.right.messages.map { number(of: $0.bytes) } == Array(0..<count))
    }

    @Test(arguments: [true, false])
    func `a stream with a higher weight goes first`(isInterleaved: Bool) {
        let pair = pair(6, Case(isInterleaved: isInterleaved))
        for index in 0..<40 { pair.left.send(payload(index, count: 10_000), on: 1, at: pair.now) }
        pair.flush()
        let isSet = (try? pair.left.association.setWeight(1_024, of: stream(2))) != nil
        #expect(isSet)
        for index in 0..<40 { pair.left.send(payload(index, count: 10_000), on: 2, at: pair.now) }
        pair.run(for: .seconds(20))
        let order = pair.right.messages.map(\.stream.rawValue)
        #expect(order.count == 80)
        let half = order.prefix(40)
        #expect(half.count { $0 == 2 } > 2 * half.count { $0 == 1 }, "\(order)")
    }
}
