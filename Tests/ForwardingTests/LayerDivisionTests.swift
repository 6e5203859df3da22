import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct LayerDivisionTests {
    /// Of five slots each in the mean: 10,000 ladders.
    private static let cases = 2_000

    /// The result of one division.
    private struct Division {
        let ladders: LayerLadders
        var funded: [Int] = []

        init(_ requests: [LayerRequest], _ budget: Int) {
            var ladders = LayerLadders()
            for request in requests { ladders.append(request) }
            self.ladders = ladders
            LayerDivision(ladders).divide(budget, over: requests.count, into: &funded)
        }

        var cost: Int { funded.indices.reduce(0) { $0 + ladders.cost(funded[$1], of: $1) } }

        func cost(of slot: Int) -> Int { ladders.cost(funded[slot], of: slot) }
        func utility(of slot: Int) -> Double { funded[slot] > 0 ? Array(ladders[slot])[funded[slot] - 1].utility : 0 }
        func isFull(_ slot: Int) -> Bool { funded[slot] == ladders[slot].count }

        /// The height of a slot's picture; 0 for none.
        func height(of slot: Int) -> Int {
            guard funded[slot] > 0 else { return 0 }
            let pixels = Array(ladders[slot])[funded[slot] - 1].pixels
            return [180, 270, 360, 540, 720, 1_080].last { $0 * $0 * 16 / 9 <= pixels } ?? 0
        }
    }

    /// Slots of any importance, or of one.
    private static func requests(
        using generator: inout SeededGenerator,
        importance: SlotImportance? = nil,
        count: ClosedRange<Int> = 1...9
    ) -> [LayerRequest] {
        (0..<Int.random(in: count, using: &generator)).map { index in
            LayerSources.request(
                UInt32(1 + index),
                LayerSources.random(using: &generator, first: UInt64(1 + 10 * index)),
                importance ?? SlotImportance.allCases.randomElement(using: &generator) ?? .other,
                cap: [.richest, .level(0), .level(1), .level(2)].randomElement(using: &generator) ?? .richest,
                height: Bool.random(using: &generator) ? Int.random(in: 90...1_080, using: &generator) : nil
            )
        }
    }

    private static func budget(using generator: inout SeededGenerator) -> Int {
        1_000 * Int.random(in: 0...Int.random(in: 1...12_000, using: &generator), using: &generator)
    }

    // MARK: - Ladders

    @Test func `each step of a ladder costs more and is worth more, and its slope falls`() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<Self.cases {
            let division = Division(Self.requests(using: &generator, count: 1...1), 0)
            let steps = Array(division.ladders[0])
            for (lower, upper) in zip(steps, steps.dropFirst()) {
                #expect(lower.cost < upper.cost && lower.utility < upper.utility)
                #expect(lower == steps[0] || lower.slope >= upper.slope)
                #expect(lower.order >> 4 <= upper.order >> 4)
            }
            #expect(steps.isEmpty || (1...steps.count).contains(division.ladders.ladders[0].minimum))
        }
    }

    private func steps(_ request: LayerRequest) -> [String] {
        Division([request], 0).ladders[0].map { step in
            func name(_ layer: UInt8) -> String { layer == .max ? "all" : String(layer) }
            return "\(step.stream)/\(name(step.spatialID))/\(name(step.temporalID)) \(step.cost / 1_000)"
        }
    }

    @Test func `a camera climbs by its temporal layers and leaves out what is worse and dearer`() {
        let request = LayerSources.request(1, LayerSources.camera)
        #expect(
            steps(request) == [
                "1/all/0 63", "1/all/1 95", "1/all/all 159", "2/all/1 318", "2/all/all 530", "3/all/1 1378",
                "3/all/all 2120",
            ]
        )
    }

    @Test func `a scalable stream climbs by spatial and temporal layers`() {
        #expect(
            steps(LayerSources.request(1, LayerSources.scalable)) == [
                "1/0/0 42", "1/0/1 106", "1/0/all 190", "1/1/1 530", "1/1/all 954", "1/all/1 2226", "1/all/all 4006",
            ]
        )
    }

    @Test func `cap and height end a ladder`() {
        let camera = LayerSources.camera
        #expect(
            steps(LayerSources.request(1, camera, cap: .level(0))) == ["1/all/0 63", "1/all/1 95", "1/all/all 159"]
        )
        #expect(steps(LayerSources.request(1, camera, cap: .level(1))).last == "2/all/all 530")
        #expect(steps(LayerSources.request(1, camera, cap: .nothing)).isEmpty)
        #expect(steps(LayerSources.request(1, nil)).isEmpty)
        for (height, last) in [(0, 1), (180, 1), (181, 2), (360, 2), (500, 3), (720, 3), (2_000, 3)] {
            let steps = Array(Division([LayerSources.request(1, camera, height: height)], 0).ladders[0])
            #expect(steps.last?.stream == UInt64(last), "\(height)")
        }
        // A mirror whose choices nobody made, and sizes that are not known.
        var mirror = camera
        mirror.resolution = LayerResolution()
        #expect(steps(LayerSources.request(1, mirror, cap: .level(1))).last == "2/all/all 530")
        for index in mirror.encodings.indices {
            mirror.encodings[index].layers.setSize(ofSpatial: 0, width: 0, height: 0)
        }
        #expect(steps(LayerSources.request(1, mirror, height: 180)).last == "3/all/all 2120")
    }

    @Test func `encodings that do not flow are no steps`() {
        var table = LayerSources.camera
        table.encodings[1].isFlowing = false
        #expect(!steps(LayerSources.request(1, table)).contains { $0.hasPrefix("2/") })
        for index in table.encodings.indices { table.encodings[index].isFlowing = false }
        #expect(steps(LayerSources.request(1, table)).isEmpty)
    }

    // MARK: - Properties

    @Test func `the steps cost no more than the budget, except for the first`() {
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<Self.cases {
            let requests = Self.requests(using: &generator)
            let budget = Self.budget(using: &generator)
            let division = Division(requests, budget)
            let slots = requests.indices.filter { !division.ladders[$0].isEmpty }
            let isFirstOnly = division.funded.reduce(0, +) == 1
            #expect(division.cost <= budget || isFirstOnly)
            guard let top = slots.map({ requests[$0].preference.importance }).max() else { continue }
            #expect(slots.contains { requests[$0].preference.importance == top && division.funded[$0] > 0 })
        }
    }

    @Test func `of one importance nobody gets less when the budget rises`() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<Self.cases {
            let importance = SlotImportance.allCases.randomElement(using: &generator) ?? .other
            let requests = Self.requests(using: &generator, importance: importance)
            let budget = Self.budget(using: &generator)
            let poorer = Division(requests, budget)
            let richer = Division(requests, budget + Self.budget(using: &generator))
            #expect(zip(poorer.funded, richer.funded).allSatisfy(<=))
        }
    }

    @Test func `when the budget rises a slot gets less only for one of another importance`() {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<Self.cases {
            let requests = Self.requests(using: &generator)
            let budget = Self.budget(using: &generator)
            let poorer = Division(requests, budget)
            let richer = Division(requests, budget + Self.budget(using: &generator))
            guard zip(poorer.funded, richer.funded).contains(where: >) else { continue }
            #expect(zip(poorer.funded, richer.funded).contains(where: <))
            let lowered = requests.indices.filter { richer.funded[$0] < poorer.funded[$0] }
            let raised = requests.indices.filter { richer.funded[$0] > poorer.funded[$0] }
            let importances = Set(lowered.map { requests[$0].preference.importance })
            #expect(importances.isDisjoint(with: raised.map { requests[$0].preference.importance }))
        }
    }

    @Test func `a slot that becomes more important keeps what it had, unless others of its kind wait`() {
        var generator = SeededGenerator(seed: 5)
        var (raised, kept) = (0, 0)
        for _ in 0..<Self.cases {
            var requests = Self.requests(using: &generator)
            // A screen's frames are worth something else: it cannot be compared.
            for index in requests.indices where requests[index].preference.importance == .screen {
                requests[index].preference.importance = .speaker
            }
            let slot = Int.random(in: requests.indices, using: &generator)
            guard requests[slot].preference.importance != .stage else { continue }
            let budget = Self.budget(using: &generator)
            let before = Division(requests, budget)
            requests[slot].preference.importance =
                requests[slot].preference.importance == .other && Bool.random(using: &generator) ? .speaker : .stage
            let after = Division(requests, budget)
            let isAlone = requests.indices.allSatisfy { other in
                other == slot || before.isFull(other)
                    || requests[other].preference.importance != requests[slot].preference.importance
            }
            if after.funded[slot] > before.funded[slot] { raised += 1 }
            if isAlone { kept += 1 }
            #expect(after.funded[slot] >= (isAlone ? before.funded[slot] : min(1, before.funded[slot])))
        }
        #expect(raised > 100 && kept > 400)
    }

    @Test func `no slot gets nothing while another one of its importance is above its lowest step`() {
        var generator = SeededGenerator(seed: 6)
        for _ in 0..<Self.cases {
            let requests = Self.requests(using: &generator)
            let division = Division(requests, Self.budget(using: &generator))
            for slot in requests.indices where division.funded[slot] == 0 && !division.ladders[slot].isEmpty {
                for other in requests.indices
                where requests[other].preference.importance == requests[slot].preference.importance {
                    #expect(division.funded[other] <= 1)
                }
            }
        }
    }

    @Test func `equal slots differ by one step at most`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<Self.cases {
            var requests = Self.requests(using: &generator)
            let copies = Int.random(in: 1...4, using: &generator)
            for copy in 0..<copies {
                var twin = requests[0]
                twin.id = SSRC(rawValue: UInt32(100 + copy))
                requests.append(twin)
            }
            let division = Division(requests, Self.budget(using: &generator))
            let twins = [division.funded[0]] + division.funded.suffix(copies)
            #expect((twins.max() ?? 0) - (twins.min() ?? 0) <= 1)
        }
    }

    @Test func `the result does not depend on the order of the slots and repeats`() {
        var generator = SeededGenerator(seed: 8)
        for _ in 0..<Self.cases {
            let requests = Self.requests(using: &generator)
            let budget = Self.budget(using: &generator)
            let division = Division(requests, budget)
            #expect(Division(requests, budget).funded == division.funded)
            let order = requests.indices.shuffled(using: &generator)
            #expect(Division(order.map { requests[$0] }, budget).funded == order.map { division.funded[$0] })
        }
    }

    @Test func `a slot that vanishes frees its part at once`() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<Self.cases {
            let importance = SlotImportance.allCases.randomElement(using: &generator) ?? .other
            var requests = Self.requests(using: &generator, importance: importance, count: 2...9)
            let budget = Self.budget(using: &generator)
            let before = Division(requests, budget)
            let gone = Int.random(in: requests.indices, using: &generator)
            requests.remove(at: gone)
            var funded = before.funded
            funded.remove(at: gone)
            let after = Division(requests, budget)
            #expect(zip(funded, after.funded).allSatisfy(<=))
        }
    }

    @Test func `less than one step of each importance is left over`() {
        var generator = SeededGenerator(seed: 10)
        for _ in 0..<Self.cases {
            let requests = Self.requests(using: &generator)
            let budget = Self.budget(using: &generator)
            let division = Division(requests, budget)
            for importance in SlotImportance.allCases {
                let waiting = requests.indices.filter {
                    requests[$0].preference.importance == importance && !division.isFull($0)
                }
                let steps = waiting.map { slot in
                    division.ladders.cost(division.funded[slot] + 1, of: slot) - division.cost(of: slot)
                }
                #expect(steps.isEmpty || steps.contains { division.cost + $0 > budget })
            }
        }
    }

    // MARK: - Views

    /// The heights of all slots at some budgets in kbit/s.
    private func heights(_ requests: [LayerRequest], _ budgets: [Int]) -> [[Int]] {
        budgets.map { budget in
            let division = Division(requests, budget * 1_000)
            return requests.indices.map { division.height(of: $0) }
        }
    }

    @Test func `tiles grow together`() {
        let tiles = (1...4).map { LayerSources.request(UInt32($0), LayerSources.plainCamera) }
        #expect(
            heights(tiles, [0, 200, 400, 640, 1_000, 1_010, 2_119, 2_120, 3_700, 3_711, 8_479, 8_480]) == [
                [180, 0, 0, 0], [180, 0, 0, 0], [180, 180, 0, 0], [180, 180, 180, 180], [180, 180, 180, 180],
                [360, 180, 180, 180], [360, 360, 360, 180], [360, 360, 360, 360], [360, 360, 360, 360],
                [720, 360, 360, 360], [720, 720, 720, 360], [720, 720, 720, 720],
            ]
        )
    }

    @Test func `a stage has 360p before thumbnails grow, and thumbnails use what it cannot`() {
        let slots =
            [LayerSources.request(1, LayerSources.plainCamera, .stage)]
            + (2...4).map { LayerSources.request(UInt32($0), LayerSources.plainCamera) }
        #expect(
            heights(slots, [100, 400, 640, 1_006, 1_007, 1_378, 2_120, 2_597, 3_710, 5_300]) == [
                [180, 0, 0, 0], [180, 180, 0, 0], [180, 180, 180, 180], [180, 180, 180, 180], [360, 180, 180, 180],
                [360, 360, 180, 180], [360, 360, 360, 360], [720, 180, 180, 180], [720, 360, 360, 360],
                [720, 720, 360, 360],
            ]
        )
    }

    @Test func `a screen has its size before its frame rate, and both before thumbnails grow`() {
        let slots =
            [LayerSources.request(1, LayerSources.screen, .screen)]
            + (2...4).map { LayerSources.request(UInt32($0), LayerSources.camera, height: 360) }
        let frames = [200, 510, 950, 1_500, 2_400].map { budget in
            let division = Division(slots, budget * 1_000)
            return slots.indices.map { division.cost(of: $0) / 1_000 }
        }
        #expect(frames[0] == [159, 0, 0, 0])
        #expect(frames[1] == [318, 63, 63, 63])
        #expect(frames[2] == [742, 63, 63, 63])
        #expect(frames[3].first == 742)
        #expect(frames[4].first == 1_272)
    }
}
