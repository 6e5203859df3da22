import Base
import TestSupport
import Testing

@testable import SCTP

/// The work that a peer can cause, in steps.
@Suite struct WorkTests {
    /// A SACK of all that the victim sent but its first outstanding chunk.
    private func sack(_ scene: Scene, gaps: [ClosedRange<UInt16>]? = nil) -> [UInt8] {
        let chunks = scene.victim.association.sender.chunks
        let sent = UInt16(truncatingIfNeeded: chunks.nextTSN - chunks.firstTSN)
        let gaps = gaps ?? (sent >= 2 ? [2...sent] : [])
        var value: [UInt8] = []
        value.append(bigEndian: SerialNumber.raw(chunks.firstTSN - 1))
        value.append(bigEndian: UInt32(1 << 20))
        value.append(bigEndian: UInt16(gaps.count))
        value.append(bigEndian: UInt16(0))
        for gap in gaps {
            value.append(bigEndian: gap.lowerBound)
            value.append(bigEndian: gap.upperBound)
        }
        return .chunk(.sack, value)
    }

    /// A victim with as many outstanding chunks as it allows, all acknowledged by gap blocks but the first.
    private func full(_ policy: SendPolicy = SendPolicy(), streams: UInt16 = 1) -> Scene {
        let scene = Scene()
        var number: UInt16 = 0
        for _ in 0..<2_000 {
            for _ in 0..<300 {
                guard scene.victim.send([1], on: number % streams, policy, at: scene.pair.now) else { break }
                number &+= 1
            }
            let before = scene.victim.association.sender.chunks.nextTSN
            scene.pair.now += .milliseconds(1)
            if let deadline = scene.victim.association.nextDeadline, deadline <= scene.pair.now {
                scene.victim.association.handleTimeout(at: scene.pair.now)
            }
            scene.drain()
            scene.attack([sack(scene)])
            if scene.victim.association.sender.chunks.nextTSN == before { break }
        }
        return scene
    }

    private func sent(_ scene: Scene) -> Int {
        Int(scene.victim.association.sender.chunks.nextTSN - scene.victim.association.sender.chunks.firstTSN)
    }

    // MARK: - SACK

