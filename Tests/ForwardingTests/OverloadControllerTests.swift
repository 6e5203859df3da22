import Base
import Testing

@testable import Forwarding

@Suite struct OverloadControllerTests {
    typealias Load = OverloadController.StreamLoad

    private static let interval = Interval.milliseconds(100)

    /// - Parameter busy: parts of 100.
    private func sample(drops: UInt64 = 0, busy: Int64 = 50, delay: Interval = .milliseconds(2)) -> LoopSample {
        LoopSample(
            elapsed: Self.interval,
            busy: Interval(nanoseconds: Self.interval.nanoseconds * busy / 100),
            receiveDrops: drops,
            delayMax: delay
        )
    }

    private func load(_ stream: UInt64, share: UInt64, _ packets: UInt64, isVideo: Bool = true) -> Load {
        Load(stream: StreamID(rawValue: stream), share: share, packets: packets, isSheddable: isVideo)
    }

    /// Observes samples and leaves out of `loads` what is asked for.
    @discardableResult
    private func run(
        _ controller: inout OverloadController,
        _ samples: [LoopSample],
        packets: UInt64 = 1_000,
        received: UInt64 = 1_000,
        _ loads: [Load] = []
    ) -> [[UInt64]] {
        var steps: [[UInt64]] = []
        for sample in samples where controller.observe(sample, packets: packets) == .shed {
            let held = controller.held
            let left = loads.filter { !held.contains($0.stream) }
            steps.append(controller.shed(left, received: received, foreign: 0).map(\.rawValue))
        }
        return steps
    }

    private func calm(seconds: Int, busy: Int64 = 50) -> [LoopSample] {
        Array(repeating: sample(busy: busy), count: seconds * 10)
    }

    private func dropping(_ count: Int) -> [LoopSample] {
        Array(repeating: sample(drops: 5, busy: 100), count: count)
    }

    // MARK: - When

    @Test(arguments: [0, 1, 2])
    func `a few bad intervals leave nothing out`(count: Int) {
        var controller = OverloadController()
        for _ in 0..<20 { #expect(run(&controller, dropping(count) + calm(seconds: 1)).isEmpty) }
        #expect(!controller.isOverloaded)
    }

    @Test func `an overload that goes on, or comes in every other interval, is one`() {
        var controller = OverloadController()
        #expect(run(&controller, dropping(3), [load(1, share: 1, 100)]) == [[1]])
        #expect(controller.isOverloaded)
        var other = OverloadController()
        let alternating = (0..<10).flatMap { _ in [sample(drops: 1), sample()] }
        #expect(run(&other, alternating, [load(1, share: 1, 100)]).first == [1])
    }

    @Test(
        arguments: [
            (100, 300, true), (100, 150, false), (60, 300, false), (100, 2, false),
        ] as [(Int64, Int, Bool)]
    )
    func `a loop is late when it is busy and packets take long through it`(busy: Int64, delay: Int, isLate: Bool) {
        var controller = OverloadController()
        let late = sample(busy: busy, delay: .milliseconds(delay))
        run(&controller, Array(repeating: late, count: 20), [load(1, share: 1, 100)])
        #expect(controller.isOverloaded == isLate)
    }

    // MARK: - What

    @Test func `the heaviest video of the heaviest share goes first, and audio never`() {
        var controller = OverloadController()
        let loads = [
            load(1, share: 1, 40), load(2, share: 1, 30, isVideo: false),
            load(3, share: 2, 500), load(4, share: 2, 2_000), load(5, share: 2, 100),
            load(6, share: 2, 80, isVideo: false),
        ]
        let steps = run(&controller, dropping(30), loads)
        #expect(steps.prefix(3) == [[4], [3], [5]])
        // The share's audio is all that is left of it; the other share is below its equal part.
        #expect(steps.dropFirst(3).allSatisfy { $0.isEmpty })
        #expect(controller.isOverloaded)
        #expect(controller.held.map(\.rawValue) == [4, 3, 5])
    }

    @Test func `a step takes as many streams as make a quarter of the work`() {
        var controller = OverloadController()
        let loads = (1...60).map { load($0, share: 9, 100) } + [load(100, share: 1, 90)]
        let steps = run(&controller, dropping(17), loads)
        #expect(steps.map(\.count) == [16, 12, 9])
        #expect(!controller.held.contains(StreamID(rawValue: 100)))
    }

    @Test func `a step is as much as the loop loses, where that is more`() {
        var controller = OverloadController()
        let loads = (1...60).map { load($0, share: 9, 100) }
        // Ten of thirteen datagrams were dropped since the first bad sample.
        #expect(run(&controller, dropping(3), received: 3, loads).map(\.count) == [47])
    }

    @Test func `shares of equal work lose equally, in no order but that of their work`() {
        var controller = OverloadController()
        let loads = (1...8).map { load($0, share: $0 % 2, 100) }
        let steps = run(&controller, dropping(3), loads)
        #expect(steps.count == 1)
        #expect(Set(steps[0].map { $0 % 2 }) == [0, 1])
    }

    @Test func `a flood of what is no media is no share's fault`() {
        var controller = OverloadController()
        run(&controller, dropping(2))
        #expect(controller.shed([load(1, share: 1, 500), load(2, share: 2, 10)], received: 600, foreign: 501).isEmpty)
        #expect(
            controller.shed([load(1, share: 1, 500), load(2, share: 2, 10)], received: 600, foreign: 499).count == 1
        )
    }

