import Base
import MediaTypes
import TestSupport
import Testing

@testable import Forwarding

@Suite struct LayerAllocatorTests {
    private static let start = Instant(nanoseconds: 1_000_000_000_000)

    /// A receiver whose rate and slots change with virtual time.
    private struct Receiver {
        var requests: [LayerRequest]
        var allocator = LayerAllocator()
        var now = LayerAllocatorTests.start
        var allocation = LayerAllocation()
        /// Changes of each slot's target since the first allocation.
        var changes: [Int] = []

        init(_ requests: [LayerRequest]) { self.requests = requests }

        mutating func allocate(_ rate: Int, carried: Int? = nil, isGuess: Bool = false) {
            let before = allocation.targets
            allocation = allocator.allocate(
                requests,
                rate: .limited(bitsPerSecond: rate),
                carried: carried,
                isGuess: isGuess,
                at: now
            )
            if changes.count != requests.count { changes = .init(repeating: 0, count: requests.count) }
            guard before.count == requests.count else { return }
            for slot in before.indices where before[slot] != allocation.targets[slot] { changes[slot] += 1 }
        }

        /// Lets time pass at a rate, a call each 100 ms.
        mutating func run(_ rate: Int, for time: Interval) {
            let end = now + time
            while now < end {
                allocate(rate)
                now += .milliseconds(100)
            }
        }

        func stream(_ slot: Int = 0) -> UInt64? {
            guard case .layer(let stream, _, _) = allocation.targets[slot] else { return nil }
            return stream.rawValue
        }
    }

    private static func camera(_ id: UInt32 = 1, _ importance: SlotImportance = .other) -> LayerRequest {
        LayerSources.request(id, LayerSources.plainCamera, importance, isPlaying: true)
    }

    @Test func `at the start the layers follow the rate at once`() {
        var receiver = Receiver([Self.camera()])
        receiver.allocate(300_000)
        #expect(receiver.stream() == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(700_000)
        #expect(receiver.stream() == 2)
        receiver.now += .milliseconds(100)
        receiver.allocate(2_400_000)
        #expect(receiver.stream() == 3)
        #expect(receiver.allocation.upgrade == nil)
    }