    @Test func `a SACK costs what it is the first to acknowledge`() {
        let scene = full()
        #expect(sent(scene) > 1_500)
        #expect(scene.victim.association.outstandingBytes <= 1 << 19)
        #expect(scene.victim.association.outstandingBytes > (1 << 19) - 1_000)
        // A few steps for each chunk: sent, acknowledged, found or not found lost, once.
        #expect(scene.victim.association.workSteps < UInt64(20 * sent(scene)))
        for _ in 0..<1_000 { #expect(scene.attack([sack(scene)]) <= 150) }
        // Without its gap blocks, and with them again.
        for _ in 0..<1_000 {
            #expect(scene.attack([sack(scene, gaps: [])]) <= 10)
            #expect(scene.attack([sack(scene)]) <= 150)
        }
        #expect(!scene.hasEnded)
    }

    @Test func `many gap blocks cost a step for each`() {
        let scene = full()
        let gaps = (0..<280 as Range<UInt16>).map { 2 + 6 * $0...4 + 6 * $0 }
        for _ in 0..<100 { #expect(scene.attack([sack(scene, gaps: gaps)]) <= 700) }
    }

    @Test func `only the first SACK of a packet counts, and others are a flood`() {
        let scene = full()
        let steps = scene.attack([[UInt8]](repeating: sack(scene), count: 74))
        #expect(steps <= 250)
        #expect(scene.victim.association.counters.glitches == 73)
        scene.attack([[UInt8]](repeating: sack(scene), count: 74))
        #expect(scene.victim.events.last == .ended(.violation(.flood)))
    }

    @Test func `a chunk is sent again at its third miss, and a SACK without news is none`() {
        let scene = Scene()
        for index in 0..<6 { scene.victim.send(payload(index, count: 1_000), at: scene.pair.now) }
        scene.drain()
        // All left at the same instant, so that none was overtaken.
        let rows: [(last: UInt16, retransmissions: UInt64)] = [(2, 0), (2, 0), (2, 0), (3, 0), (3, 0), (4, 1), (5, 1)]
        for row in rows {
            scene.attack([sack(scene, gaps: [2...row.last])])
            scene.drain()
            #expect(scene.victim.association.retransmissions == row.retransmissions, "up to \(row.last)")
        }
    }

    @Test func `what was acknowledged and dropped is sent again`() {
        let scene = Scene()
        for index in 0..<10 { scene.victim.send(payload(index, count: 1_000), at: scene.pair.now) }
        scene.drain()
        // The peer says that it has the last nine, and has none.
        scene.attack([sack(scene)])
        scene.pair.run(for: .seconds(10))
        #expect(scene.pair.left.messages.map { number(of: $0.bytes) } == Array(0..<10))
        #expect(Bool(scene.victim.association.sender.isDrained))
    }

    @Test func `giving messages up costs a step for each, on however many streams`() {
        let scene = full(SendPolicy(limit: .retransmissions(0)), streams: 100)
        let count = sent(scene)
        #expect(count > 500)
        #expect(scene.victim.association.workSteps < UInt64(20 * 65_536))
        scene.pair.now += .seconds(4)
        scene.victim.association.handleTimeout(at: scene.pair.now)
        scene.drain()
        for _ in 0..<100 { #expect(scene.attack([sack(scene)]) <= 150) }
    }

    @Test func `a message of many fragments among others is given up in as many steps`() {
        let scene = Scene()
        for id in 0..<20 as Range<UInt16> {
            scene.victim.send(
                payload(0, count: 20_000),
                on: id,
                SendPolicy(limit: .retransmissions(0)),
                at: scene.pair.now
            )
        }
        for _ in 0..<5 {
            scene.pair.now += .milliseconds(1)
            scene.victim.association.handleTimeout(at: scene.pair.now)
            scene.drain()
        }
        let before = scene.victim.association.workSteps
        let count = sent(scene)
        scene.pair.now += .seconds(4)
        scene.victim.association.handleTimeout(at: scene.pair.now)
        #expect(scene.victim.association.workSteps - before <= UInt64(10 * count + 100))
        // The peer gets over it.
        scene.victim.send(payload(7, count: 10), on: 3, at: scene.pair.now)
        scene.pair.run(for: .seconds(10))
        #expect(scene.pair.left.messages.contains { number(of: $0.bytes) == 7 })
        #expect(Bool(scene.victim.association.sender.isDrained))
    }

    // MARK: - FORWARD-TSN

    private func forward(_ tsn: Int64) -> [UInt8] {
        var value: [UInt8] = []
        value.append(bigEndian: SerialNumber.raw(tsn))
        return .chunk(.forwardTSN, value)
    }

    /// A victim that holds an unordered fragment on each of 1,000 streams.
    private func holding() -> Scene {
        let scene = Scene(isInterleaved: false)
        let start = scene.tsn
        for index in 0..<1_000 as Range<Int64> {
            let flags: DataFlags = [.beginning, .unordered]
            let tsn = start + 2_000 + 2 * index
            scene.attack([data(tsn, on: UInt16(index), flags, count: 1, isInterleaved: false)])
        }
        scene.drain()
        #expect(scene.victim.association.receiver.reassembly.heldChunks == 1_000)
        return scene
    }

    @Test func `a FORWARD-TSN does not walk the streams that hold fragments`() {
        let scene = holding()
        for _ in 0..<600 {
            #expect(scene.attack([forward(scene.tsn)]) <= 100)
            scene.pair.now += .milliseconds(2)
        }
        #expect(!scene.hasEnded)
        scene.attack([forward(scene.tsn + 3_400)])
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `only the first FORWARD-TSN of a packet counts, and others are a flood`() {
        let scene = holding()
        let start = scene.tsn
        let chunks = (0..<184 as Range<Int64>).map { forward(start + $0) }
        #expect(scene.attack(Array(chunks.prefix(60))) <= 200)
        #expect(scene.tsn == start + 1)
        scene.attack(chunks)
        #expect(scene.victim.events.last == .ended(.violation(.flood)))
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `a FORWARD-TSN takes steps for each stream that it names`() {
        let scene = holding()
        for packet in 0..<10_000 {
            var value: [UInt8] = []
            value.append(bigEndian: SerialNumber.raw(scene.tsn))
            for stream in 0..<360 as Range<UInt16> {
                value.append(bigEndian: stream)
                value.append(bigEndian: UInt16(truncatingIfNeeded: packet))
            }
            let steps = scene.attack([.chunk(.forwardTSN, value)])
            if scene.hasEnded { break }
            #expect((4 * 360...6 * 360).contains(steps))
            // 6,000 packets a second.
            if packet % 6 == 5 { scene.pair.now += .milliseconds(1) }
        }
        #expect(scene.victim.events.last == .ended(.violation(.excessiveWork)))
    }

    // MARK: - RE-CONFIG

    @Test func `a list of streams to reset costs steps for each, not for each of ours too`() {
        let scene = Scene()
        for id in 0..<250 as Range<UInt16> { scene.victim.send([1], on: id, at: scene.pair.now) }
        let start = scene.tsn
        for index in 0..<1_000 as Range<Int64> { scene.attack([data(start + index, on: UInt16(index), count: 1)]) }
        let first = scene.pair.left.association.local.firstTSN
        let streams = (0..<720 as Range<UInt16>).map { stream($0) }
        let outgoing = ReconfigurationParameter.outgoingReset(
            request: first,
            response: 0,
            lastTSN: SerialNumber.raw(scene.tsn - 1),
            streams: streams
        )
        #expect(scene.attack([outgoing.encoded()]) <= 5_000)
        #expect(scene.victim.events.last == .incomingReset(streams))
        let incoming = ReconfigurationParameter.incomingReset(request: first &+ 1, streams: streams)
        #expect(scene.attack([incoming.encoded()]) <= 5_000)
        #expect(scene.victim.association.sender.streams.streams.allSatisfy { $0.state == .closing })
        // Those that wait for data are not looked for in each packet one by one.
        #expect(scene.attack([data(scene.tsn, on: 900, message: 1)]) <= 1_000)
    }

    @Test func `lists of streams to reset fill no memory while the owner takes nothing`() {
        let scene = Scene()
        let first = scene.pair.left.association.local.firstTSN
        let streams = (0..<700 as Range<UInt16>).map { stream($0) }
        func attack(_ number: UInt32) {
            let list = ReconfigurationParameter.outgoingReset(
                request: first &+ number,
                response: 0,
                lastTSN: SerialNumber.raw(scene.tsn - 1),
                streams: streams
            )
            scene.attack([list.encoded()])
            scene.drain()
        }
        scene.victim.isPaused = true
        for number in 0..<50 as Range<UInt32> { attack(number) }
        scene.victim.isPaused = false
        scene.victim.take()
        // The second waited, and the others came before their turn.
        #expect(scene.victim.events == [.established, .incomingReset(streams), .incomingReset(streams)])
        attack(2)
        #expect(scene.victim.events.count == 4)
    }

    // MARK: - Data

    @Test func `numbers with holes cost the same however many there are`() {
        let scene = Scene()
        let start = scene.tsn
        var steps: [Int] = []
        for index in 0..<2_000 as Range<Int64> {
            let chunk = data(start + 1 + 2 * index, message: UInt32(index), [.beginning, .end, .unordered], count: 1)
            let before = scene.victim.association.workSteps
            scene.attack([chunk])
            scene.drain()
            steps.append(Int(scene.victim.association.workSteps - before))
        }
        #expect(steps.max() ?? 0 <= 60)
        // They are filled, the highest first.
        for index in (0..<2_000 as Range<Int64>).reversed() {
            let chunk = data(start + 2 * index, message: UInt32(index), [.beginning, .end, .unordered], count: 1)
            #expect(scene.attack([chunk]) <= 4_005)
        }
        #expect(scene.tsn == start + 4_000)
        #expect(scene.victim.association.workSteps < 200_000)
        #expect(scene.victim.messages.count == 4_000)
    }

    @Test func `a message whose fragments come backwards is put together`() {
        let scene = Scene()
        let start = scene.tsn
        let count: Int64 = 1_000
        var steps = 0
        for index in (0..<count).reversed() {
            let flags: DataFlags = index == 0 ? .beginning : index == count - 1 ? .end : []
            steps += scene.attack([data(start + index, fragment: UInt32(index), flags, count: 100)])
        }
        #expect(scene.victim.messages.map(\.bytes.count) == [100_000])
        #expect(steps <= 10 * Int(count))
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `messages that wait are delivered at once, whatever came first`() {
        let scene = Scene()
        let start = scene.tsn
        var steps = 0
        for index in (1..<1_000 as Range<Int64>) + [0] {
            steps += scene.attack([data(start + index, message: UInt32(index), count: 4)])
        }
        #expect(scene.victim.messages.count == 1_000)
        #expect(steps <= 10_000)
    }

    // MARK: - The budget

    /// Halves of messages, the latest message first, which have to be moved for each that comes; then they are given up.
    @Test func `a peer that goes on beyond its budget is ended for that reason`() {
        let scene = Scene()
        var message: UInt32 = 0
        var packets = 0
        var most = 0
        while !scene.victim.association.hasEnded, packets < 10_000 {
            message += 2_000
            var tsn = scene.tsn
            for part in 0..<40 as Range<UInt32> where !scene.victim.association.hasEnded {
                var chunks: [[UInt8]] = []
                for index in 0..<50 as Range<UInt32> {
                    chunks.append(data(tsn, message: message - (part * 50 + index), .beginning, count: 1))
                    tsn += 1
                }
                most = max(most, scene.attack(chunks))
                packets += 1
            }
            var value: [UInt8] = []
            value.append(bigEndian: SerialNumber.raw(tsn))
            value.append(bigEndian: UInt32(0))
            value.append(bigEndian: message)
            scene.attack([.chunk(.interleavedForwardTSN, value)])
            scene.pair.now += .milliseconds(1)
            scene.drain()
        }
        #expect(scene.victim.events.last == .ended(.violation(.excessiveWork)))
        #expect(scene.victim.association.workSteps <= 2_000_000)
        #expect(most <= 10_000)
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `the budget is a burst and a rate`() {
        var meter = WorkMeter()
        meter.add(WorkMeter.burst)
        #expect(meter.charge(at: at(0)) == true)
        meter.add()
        #expect(meter.charge(at: at(0)) == false)
        meter.add(WorkMeter.stepsPerSecond / 1_000)
        #expect(meter.charge(at: at(1)) == true)
        meter.add(.max)
        #expect(meter.charge(at: at(100)) == false)
        #expect(meter.charge(at: at(100)) == true)
    }

    @Test(arguments: [0.0, 1, 5], [64, 1_100, 60_000])
    func `honest peers cause a few steps for each chunk`(loss: Double, length: Int) {
        let pair = Pair.connected(LinkConditions(lossPercent: loss, reorderPercent: 1))
        for _ in 0..<300 {
            for _ in 0..<200 { pair.left.send(payload(1, count: length), at: pair.now) }
            pair.run(for: .milliseconds(20))
        }
        pair.run(for: .seconds(60)) { pair.left.association.sender.isDrained }
        let chunks = UInt64(pair.right.messages.count * ((length + 1_155) / 1_156))
        #expect(chunks > 500)
        for node in pair.nodes {
            #expect(node.association.workSteps <= 20 * chunks)
            #expect(node.events == [.established])
        }
    }

    // MARK: - Memory without progress

    @Test func `a peer that acknowledges all but one chunk is ended, and all is freed`() {
        let scene = full()
        let start = scene.pair.now
        var most = 0
        while !scene.victim.association.hasEnded, scene.pair.now - start < .seconds(100) {
            guard let deadline = scene.victim.association.nextDeadline else { break }
            scene.pair.now = max(scene.pair.now, deadline)
            scene.victim.association.handleTimeout(at: scene.pair.now)
            scene.victim.take()
            scene.drain()
            scene.attack([sack(scene)])
            most = max(most, scene.victim.association.outstandingBytes + scene.victim.association.heldBytes)
        }
        #expect(scene.victim.events.last == .ended(.violation(.noProgress)))
        #expect(scene.pair.now - start <= .seconds(61))
        #expect(most <= 1 << 20)
        #expect(scene.victim.association.outstandingBytes == 0)
        #expect(scene.victim.association.bufferedBytes == 0)
        #expect(scene.victim.association.nextDeadline == nil)
    }

    @Test(arguments: [true, false])
    func `a part of a message that nothing completes is held for a minute`(isInterleaved: Bool) {
        let scene = Scene(isInterleaved: isInterleaved)
        let flags: DataFlags = [.beginning, .unordered]
        scene.attack([data(scene.tsn, flags, count: 1_000, isInterleaved: isInterleaved)])
        scene.wait(.seconds(59))
        #expect(!scene.hasEnded)
        #expect(scene.victim.association.heldBytes > 1_000)
        scene.wait(.seconds(2))
        #expect(scene.victim.events.last == .ended(.violation(.noProgress)))
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `a slow message gets through, however long it takes`() {
        let scene = Scene()
        for index in 0..<10 as Range<UInt32> {
            let flags: DataFlags = index == 0 ? .beginning : index == 9 ? .end : []
            scene.attack([data(scene.tsn, fragment: index, flags)])
            scene.wait(.seconds(50))
        }
        #expect(scene.victim.messages.count == 1)
        #expect(!scene.hasEnded)
    }

    @Test func `messages that the owner leaves in the window are no fault of the peer`() {
        let scene = Scene()
        scene.victim.isPaused = true
        scene.attack([data(scene.tsn), data(scene.tsn + 1, message: 1, .beginning)])
        scene.wait(.seconds(200))
        #expect(!scene.hasEnded)
        scene.victim.isPaused = false
        scene.victim.take()
        scene.attack([data(scene.tsn, message: 1, fragment: 1, .end)])
        #expect(scene.victim.messages.count == 2)
    }

    @Test func `ending frees what is held and outstanding`() {
        let scene = full()
        scene.victim.isPaused = true
        let start = scene.tsn
        for index in 0..<100 as Range<Int64> {
            scene.attack([data(start + index, on: UInt16(index), count: 500)])
            scene.attack([data(start + 100 + index, on: UInt16(index), message: 2, .beginning, count: 500)])
        }
        #expect(scene.victim.association.heldBytes > 50_000)
        scene.victim.association.abort()
        #expect(scene.victim.association.heldBytes == 0)
        #expect(scene.victim.association.outstandingBytes == 0)
        #expect(scene.victim.association.bufferedBytes == 0)
        scene.victim.isPaused = false
        scene.victim.take()
        #expect(scene.victim.events == [.established, .ended(.aborted)])
        #expect(scene.victim.messages.isEmpty)
    }

    @Test func `both directions share the memory of an association`() {
        let scene = full()
        let start = scene.tsn
        for index in 0..<3_000 as Range<Int64> {
            scene.attack([data(start + 1 + index, message: UInt32(1 + index), count: 1_000)])
            scene.drain()
        }
        let association = scene.victim.association.heldBytes + scene.victim.association.outstandingBytes
        #expect(association <= 1 << 20)
        #expect(association > 900_000)
        #expect(scene.victim.association.heldBytes > 400_000)
    }
}
