import Base
import MediaTypes
import TestSupport
import Testing

@testable import Forwarding

@Suite struct LayerTableTests {
    /// Two simulcast layers; the upper one with two spatial and three temporal layers and its size.
    private static let table: LayerTable = {
        var upper = EncodingLayers()
        for (spatialID, temporalID, rate) in [(0, 0, 100), (0, 1, 50), (0, 2, 70), (1, 0, 400), (1, 2, 300)]
            as [(UInt8, UInt8, Int)]
        {
            upper[EncodingLayers.index(spatialID: spatialID, temporalID: temporalID)] = rate
        }
        upper.setSize(ofSpatial: 1, width: 1280, height: 720)
        var resolution = LayerResolution()
        for (place, stream) in [12, 11, 12, 12, 12].enumerated() { resolution[place] = UInt64(stream) }
        return LayerTable(
            encodings: [
                LayerTable.Encoding(stream: 11, place: 0, bitrate: 150_000, isFlowing: false),
                LayerTable.Encoding(stream: 12, place: 255, bitrate: 920_000, isFlowing: true, layers: upper),
            ],
            resolution: resolution
        )
    }()

    @Test func `a layer's bit rate counts the lower ones that it needs`() {
        let layers = Self.table.encodings[1].layers
        #expect(layers.bitrate(upToSpatial: 0, temporal: 0) == 100)
        #expect(layers.bitrate(upToSpatial: 0, temporal: 2) == 220)
        #expect(layers.bitrate(upToSpatial: 1, temporal: 0) == 500)
        #expect(layers.bitrate(upToSpatial: 9, temporal: 9) == 920)
        #expect(layers.bitrate(upToSpatial: -1, temporal: -1) == 100)
        #expect(layers.size(ofSpatial: 1)?.width == 1280)
        #expect(layers.size(ofSpatial: 1)?.height == 720)
        #expect([-1, 0, 2, 4].allSatisfy { layers.size(ofSpatial: $0) == nil })
    }

    @Test func `layers beyond those told apart count as the highest`() {
        #expect(EncodingLayers.index(spatialID: 7, temporalID: 7) == EncodingLayers.index(spatialID: 3, temporalID: 3))
        var layers = EncodingLayers()
        layers.setSize(ofSpatial: 4, width: 1, height: 1)
        layers.setSize(ofSpatial: 0, width: 65_536, height: 1)
        #expect(layers == EncodingLayers())
    }

    @Test func `encodings read the same after a hand-over`() throws {
        var bytes: [UInt8] = []
        LayerTable.encode(Self.table.encodings, to: &bytes)
        var encodings: [LayerTable.Encoding] = []
        #expect(LayerTable.decode(unsafe bytes.span.bytes, into: &encodings) == false)
        #expect(encodings == Self.table.encodings)
        for count in 1..<bytes.count / 2 {
            let part = Array(bytes.prefix(count))
            #expect(LayerTable.decode(unsafe part.span.bytes, into: &encodings) == nil)
        }
        var screen: [UInt8] = []
        var measured = Self.table.encodings
        measured[1].keyFrameBytes = 70_000
        LayerTable.encode(measured, isScreen: true, to: &screen)
        var decoded: [LayerTable.Encoding] = []
        #expect(LayerTable.decode(unsafe screen.span.bytes, into: &decoded) == true)
        #expect(decoded == measured)
        let tooMany = Array([bytes, bytes, bytes].joined())
        #expect(LayerTable.decode(unsafe tooMany.span.bytes, into: &encodings) == nil)
        #expect(encodings == Self.table.encodings)
        let none: [UInt8] = []
        #expect(LayerTable.decode(unsafe none.span.bytes, into: &encodings) == false)
        #expect(encodings.isEmpty)
    }

    // MARK: - Allocation

    private func target(_ stream: UInt64) -> TargetLayer {
        .layer(stream: StreamID(rawValue: stream), spatialID: .max, temporalID: .max)
    }

    private func request(_ cap: LayerChoice, _ table: LayerTable?, importance: SlotImportance = .other) -> LayerRequest
    {
        LayerRequest(preference: LayerPreference(cap: cap, importance: importance), table: table)
    }

    @Test(
        arguments: [
            (.richest, 12), (.level(0), 11), (.level(1), 12), (.level(-3), 11), (.level(9), 12), (.nothing, nil),
        ] as [(LayerChoice, UInt64?)]
    )
    func `without a limit each slot is sent what its cap names`(cap: LayerChoice, stream: UInt64?) {
        let targets = [request(cap, Self.table).unlimitedTarget]
        #expect(targets == [stream.map(target) ?? .nothing])
        #expect(request(cap, nil).unlimitedTarget == .nothing)
        let unknown: TargetLayer = cap == .nothing ? .nothing : .unknown
        #expect(request(cap, LayerTable()).unlimitedTarget == unknown)
    }

    @Test func `without a limit slots do not depend on each other`() {
        var generator = SeededGenerator(seed: 31)
        let caps: [LayerChoice] = [.richest, .level(0), .level(1), .level(2), .nothing]
        for _ in 0..<1_000 {
            let requests = (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                request(
                    caps.randomElement(using: &generator) ?? .richest,
                    Bool.random(using: &generator) ? Self.table : LayerTable(),
                    importance: SlotImportance.allCases.randomElement(using: &generator) ?? .other
                )
            }
            let together = unlimited(requests)
            #expect(together == requests.flatMap { unlimited([$0]) })
            let reversed: [TargetLayer] = unlimited(requests.reversed())
            #expect(Array(reversed.reversed()) == together)
        }
    }

    private func unlimited(_ requests: [LayerRequest]) -> [TargetLayer] {
        var allocator = LayerAllocator()
        return allocator.allocate(requests, rate: .unlimited, at: .ms(0)).targets
    }
}
