import MediaTypes

/// The flowing encodings of a table that a preference's cap allows, lowest first.
struct RankedEncodings: Sendable {
    private var indices: [4 of Int] = .init(repeating: 0)
    private(set) var count = 0

    /// An index into the table's encodings.
    subscript(rank: Int) -> Int { indices[rank] }

    init(_ table: LayerTable, cap: LayerChoice) {
        guard let place = cap.place else { return }
        for index in table.encodings.indices where table.encodings[index].isFlowing { insert(index, table) }
        if !orderByChoices(table), !orderBySizes(table) { orderByBitrates(table) }
        guard case .level(let level) = cap else { return }
        let named = table.resolution[place]
        let rank = (0..<count).first { table.encodings[indices[$0]].stream == named }
        count = min(count, (rank ?? min(max(level, 0), LayerChoice.levelsMax - 1)) + 1)
    }

    /// Inserts an encoding by its place. Of two streams of one place, as after a restart of the source, one counts: that which
    /// a choice names, or the newer one.
    private mutating func insert(_ index: Int, _ table: LayerTable) {
        let encoding = table.encodings[index]
        for rank in 0..<count where table.encodings[indices[rank]].place == encoding.place {
            if isNamed(encoding, table) || !isNamed(table.encodings[indices[rank]], table) { indices[rank] = index }
            return
        }
        guard count < ReceivedTrack.streamsMax else { return }
        var rank = count
        while rank > 0, table.encodings[indices[rank - 1]].place > encoding.place {
            indices[rank] = indices[rank - 1]
            rank -= 1
        }
        indices[rank] = index
        count += 1
    }

    private func isNamed(_ encoding: LayerTable.Encoding, _ table: LayerTable) -> Bool {
        !table.resolution.choices(of: encoding.stream).isEmpty
    }

    /// Sorts by the level that names each; `false` when some encoding is not named, as at a mirror.
    private mutating func orderByChoices(_ table: LayerTable) -> Bool {
        var levels: [4 of Int] = .init(repeating: 0)
        for rank in 0..<count {
            let stream = table.encodings[indices[rank]].stream
            let level = (0..<LayerChoice.levelsMax).first {
                table.resolution[1 + $0] == stream && table.resolution.exact.contains(LayerChoices(place: 1 + $0))
            }
            guard let level else { return false }
            levels[rank] = level
        }
        sort { levels[$0] }
        return true
    }

    /// Sorts by the pictures' heights; `false` when some are not known or alike.
    private mutating func orderBySizes(_ table: LayerTable) -> Bool {
        var heights: [4 of Int] = .init(repeating: 0)
        for rank in 0..<count {
            let layers = table.encodings[indices[rank]].layers
            for spatialID in 0..<EncodingLayers.spatialMax {
                heights[rank] = max(heights[rank], layers.size(ofSpatial: spatialID)?.height ?? 0)
            }
            for lower in 0..<rank where heights[lower] == heights[rank] { return false }
            guard heights[rank] > 0 else { return false }
        }
        sort { heights[$0] }
        return true
    }

    /// Sorts by ``LayerSelector``'s rule.
    private mutating func orderByBitrates(_ table: LayerTable) {
        for _ in 0..<count {
            for rank in 0..<max(0, count - 1)
            where LayerSelector.ranksAbove(
                table.encodings[indices[rank]].bitrate,
                table.encodings[indices[rank + 1]].bitrate
            ) {
                swap(rank, rank + 1)
            }
        }
    }

    /// - Parameter key: of a rank before the sort.
    private mutating func sort(by key: (Int) -> Int) {
        var keys: [4 of Int] = .init(repeating: 0)
        for rank in 0..<count { keys[rank] = key(rank) }
        for end in 0..<count {
            var rank = end
            while rank > 0, keys[rank - 1] > keys[rank] {
                (keys[rank - 1], keys[rank]) = (keys[rank], keys[rank - 1])
                swap(rank - 1, rank)
                rank -= 1
            }
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        (indices[left], indices[right]) = (indices[right], indices[left])
    }
}
