import MediaTypes
import Wire

/// The layers of a slot, in words of its publisher.
extension SendSlot {
    /// What the receiver wants, as far as its network carries it.
    var wantedLayers: LayerDescription? {
        guard parameters.kind == .video, let source else { return nil }
        return describe(LayerRequest(preference: preference, table: source.table).unlimitedTarget)
    }

    /// What the receiver is to be sent.
    var allocatedLayers: LayerDescription? {
        guard parameters.kind == .video, let id = wantedStream else { return nil }
        return describe(.layer(stream: id, spatialID: targetLayers.spatialID, temporalID: targetLayers.temporalID))
    }

    /// What leaves at present.
    var sentLayers: LayerDescription? {
        guard parameters.kind == .video, let current = currentLayers else { return nil }
        return describe(
            .layer(stream: current.stream, spatialID: current.spatialID, temporalID: current.temporalID)
        )
    }

    private func describe(_ target: TargetLayer) -> LayerDescription? {
        guard case .layer(let id, let spatialID, let temporalID) = target, let source,
            let encoding = source.encodings.first(where: { $0.stream == id.rawValue })
        else { return nil }
        let spatial = min(Int(spatialID), encoding.layers.spatials.top)
        let temporal = min(Int(temporalID), encoding.layers.temporals(upToSpatial: spatial).top)
        let rate = encoding.layers.bitrate(upToSpatial: spatial, temporal: temporal)
        return LayerDescription(
            rid: source.stream(id)?.rid,
            spatialID: spatial,
            temporalID: temporal,
            height: encoding.layers.size(ofSpatial: spatial)?.height,
            bitsPerSecond: rate > 0 ? rate : encoding.bitrate
        )
    }
}
