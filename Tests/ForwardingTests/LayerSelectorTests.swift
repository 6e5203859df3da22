import MediaTypes
import Testing

@testable import Forwarding

@Suite struct LayerSelectorTests {
    private typealias Layer = LayerSelector.Layer

    /// Layers of the streams 1, 2 and 3, with their bitrates in kbit/s; a negative one does not flow.
    private static func layers(_ bitrates: [Int]) -> [Layer] {
        bitrates.enumerated().map { index, bitrate in
            Layer(
                stream: UInt64(index + 1),
                place: index,
                bitrate: Int(bitrate.magnitude) * 1_000,
                isFlowing: bitrate >= 0
            )
        }
    }

    private static func answers(_ selector: LayerSelector) -> [UInt64] {
        (0..<LayerChoice.placesMax).map { selector.resolution[$0] }
    }

    private static func exact(_ selector: LayerSelector) -> [Int] {
        (0..<LayerChoice.placesMax).filter { selector.resolution.exact.contains(LayerChoices(place: $0)) }
    }

    @Test(
        arguments: [
            (.richest, 0), (.level(0), 1), (.level(2), 3), (.level(3), 4), (.level(4), 4), (.level(.max), 4),
            (.level(-1), 1), (.level(.min), 1), (.nothing, nil),
        ] as [(LayerChoice, Int?)]
    )
    func `a choice has a place, whatever its level`(choice: LayerChoice, place: Int?) {
        #expect(choice.place == place)
    }

    @Test(
        arguments: [
            ("all flow", [100, 300, 900], [3, 1, 2, 3, 3], [0, 1, 2, 3, 4]),
            ("the highest stopped", [100, 300, -900], [2, 1, 2, 2, 2], [0, 1, 2]),
            ("the middle one stopped", [100, -300, 900], [3, 1, 1, 3, 3], [0, 1, 3, 4]),
            ("the lowest stopped", [-100, 300, 900], [3, 2, 2, 3, 3], [0, 2, 3, 4]),
            ("only the lowest flows", [100, -300, -900], [1, 1, 1, 1, 1], [0, 1]),
            ("only the highest flows", [-100, -300, 900], [3, 3, 3, 3, 3], [0, 3, 4]),
        ] as [(String, [Int], [UInt64], [Int])]
    )
    func `each level is answered by itself or the nearest, lower ones first`(
        name: String,
        bitrates: [Int],
        expected: [UInt64],
        exact: [Int]
    ) {
        for ascends in [true, false] {
            var selector = LayerSelector(ridCount: 3, ascends: ascends)
            selector.update(Self.layers([100, 300, 900]))
            selector.update(Self.layers(bitrates))
            #expect(Self.answers(selector) == expected, "\(name), ascends: \(ascends)")
            #expect(Self.exact(selector) == exact, "\(name), ascends: \(ascends)")
        }
    }

    @Test func `rids in any order are ranked by their bitrates, unless they are known to ascend`() {
        var measured = LayerSelector(ridCount: 3, ascends: false)
        measured.update(Self.layers([900, 300, 100]))
        #expect(Self.answers(measured) == [1, 3, 2, 1, 1])
        var known = LayerSelector(ridCount: 3, ascends: true)
        known.update(Self.layers([900, 300, 100]))
        #expect(Self.answers(known) == [1, 1, 2, 3, 3])
    }

    @Test func `bitrates that are nearly equal change no rank and not the richest`() {
        var selector = LayerSelector(ridCount: 2, ascends: false)
        selector.update(Self.layers([100, 300]))
        for bitrates in [[120, 100], [100, 120], [129, 100]] {
            selector.update(Self.layers(bitrates))
            #expect(Self.answers(selector) == [2, 1, 2, 2, 2])
        }
        selector.update(Self.layers([140, 100]))
        #expect(Self.answers(selector) == [1, 2, 1, 1, 1])
    }

    @Test func `while no layer flows everything stays as it was`() {
        var selector = LayerSelector(ridCount: 3, ascends: true)
        selector.update(Self.layers([100, 300, 900]))
        let before = Self.answers(selector)
        selector.update(Self.layers([-100, -300, -900]))
        #expect(Self.answers(selector) == before)
        selector.update(Self.layers([100, -300, -900]))
        #expect(Self.answers(selector) == [1, 1, 1, 1, 1])
    }

    @Test func `layers that begin one after the other are answers at once`() {
        var selector = LayerSelector(ridCount: 3, ascends: true)
        let all = Self.layers([0, 0, 0])
        selector.update([all[1]])
        #expect(Self.answers(selector) == [2, 2, 2, 2, 2])
        selector.update([all[1], all[0]])
        #expect(Self.answers(selector) == [2, 1, 2, 2, 2])
        selector.update([all[1], all[0], all[2]])
        #expect(Self.answers(selector) == [2, 1, 2, 3, 3])
    }

    @Test func `of two streams of one layer the one that flows counts`() {
        var selector = LayerSelector(ridCount: 2, ascends: true)
        var layers = Self.layers([100, -300])
        layers.append(Layer(stream: 9, place: 1, bitrate: 0, isFlowing: true))
        selector.update(layers)
        #expect(Self.answers(selector) == [1, 1, 9, 9, 9])
        selector.remove(2)
        layers.remove(at: 1)
        selector.update(layers)
        #expect(Self.answers(selector) == [1, 1, 9, 9, 9])
    }

    @Test func `without layers the source begun last plays until it alone is silent`() {
        var selector = LayerSelector(ridCount: 0, ascends: false)
        selector.choose(only: 1)
        selector.choose(only: 2)
        var both = Self.layers([900, 100])
        both[0].place = 255
        both[1].place = 255
        selector.update(both)
        #expect(Self.answers(selector) == [2, 2, 2, 2, 2])
        both[1].isFlowing = false
        selector.update(both)
        #expect(Self.answers(selector) == [1, 1, 1, 1, 1])
        #expect(selector.resolution.exact == .all)
    }
}
