import Wire

/// As nodes hand it to each other. What another node sends is checked: no list is longer than an answer to an offer makes
/// it, and codecs are of the track's kind.
extension ReceiveTrackParameters: Codable {
    /// The most codecs, layers and SSRCs that are accepted.
    private static let codecsMax = 64
    private static let layersMax = 16
    private static let formatMax = 32

    private enum CodingKeys: String, CodingKey {
        case mid, kind, codecs, extensions, rids, layersAscend, canPauseLayers, ssrcs, rtxSSRCs
    }

    /// An RTX SSRC with its primary one.
    private struct Pair: Codable {
        var primary: UInt32
        var rtx: UInt32
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let kind = try container.decode(MediaKind.self, forKey: .kind)
        let codecs = try container.decodeBounded(CodecParameters.self, 1...Self.codecsMax, forKey: .codecs)
        guard
            codecs.allSatisfy({
                $0.name.kind == kind && $0.clockRate == $0.name.clockRate && $0.format.count <= Self.formatMax
            })
        else {
            throw DecodingError.dataCorruptedError(
                forKey: .codecs,
                in: container,
                debugDescription: "A codec is of another kind than its track, or its parameters are too many."
            )
        }
        let pairs = try container.decodeBounded(Pair.self, 0...Self.layersMax, forKey: .rtxSSRCs)
        self.init(
            mid: try container.decode(MID.self, forKey: .mid),
            kind: kind,
            codecs: codecs,
            extensions: HeaderExtensionMap(
                identifiers: try container.decodeBounded(UInt8.self, 0...HeaderExtensionMap.count, forKey: .extensions)
            ),
            rids: try container.decodeBounded(RID.self, 0...Self.layersMax, forKey: .rids),
            ssrcs: try container.decodeBounded(UInt32.self, 0...Self.layersMax, forKey: .ssrcs)
                .map(SSRC.init(rawValue:)),
            rtxSSRCs: Dictionary(
                pairs.map { (SSRC(rawValue: $0.primary), SSRC(rawValue: $0.rtx)) },
                uniquingKeysWith: { first, _ in first }
            )
        )
        layersAscend = try container.decode(Bool.self, forKey: .layersAscend)
        canPauseLayers = try container.decode(Bool.self, forKey: .canPauseLayers)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(mid, forKey: .mid)
        try container.encode(kind, forKey: .kind)
        try container.encode(codecs, forKey: .codecs)
        try container.encode(extensions.identifiers, forKey: .extensions)
        try container.encode(rids, forKey: .rids)
        try container.encode(layersAscend, forKey: .layersAscend)
        try container.encode(canPauseLayers, forKey: .canPauseLayers)
        try container.encode(ssrcs.map(\.rawValue), forKey: .ssrcs)
        let pairs = rtxSSRCs.map { Pair(primary: $0.key.rawValue, rtx: $0.value.rawValue) }
        try container.encode(pairs.sorted { $0.primary < $1.primary }, forKey: .rtxSSRCs)
    }
}
