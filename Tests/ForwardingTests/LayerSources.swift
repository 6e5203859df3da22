import Base
import MediaTypes
import TestSupport
import Wire

@testable import Forwarding

/// Sources of video for tests of the allocation.
enum LayerSources {
    /// One encoding of a source: its height and the bit rates up to each of its temporal layers.
    struct Encoding {
        var height: Int?
        var rates: [Int]
        var isFlowing = true
    }

    /// A source with simulcast, lowest encoding first, as its publisher's loop measures it. Streams are numbered from `first`.
    static func table(_ encodings: [Encoding], first: UInt64 = 1) -> LayerTable {
        var table = LayerTable()
        for (place, encoding) in encodings.enumerated() {
            var layers = EncodingLayers()
            var below = 0
            for (temporalID, rate) in encoding.rates.enumerated() {
                layers[temporalID] = rate - below
                below = rate
            }
            if let height = encoding.height { layers.setSize(ofSpatial: 0, width: height * 16 / 9, height: height) }
            table.encodings.append(
                LayerTable.Encoding(
                    stream: first + UInt64(place),
                    place: place,
                    bitrate: below,
                    isFlowing: encoding.isFlowing,
                    layers: layers
                )
            )
        }
        var selector = LayerSelector(ridCount: encodings.count, ascends: true)
        selector.update(table.encodings)
        table.resolution = selector.resolution
        return table
    }

    /// 180p, 360p and 720p with three temporal layers each, as a browser sends them.
    static let camera = table([
        Encoding(height: 180, rates: [60_000, 90_000, 150_000]),
        Encoding(height: 360, rates: [200_000, 300_000, 500_000]),
        Encoding(height: 720, rates: [900_000, 1_300_000, 2_000_000]),
    ])

    /// The same sizes without temporal layers.
    static let plainCamera = table([
        Encoding(height: 180, rates: [150_000]),
        Encoding(height: 360, rates: [500_000]),
        Encoding(height: 720, rates: [2_000_000]),
    ])

    static let screen = table([
        Encoding(height: 540, rates: [150_000, 300_000, 500_000]),
        Encoding(height: 1_080, rates: [700_000, 1_200_000, 2_000_000]),
    ])

    /// One stream with spatial and temporal layers.
    static let scalable: LayerTable = {
        var table = Self.table([Encoding(rates: [0])])
        var layers = EncodingLayers()
        for spatialID in 0..<3 {
            for temporalID in 0..<3 {
                layers[EncodingLayers.index(spatialID: UInt8(spatialID), temporalID: UInt8(temporalID))] =
                    (40_000 + 20_000 * temporalID) << (2 * spatialID)
            }
            layers.setSize(ofSpatial: spatialID, width: 320 << spatialID, height: 180 << spatialID)
        }
        table.encodings[0].layers = layers
        table.encodings[0].bitrate = layers.bitrate(upToSpatial: 3, temporal: 3)
        return table
    }()

    /// A source of one to four encodings with any rates and sizes, or with spatial layers.
    static func random(using generator: inout SeededGenerator, first: UInt64 = 1) -> LayerTable {
        var rate = Int.random(in: 20_000...300_000, using: &generator)
        let knowsSizes = Bool.random(using: &generator)
        var height = [90, 120, 180, 270, 360].randomElement(using: &generator) ?? 180
        let encodings = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
            var encoding = Encoding(height: knowsSizes ? height : nil, rates: [])
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                encoding.rates.append(rate)
                rate = rate * Int.random(in: 105...190, using: &generator) / 100
            }
            rate = rate * Int.random(in: 60...250, using: &generator) / 100
            height = height * 2
            encoding.isFlowing = Int.random(in: 0..<10, using: &generator) > 0
            return encoding
        }
        var table = Self.table(encodings, first: first)
        // A mirror resolves only choices that somebody makes.
        if Bool.random(using: &generator) { table.resolution = LayerResolution() }
        guard encodings.count == 1, Bool.random(using: &generator) else { return table }
        for index in 0..<16 where Bool.random(using: &generator) {
            table.encodings[0].layers[index] = Int.random(in: 0...400_000, using: &generator)
        }
        return table
    }

    static func request(
        _ id: UInt32,
        _ table: LayerTable?,
        _ importance: SlotImportance = .other,
        cap: LayerChoice = .richest,
        height: Int? = nil,
        isPlaying: Bool = false,
        isAwaitingKeyFrame: Bool = false
    ) -> LayerRequest {
        LayerRequest(
            id: SSRC(rawValue: id),
            preference: LayerPreference(cap: cap, importance: importance, height: height),
            table: table,
            isPlaying: isPlaying,
            isAwaitingKeyFrame: isAwaitingKeyFrame
        )
    }
}