    @Test func `layers that play count without their margin, and a rate that falls below that lowers them at once`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(3_000_000, for: .seconds(10))
        #expect(receiver.stream() == 3)
        // Of 2,120,000; the lowest layer counts in full.
        receiver.allocate(2_030_000)
        #expect(receiver.stream() == 3)
        receiver.allocate(2_010_000)
        #expect(receiver.stream() == 2)
        #expect(receiver.allocation.allocated == 530_000)
    }

    @Test func `layers go up when the rate suffices with room for half a second`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(600_000, for: .seconds(10))
        // Less than the best layer costs and 75 thousandths more.
        receiver.run(2_245_000, for: .seconds(10))
        #expect(receiver.stream() == 2)
        receiver.allocate(2_280_000)
        #expect(receiver.stream() == 2)
        #expect(receiver.allocation.retryAt == receiver.now + .milliseconds(500))
        receiver.now += .milliseconds(400)
        receiver.allocate(2_280_000)
        #expect(receiver.stream() == 2)
        receiver.now += .milliseconds(100)
        receiver.allocate(2_280_000)
        #expect(receiver.stream() == 3)
        #expect(receiver.allocation.retryAt == nil)
    }

    @Test func `a slot goes up once in two seconds`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(200_000, for: .seconds(10))
        receiver.run(700_000, for: .milliseconds(600))
        #expect(receiver.stream() == 2)
        let raisedAt = receiver.now - .milliseconds(100)
        while receiver.stream() == 2 { receiver.run(2_500_000, for: .milliseconds(100)) }
        #expect(receiver.now - .milliseconds(100) - raisedAt == .seconds(2))
    }

    @Test func `an upgrade that fails is barred for longer each time`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(600_000, for: .seconds(10))
        receiver.run(2_400_000, for: .seconds(1))
        for seconds in [5, 10, 20, 40, 60, 60] {
            #expect(receiver.stream() == 3)
            receiver.allocate(600_000)
            #expect(receiver.stream() == 2)
            let failedAt = receiver.now
            while receiver.stream() == 2 { receiver.run(2_400_000, for: .milliseconds(100)) }
            #expect(receiver.now - .milliseconds(100) - failedAt == .seconds(seconds))
        }
        // After calm the bar is short again.
        receiver.run(2_400_000, for: .seconds(400))
        receiver.allocate(600_000)
        receiver.run(2_400_000, for: .seconds(4))
        #expect(receiver.stream() == 3)
        receiver.allocate(600_000)
        let failedAt = receiver.now
        while receiver.stream() == 2 { receiver.run(2_400_000, for: .milliseconds(100)) }
        #expect(receiver.now - failedAt < .seconds(6))
    }

    @Test func `a much higher rate lifts the bar`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(600_000, for: .seconds(10))
        for _ in 0..<3 {
            while receiver.stream() == 2 { receiver.run(2_400_000, for: .milliseconds(100)) }
            receiver.allocate(600_000)
        }
        receiver.run(2_400_000, for: .seconds(3))
        #expect(receiver.stream() == 2)
        receiver.run(2_900_000, for: .seconds(1))
        #expect(receiver.stream() == 3)
    }

    /// A camera all of whose rates are scaled.
    private static func camera(scaledBy percent: Int) -> LayerRequest {
        LayerSources.request(
            1,
            LayerSources.table(
                [(180, 150_000), (360, 500_000), (720, 2_000_000)].map {
                    LayerSources.Encoding(height: $0.0, rates: [$0.1 * percent / 100])
                }
            ),
            isPlaying: true
        )
    }

    @Test func `a cost that rises alone lowers layers late, and only far above the rate`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(2_400_000, for: .seconds(10))
        receiver.requests[0] = Self.camera(scaledBy: 140)
        receiver.run(2_400_000, for: .seconds(10))
        #expect(receiver.stream() == 3)
        receiver.requests[0] = Self.camera(scaledBy: 100)
        receiver.run(2_400_000, for: .seconds(1))
        receiver.requests[0] = Self.camera(scaledBy: 160)
        receiver.run(2_400_000, for: .milliseconds(500))
        #expect(receiver.stream() == 3)
        receiver.allocate(2_400_000)
        #expect(receiver.stream() == 2)
    }

    @Test func `one picture at a time waits for a key frame of better layers`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2)])
        receiver.run(400_000, for: .seconds(10))
        #expect([receiver.stream(0), receiver.stream(1)] == [1, 1])
        receiver.run(5_000_000, for: .milliseconds(600))
        #expect([receiver.stream(0), receiver.stream(1)] == [3, 1])
        receiver.requests[0].isAwaitingKeyFrame = true
        receiver.run(5_000_000, for: .seconds(1))
        #expect([receiver.stream(0), receiver.stream(1)] == [3, 1])
        receiver.requests[0].isAwaitingKeyFrame = false
        receiver.allocate(5_000_000)
        #expect([receiver.stream(0), receiver.stream(1)] == [3, 3])
    }

    @Test func `a key frame that does not come holds nobody up for long`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2)])
        receiver.run(400_000, for: .seconds(10))
        receiver.run(5_000_000, for: .milliseconds(600))
        receiver.requests[0].isAwaitingKeyFrame = true
        receiver.run(5_000_000, for: .milliseconds(3_100))
        #expect(receiver.stream(1) == 3)
    }

    @Test func `importance moves layers in the same call`() {
        var receiver = Receiver((1...4).map { Self.camera($0) })
        receiver.run(1_400_000, for: .seconds(10))
        #expect((0..<4).map { receiver.stream($0) } == [2, 1, 1, 1])
        receiver.requests[3].preference.importance = .stage
        receiver.allocate(1_400_000)
        #expect((0..<4).map { receiver.stream($0) } == [1, 1, 1, 2])
    }

    @Test func `a slot that vanishes frees its part in the same call`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2)])
        receiver.run(2_400_000, for: .seconds(10))
        #expect(receiver.stream(1) == 2)
        receiver.requests.removeFirst()
        receiver.allocate(2_400_000)
        #expect(receiver.stream() == 3)
    }

    @Test func `a new slot shows its lowest layer at once, if need be instead of others' upper ones`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2)])
        receiver.run(1_170_000, for: .seconds(10))
        #expect([receiver.stream(0), receiver.stream(1)] == [2, 2])
        receiver.requests.append(Self.camera(3))
        receiver.allocate(1_170_000)
        #expect((0..<3).map { receiver.stream($0) } == [2, 1, 1])
        #expect(receiver.allocation.allocated <= 1_170_000)
    }

    @Test func `a paused slot returns with room`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2, .speaker)])
        receiver.run(350_000, for: .seconds(10))
        #expect([receiver.stream(0), receiver.stream(1)] == [1, 1])
        receiver.run(310_000, for: .seconds(3))
        #expect(receiver.allocation.targets[0] == .nothing)
        #expect(receiver.stream(1) == 1)
        receiver.run(349_000, for: .seconds(20))
        #expect(receiver.allocation.targets[0] == .nothing)
        receiver.run(350_000, for: .seconds(1))
        #expect(receiver.stream(0) == 1)
    }

    @Test func `the most important slot shows something at any rate`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2, .stage)])
        receiver.run(0, for: .seconds(10))
        #expect(receiver.allocation.targets[0] == .nothing)
        #expect(receiver.stream(1) == 1)
    }

    @Test func `what the path is known not to carry is paused, and named as the next upgrade`() {
        var receiver = Receiver([Self.camera(1), Self.camera(2, .stage)])
        receiver.allocate(100_000)
        #expect(receiver.stream(1) == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(100_000, carried: 170_000)
        #expect(receiver.stream(1) == 1)
        receiver.now += .milliseconds(100)
        // Eight tenths of what it costs.
        receiver.allocate(100_000, carried: 127_200)
        #expect(receiver.stream(1) == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(100_000, carried: 127_199)
        #expect(receiver.allocation.targets == [.nothing, .nothing])
        #expect(receiver.allocation.upgrade == 179_000)
        // One that does not play waits for all of it.
        receiver.now += .milliseconds(100)
        receiver.allocate(100_000, carried: 158_999)
        #expect(receiver.allocation.targets == [.nothing, .nothing])
        // A rate that suffices is proof enough.
        receiver.now += .milliseconds(100)
        receiver.allocate(179_000, carried: 140_000)
        #expect(receiver.stream(1) == 1)
    }

    @Test func `a guess is enough for the lowest simulcast layer only`() {
        var receiver = Receiver([LayerSources.request(1, LayerSources.camera, isPlaying: true)])
        receiver.allocate(700_000, isGuess: true)
        #expect(receiver.stream() == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(700_000, isGuess: true)
        #expect(receiver.stream() == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(700_000)
        #expect(receiver.stream() == 2)
    }

    @Test func `a screen that stands still keeps its claim for ten seconds`() {
        func screen(_ divisor: Int) -> LayerRequest {
            let table = LayerSources.table([LayerSources.Encoding(height: 1_080, rates: [2_000_000 / divisor])])
            return LayerSources.request(1, table, .screen, isPlaying: true)
        }
        var receiver = Receiver([screen(1)])
        receiver.run(3_000_000, for: .seconds(5))
        receiver.requests[0] = screen(20)
        receiver.run(3_000_000, for: .seconds(8))
        #expect(receiver.allocation.allocated > 2_100_000)
        receiver.run(3_000_000, for: .seconds(3))
        #expect(receiver.allocation.allocated < 110_000)
    }

    @Test func `a short peak of a screen switches nothing`() {
        func screen(_ rate: Int) -> LayerRequest {
            let table = LayerSources.table([
                LayerSources.Encoding(height: 540, rates: [100_000]),
                LayerSources.Encoding(height: 1_080, rates: [rate]),
            ])
            return LayerSources.request(1, table, .screen, isPlaying: true)
        }
        var receiver = Receiver([screen(600_000)])
        receiver.run(1_000_000, for: .seconds(10))
        #expect(receiver.stream() == 2)
        receiver.requests[0] = screen(1_600_000)
        receiver.run(1_000_000, for: .milliseconds(500))
        receiver.requests[0] = screen(600_000)
        receiver.run(1_000_000, for: .seconds(10))
        #expect(receiver.stream() == 2)
        #expect(receiver.changes[0] == 0)
    }

    /// A screen by what its publisher says, for which the viewer asks no more than for a camera.
    private static func sharedScreen(_ importance: SlotImportance = .other) -> LayerRequest {
        var table = LayerSources.screen
        table.isScreen = true
        return LayerSources.request(1, table, importance, isPlaying: true)
    }

    @Test(arguments: [SlotImportance.other, .speaker, .stage])
    func `a screen has its size before its frame rate, pinned or not`(importance: SlotImportance) {
        var receiver = Receiver([Self.sharedScreen(importance)])
        receiver.run(1_000_000, for: .seconds(10))
        let (top, lowest) = (StreamID(rawValue: 2), UInt8(0))
        #expect(receiver.allocation.targets == [.layer(stream: top, spatialID: .max, temporalID: lowest)])
    }

    @Test func `a source that becomes a screen gets its size in the same call`() {
        var receiver = Receiver([
            LayerSources.request(1, LayerSources.screen, isPlaying: true), Self.camera(2), Self.camera(3),
        ])
        receiver.run(1_270_000, for: .seconds(10))
        #expect((0..<3).map { receiver.stream($0) } == [1, 1, 1])
        receiver.requests[0] = Self.sharedScreen()
        receiver.allocate(1_270_000)
        #expect((0..<3).map { receiver.stream($0) } == [2, 1, 1])
    }

    // MARK: - Key frames

    private static func camera(keyFrames: [Int]) -> LayerRequest {
        var table = LayerSources.plainCamera
        for (index, bytes) in keyFrames.enumerated() { table.encodings[index].keyFrameBytes = bytes }
        return LayerSources.request(1, table, isPlaying: true)
    }

    @Test(arguments: [
        ([5_000, 20_000, 100_000], [1, 3]),
        ([5_000, 20_000, 140_000], [1, 2, 3]),
        ([5_000, 140_000, 150_000], [1, 2, 3]),
        ([5_000, 20_000, 0], [1, 3]),
    ])
    func `a key frame that would take long is led up to by a smaller one`(keyFrames: [Int], streams: [UInt64]) {
        var receiver = Receiver([Self.camera(keyFrames: keyFrames)])
        receiver.run(200_000, for: .seconds(10))
        var seen = [receiver.stream()]
        for _ in 0..<60 {
            receiver.run(2_500_000, for: .milliseconds(100))
            if receiver.stream() != seen.last { seen.append(receiver.stream()) }
        }
        #expect(seen == streams)
    }

    @Test func `a key frame has the rate that the other slots leave`() {
        var other = Self.camera(2, .stage)
        other.preference.cap = .level(0)
        var receiver = Receiver([Self.camera(keyFrames: [5_000, 20_000, 130_000]), other])
        receiver.run(400_000, for: .seconds(10))
        receiver.run(2_700_000, for: .milliseconds(600))
        #expect(receiver.stream() == 2)
        receiver.run(2_700_000, for: .milliseconds(2_100))
        #expect(receiver.stream() == 3)
    }

    // MARK: - Stability

    @Test func `a sweep of the rate changes each slot no more often than it has steps`() {
        var generator = SeededGenerator(seed: 21)
        for _ in 0..<8 {
            let requests = (1...UInt32.random(in: 1...5, using: &generator)).map {
                LayerSources.request($0, LayerSources.random(using: &generator), isPlaying: true)
            }
            let steps = requests.map { request in
                var ladders = LayerLadders()
                ladders.append(request)
                return ladders[0].count
            }
            var receiver = Receiver(requests)
            receiver.allocate(0)
            let rising = Array(stride(from: 0, through: 5_000_000, by: 10_000))
            for rates in [rising, rising.reversed()] {
                receiver.changes = []
                for rate in rates {
                    receiver.now += .seconds(1)
                    receiver.allocate(rate)
                }
                #expect(zip(receiver.changes, steps).allSatisfy(<=))
            }
        }
    }

    @Test func `a rate that swings changes a slot once a swing`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(800_000, for: .seconds(10))
        receiver.changes = []
        for _ in 0..<6 {
            receiver.run(2_500_000, for: .seconds(10))
            receiver.run(800_000, for: .seconds(10))
        }
        #expect(receiver.changes == [12])
    }

    @Test func `noise in rates and costs between two steps changes nothing`() {
        var generator = SeededGenerator(seed: 22)
        var receiver = Receiver([Self.camera()])
        receiver.run(1_200_000, for: .seconds(20))
        receiver.changes = []
        for _ in 0..<600 {
            receiver.requests[0] = Self.camera(scaledBy: Int.random(in: 92...108, using: &generator))
            receiver.run(Int.random(in: 1_100_000...1_300_000, using: &generator), for: .milliseconds(500))
        }
        #expect(receiver.changes == [0])
    }

    // MARK: - Demand

    @Test func `at the rate of an upgrade more is allocated, and at the demand everything is`() {
        var generator = SeededGenerator(seed: 23)
        for _ in 0..<500 {
            let requests = (1...UInt32.random(in: 1...5, using: &generator)).map {
                let importance = SlotImportance.allCases.randomElement(using: &generator) ?? .other
                return LayerSources.request($0, LayerSources.random(using: &generator), importance)
            }
            var receiver = Receiver(requests)
            receiver.allocate(Int.random(in: 0...4_000_000, using: &generator))
            let first = receiver.allocation
            if let upgrade = first.upgrade {
                receiver.allocate(upgrade)
                #expect(receiver.allocation.allocated > first.allocated)
                #expect(receiver.allocation.allocated < upgrade)
            }
            receiver.allocate(first.demand)
            #expect(receiver.allocation.upgrade == nil)
        }
    }

    // MARK: - Without a limit

    @Test(
        arguments: [
            (LayerSources.camera, .richest, nil, 3, .max), (LayerSources.camera, .richest, 180, 1, .max),
            (LayerSources.camera, .richest, 361, 3, .max), (LayerSources.camera, .richest, 2_000, 3, .max),
            (LayerSources.camera, .level(0), 720, 1, .max), (LayerSources.scalable, .richest, 360, 1, 1),
            (LayerSources.scalable, .richest, 720, 1, .max), (LayerSources.scalable, .richest, nil, 1, .max),
        ] as [(LayerTable, LayerChoice, Int?, UInt64, UInt8)]
    )
    func `without a limit only the height is left out of what the cap names`(
        table: LayerTable,
        cap: LayerChoice,
        height: Int?,
        stream: UInt64,
        spatialID: UInt8
    ) {
        var allocator = LayerAllocator()
        let request = LayerSources.request(1, table, cap: cap, height: height)
        let allocation = allocator.allocate([request], rate: .unlimited, at: Self.start)
        let target = TargetLayer.layer(
            stream: StreamID(rawValue: stream),
            spatialID: spatialID,
            temporalID: .max
        )
        #expect(allocation.targets == [target])
    }
}
