package import MediaTypes
package import Wire

extension LayerChoice {
    /// Distinct ranks.
    static let levelsMax = 4
    /// Choices that name a stream: the richest, and each rank.
    static let placesMax = 1 + levelsMax

    /// The choice's place among those that name a stream; `nil` for ``nothing``.
    var place: Int? {
        switch self {
        case .richest: 0
        case .level(let level): 1 + min(max(level, 0), Self.levelsMax - 1)
        case .nothing: nil
        }
    }

    /// The choice as ``TransferMessage/Subscription/choices`` has it; 0 for ``nothing``.
    package var bits: UInt8 { place.map { LayerChoices(place: $0).rawValue } ?? 0 }

    /// The layers that the choice may name, for ``TransferMessage/Subscription/wanted``.
    package var layersUpTo: LayerSet {
        switch self {
        case .richest: .all
        case .level(let level): LayerSet(rawValue: UInt8(truncatingIfNeeded: (2 << min(max(level, 0), 7)) - 1))
        case .nothing: []
        }
    }
}

/// A set of layer choices, one bit for each that names a stream.
struct LayerChoices: OptionSet, BitwiseCopyable, Sendable {
    let rawValue: UInt8
    init(rawValue: UInt8) { self.rawValue = rawValue }
    /// - Parameter place: ``LayerChoice/place``.
    init(place: Int) { rawValue = 1 << UInt8(truncatingIfNeeded: place) }
    static let all = Self(rawValue: 1 << UInt8(LayerChoice.placesMax) - 1)
}

/// Which stream of a track each layer choice names, by ``LayerChoice/place``. 0 where none does.
struct LayerResolution: BitwiseCopyable, Equatable, Sendable {
    private var streams: [5 of UInt64] = .init(repeating: 0)
    /// The choices whose stream is the layer that they name, and not the nearest to it.
    var exact: LayerChoices = []

    subscript(place: Int) -> UInt64 {
        get { streams[place] }
        set { streams[place] = newValue }
    }

    static func == (left: Self, right: Self) -> Bool {
        left.exact == right.exact
            && (0..<LayerChoice.placesMax).allSatisfy { left.streams[$0] == right.streams[$0] }
    }

    /// The choices that name a stream.
    @inline(__always)
    func choices(of stream: UInt64) -> LayerChoices {
        var found: LayerChoices = []
        for place in 0..<LayerChoice.placesMax where streams[place] == stream {
            found.insert(LayerChoices(place: place))
        }
        return found
    }
}

/// Ranks a track's layers by their measured bit rates, on the publisher's loop, and resolves each choice to a stream.
struct LayerSelector: Sendable {
    typealias Layer = LayerTable.Encoding

    /// The number of the track's rids.
    private let ridCount: Int
    /// The rids are listed lowest layer first.
    private let ascends: Bool
    /// The streams, lowest first.
    private var ranking: ContiguousArray<UInt64> = []
    private(set) var resolution = LayerResolution()

    /// A layer ranks above another only with this much more bit rate, so that the choice is stable.
    private static let higherRatio = 1.3

    init(ridCount: Int, ascends: Bool) {
        self.ridCount = ridCount
        self.ascends = ascends
        resolution.exact.insert(LayerChoices(place: 0))
    }

    /// The stream of ``LayerChoice/richest``.
    var richest: UInt64 { resolution[0] }

    /// Resolves every choice to one stream: without layers the newest source plays.
    mutating func choose(only stream: UInt64) {
        for place in 0..<LayerChoice.placesMax { resolution[place] = stream }
        resolution.exact = .all
    }

    /// Ranks and resolves again.
    /// - Parameter layers: the track's streams, oldest first.
    mutating func update(_ layers: [Layer]) {
        // Without layers a stream takes over only from a silent one.
        guard ridCount > 0 else {
            guard !(layers.contains { $0.stream == richest && $0.isFlowing }) else { return }
            if let other = layers.last(where: \.isFlowing) ?? (richest == 0 ? layers.last : nil) {
                choose(only: other.stream)
            }
            return
        }
        rank(layers)
        let ranked = ranked(layers)
        chooseRichest(layers)
        for level in 0..<LayerChoice.levelsMax { chooseLevel(level, ranked) }
    }

    /// Forgets a stream that ended.
    mutating func remove(_ stream: UInt64) {
        ranking.removeAll { $0 == stream }
        for place in 0..<LayerChoice.placesMax where resolution[place] == stream { resolution[place] = 0 }
    }

    private mutating func rank(_ layers: [Layer]) {
        for layer in layers where !ranking.contains(layer.stream) {
            let above = ranking.firstIndex { known in
                layers.first { $0.stream == known }.map { $0.place > layer.place } ?? false
            }
            ranking.insert(layer.stream, at: above ?? ranking.endIndex)
        }
        guard !ascends else { return }
        func bitrate(_ index: Int) -> Int { layers.first { $0.stream == ranking[index] }?.bitrate ?? 0 }
        for _ in ranking.indices.dropFirst() {
            for index in ranking.indices.dropLast() where Self.ranksAbove(bitrate(index), bitrate(index + 1)) {
                ranking.swapAt(index, index + 1)
            }
        }
    }

    /// Whether a layer of one bit rate ranks above a layer of another, whatever their places.
    static func ranksAbove(_ left: Int, _ right: Int) -> Bool { Double(left) > Double(right) * higherRatio }

    /// The layers with their ranks. Of two streams of one layer, as after a restart of the source, the one that flows counts.
    private func ranked(_ layers: [Layer]) -> [(rank: Int, layer: Layer)] {
        var kept: [Layer] = []
        for stream in ranking {
            guard let layer = layers.first(where: { $0.stream == stream }) else { continue }
            if let index = kept.firstIndex(where: { $0.place == layer.place }) {
                if layer.isFlowing || !kept[index].isFlowing { kept[index] = layer }
            } else {
                kept.append(layer)
            }
        }
        return kept.enumerated().map { (ascends ? $0.element.place : $0.offset, $0.element) }
    }

    private mutating func chooseRichest(_ layers: [Layer]) {
        let flowing = layers.filter(\.isFlowing)
        let current = flowing.first { $0.stream == richest }
        guard let best = flowing.max(by: { $0.bitrate < $1.bitrate }) else {
            if richest == 0, let first = layers.first { resolution[0] = first.stream }
            return
        }
        if let current, Double(best.bitrate) <= Double(current.bitrate) * Self.higherRatio { return }
        resolution[0] = best.stream
    }

    private mutating func chooseLevel(_ level: Int, _ ranked: [(rank: Int, layer: Layer)]) {
        let wanted = min(level, ridCount - 1)
        let flowing = ranked.filter(\.layer.isFlowing)
        // While none flows the choice stays as it is.
        guard !flowing.isEmpty || resolution[1 + level] == 0 else { return }
        let candidates = flowing.isEmpty ? ranked : flowing
        guard
            let chosen = candidates.last(where: { $0.rank <= wanted }) ?? candidates.first(where: { $0.rank > wanted })
        else { return }
        resolution[1 + level] = chosen.layer.stream
        let choice = LayerChoices(place: 1 + level)
        if chosen.rank == wanted { resolution.exact.insert(choice) } else { resolution.exact.remove(choice) }
    }
}
