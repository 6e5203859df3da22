import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct UnusedLayersTests {
    private static let start = Instant(nanoseconds: 1_000_000_000_000)

    private static func set(_ layers: some Sequence<Int>) -> LayerSet {
        var set: LayerSet = []
        for layer in layers { set.insert(LayerSet(layer: UInt8(layer))) }
        return set
    }

    /// A publisher and its receivers in virtual time, a review each second.
    private struct Publisher {
        var unused: UnusedLayers
        var now = UnusedLayersTests.start
        var wanted: LayerSet = []
        var obeys = true
        let all: LayerSet
        /// The seconds in which `paused` changed.
        var changes: [Int] = []

        init?(layers: Int) {
            guard let unused = UnusedLayers(layerCount: layers, at: now) else { return nil }
            self.unused = unused
            all = UnusedLayersTests.set(0..<layers)
        }

        var second: Int { Int((now - UnusedLayersTests.start).nanoseconds / 1_000_000_000) }

        mutating func want(_ layers: some Sequence<Int>) {
            wanted = UnusedLayersTests.set(layers)
            if unused.want(wanted, at: now) { changes.append(second) }
        }

        mutating func run(seconds: Int) {
            for _ in 0..<seconds {
                now += .seconds(1)
                let flowing = obeys ? all.subtracting(unused.paused) : all
                if unused.update(wanted: wanted, flowing: flowing, at: now) { changes.append(second) }
            }
        }
    }

    @Test func `layers that nobody wants for five seconds are paused, but the lowest`() throws {
        var publisher = try #require(Publisher(layers: 3))
        publisher.run(seconds: 4)
        #expect(publisher.unused.paused == [])
        publisher.run(seconds: 1)
        #expect(publisher.unused.paused == Self.set(1...2))
        publisher.run(seconds: 100)
        #expect(publisher.changes == [5])
    }

    @Test func `a wanted layer resumes at once, and is paused five seconds after the last want`() throws {
        var publisher = try #require(Publisher(layers: 3))
        publisher.run(seconds: 5)
        publisher.want(0...1)
        #expect(publisher.unused.paused == Self.set([2]))
        publisher.want(0...2)
        #expect(publisher.unused.paused == [])
        publisher.run(seconds: 10)
        publisher.want(0...0)
        publisher.run(seconds: 4)
        #expect(publisher.unused.paused == [])
        publisher.run(seconds: 1)
        #expect(publisher.unused.paused == Self.set(1...2))
    }

    @Test func `a publisher that does not pause is left alone`() throws {
        var publisher = try #require(Publisher(layers: 3))
        publisher.obeys = false
        publisher.run(seconds: 15)
        #expect(publisher.unused.paused == [] && publisher.changes == [5, 15])
        publisher.run(seconds: 100)
        #expect(publisher.changes.count == 2)
    }

    @Test func `what does not flow causes no pause, and is paused with what does`() throws {
        var unused = try #require(UnusedLayers(layerCount: 3, at: Self.start))
        let later = Self.start + .seconds(60)
        _ = unused.update(wanted: [], flowing: Self.set([0]), at: later)
        #expect(unused.paused == [])
        _ = unused.update(wanted: [], flowing: Self.set([0, 1]), at: later)
        #expect(unused.paused == Self.set(1...2))
    }

    @Test(arguments: [0, 1, 5, 8])
    func `tracks of other numbers of layers have none paused`(layers: Int) {
        #expect(UnusedLayers(layerCount: layers, at: Self.start) == nil)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `whatever is wanted when, nobody misses a layer and none is sent for nobody`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let count = Int.random(in: 2...4, using: &generator)
        var publisher = try #require(Publisher(layers: count))
        var wantedAt = Array(repeating: publisher.now, count: count)
        var pausedAt: Instant?
        for _ in 0..<300 {
            let before = publisher.unused.paused
            if Int.random(in: 0..<6, using: &generator) == 0 {
                publisher.want(0..<Int.random(in: 0...count, using: &generator))
            }
            #expect(publisher.unused.paused.isDisjoint(with: publisher.wanted), "at once")
            publisher.run(seconds: 1)
            let paused = publisher.unused.paused
            #expect(!paused.contains(LayerSet(layer: 0)))
            #expect(paused.isDisjoint(with: publisher.wanted))
            for layer in 1..<count {
                let set = LayerSet(layer: UInt8(layer))
                if publisher.wanted.contains(set) { wantedAt[layer] = publisher.now }
                let age = publisher.now - wantedAt[layer]
                if paused.contains(set) { #expect(age >= UnusedLayers.patience) }
                if age >= UnusedLayers.patience + UnusedLayers.spacing { #expect(paused.contains(set)) }
            }
            guard !paused.subtracting(before).isEmpty else { continue }
            if let pausedAt { #expect(publisher.now - pausedAt >= UnusedLayers.spacing) }
            pausedAt = publisher.now
        }
    }
}