    @Test func `a loop without media has nothing to leave out`() {
        var controller = OverloadController()
        #expect(run(&controller, dropping(10)).allSatisfy { $0.isEmpty })
        #expect(!controller.holdsAny)
    }

    // MARK: - Back

    @Test func `steps are taken back one by one, the newest first, and the overload ends`() {
        var controller = OverloadController()
        run(&controller, dropping(10), [load(1, share: 1, 100), load(2, share: 1, 100), load(3, share: 1, 100)])
        #expect(controller.held.count == 2)
        run(&controller, calm(seconds: 3, busy: 10), packets: 10_000)
        #expect(controller.held.count == 1)
        run(&controller, calm(seconds: 3, busy: 10), packets: 10_000)
        #expect(controller.held.isEmpty)
        #expect(controller.isOverloaded)
        run(&controller, calm(seconds: 3, busy: 10), packets: 10_000)
        #expect(!controller.isOverloaded)
    }

    @Test func `nothing is taken back that there is no room for, until it is tried after a minute`() {
        var controller = OverloadController()
        // 1000 packets in 200 ms, while all others together are 100 in an interval at half of the time.
        run(&controller, dropping(3), [load(1, share: 1, 1_000)])
        run(&controller, calm(seconds: 59), packets: 100)
        #expect(controller.holdsAny)
        run(&controller, calm(seconds: 4), packets: 100)
        #expect(!controller.holdsAny)
    }

    @Test func `a step that was taken back too early is put back at once, and waits twice as long each time`() {
        var controller = OverloadController()
        run(&controller, dropping(3), [load(1, share: 1, 100)])
        for wait in [3, 6, 12, 24, 48, 48] {
            run(&controller, calm(seconds: wait - 1, busy: 10), packets: 10_000)
            #expect(controller.holdsAny, "\(wait)")
            run(&controller, calm(seconds: 1, busy: 10), packets: 10_000)
            #expect(!controller.holdsAny, "\(wait)")
            run(&controller, dropping(1))
            #expect(controller.holdsAny, "\(wait)")
        }
        // Once it holds, the next time is like the first.
        run(&controller, calm(seconds: 52, busy: 10), packets: 10_000)
        #expect(!controller.isOverloaded || !controller.holdsAny)
        run(&controller, dropping(3), [load(1, share: 1, 100)])
        run(&controller, calm(seconds: 3, busy: 10), packets: 10_000)
        #expect(!controller.holdsAny)
    }

    @Test func `streams that have ended are forgotten`() {
        var controller = OverloadController()
        run(&controller, dropping(10), [load(1, share: 1, 100), load(2, share: 1, 100), load(3, share: 1, 100)])
        controller.forget { $0.rawValue != 2 }
        #expect(controller.held.count <= 1)
        controller.forget { _ in true }
        #expect(!controller.holdsAny)
    }
}
