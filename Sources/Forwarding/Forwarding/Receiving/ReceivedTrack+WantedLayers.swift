import Base
import MediaTypes
import Wire

/// The layers that somebody wants of a track, for ``UnusedLayers``.
extension ReceivedTrack {
    /// The layers that slots want, here and on loops that the track goes on to. It looks at slots until one wants all
    /// layers, so it is not for each packet.
    var wantedLayers: LayerSet {
        let all = layers(upTo: parameters.rids.count)
        var wanted: LayerSet = []
        for export in exports { wanted.formUnion(export.wanted) }
        for slot in slots {
            wanted.formUnion(wantedLayers(of: slot))
            if wanted.isSuperset(of: all) { break }
        }
        return wanted
    }

    /// The layers that a slot of the track may be sent by its preference, those that it is to be sent, and those that it plays.
    func wantedLayers(of slot: SendSlot) -> LayerSet {
        var wanted = layers(upTo: layerCount(within: slot.preference))
        for id in [slot.wantedStream, slot.playingBeforeSwitch] {
            if let id, let stream = stream(id) { wanted.insert(LayerSet(layer: stream.layer)) }
        }
        return wanted
    }

    /// The layers that the publisher sends now.
    var flowingLayers: LayerSet {
        var flowing: LayerSet = []
        for encoding in encodings where encoding.isFlowing {
            flowing.insert(LayerSet(layer: UInt8(clamping: encoding.place)))
        }
        return flowing
    }

    /// How many layers, from the lowest, a preference allows for.
    private func layerCount(within preference: LayerPreference) -> Int {
        let count = parameters.rids.count
        guard count > 0 else { return 0 }
        let cap =
            switch preference.cap {
            case .nothing: 0
            case .level(let level): min(max(level, 0), count - 1) + 1
            case .richest: count
            }
        guard let height = preference.height else { return cap }
        return min(cap, lowestPlace(ofHeight: height).map { $0 + 1 } ?? count)
    }

    /// The lowest layer that fills a height; `nil` when none is known to.
    private func lowestPlace(ofHeight height: Int) -> Int? {
        var lowest: Int?
        for encoding in encodings where lowest.map({ encoding.place < $0 }) ?? true {
            guard let size = encoding.layers.size(ofSpatial: encoding.layers.spatials.top), size.height >= height else {
                continue
            }
            lowest = encoding.place
        }
        return lowest
    }

    private func layers(upTo count: Int) -> LayerSet {
        var layers: LayerSet = []
        for layer in 0..<count { layers.insert(LayerSet(layer: UInt8(clamping: layer))) }
        return layers
    }
}

extension Forwarder {
    /// A slot of the track took another preference, or is new.
    func noteWanted(by slot: SendSlot, of track: ReceivedTrack, at now: Instant) {
        guard let unused = track.unusedLayers, !unused.paused.isEmpty else { return }
        noteWanted(track.wantedLayers(of: slot), of: track, at: now)
    }

    /// Layers of the track are wanted now.
    func noteWanted(_ layers: LayerSet, of track: ReceivedTrack, at now: Instant) {
        if track.unusedLayers?.want(layers, at: now) == true { emitUnusedLayers(of: track) }
    }

    /// Decides again which layers of a track are paused.
    func reviewUnusedLayers(of track: ReceivedTrack, at now: Instant) {
        guard track.unusedLayers != nil else { return }
        let (wanted, flowing) = (track.wantedLayers, track.flowingLayers)
        guard track.unusedLayers?.update(wanted: wanted, flowing: flowing, at: now) == true else { return }
        emitUnusedLayers(of: track)
    }

    private func emitUnusedLayers(of track: ReceivedTrack) {
        let paused = track.unusedLayers?.paused ?? []
        let rids = track.parameters.rids.enumerated().filter { index, _ in
            paused.contains(LayerSet(layer: UInt8(clamping: index)))
        }
        emit(.unusedLayers(mid: track.id.mid, rids: rids.map(\.element)), of: track.id.peer)
    }
}
