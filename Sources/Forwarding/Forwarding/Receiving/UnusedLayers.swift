package import Base
package import Wire

/// Which simulcast layers of a track its publisher is to pause, because nobody has wanted them for a while.
///
/// A layer is wanted by everybody who may be sent it: that is everybody whose choice of layers and height allow for it,
/// whether their network carries it at present or not. A network that improves then finds the layer flowing, and what a layer
/// costs is measured while it flows. So a layer that is too much for everybody is not paused.
///
/// The lowest layer is never paused. A paused layer resumes as soon as somebody wants it. A publisher that does not pause what
/// it is asked to is asked for all of its layers again, and left alone.
package struct UnusedLayers: Sendable {
    /// The layers to pause, by their indices among the track's rids, lowest first.
    package private(set) var paused: LayerSet = []
    private let layerCount: Int
    /// When each layer was wanted last.
    private var wantedAt: [4 of Instant]
    /// When layers were last added to `paused`.
    private var pausedAt: Instant?
    /// The publisher goes on to send what it was asked to pause.
    private var isIgnored = false

    /// A layer that was wanted by nobody for this long is paused.
    package static let patience = Interval.seconds(5)
    /// Layers are paused at most this often: each change costs the publisher an offer and a key frame.
    package static let spacing = Interval.seconds(5)
    /// A publisher has this long to pause a layer, signaling included.
    package static let obedienceTime = Interval.seconds(10)
    /// Tracks of more layers have none paused.
    package static let layersMax = ReceivedTrack.streamsMax

    /// - Parameter layerCount: layers of the track, 2…``layersMax``.
    package init?(layerCount: Int, at now: Instant) {
        guard (2...Self.layersMax).contains(layerCount) else { return nil }
        self.layerCount = layerCount
        wantedAt = .init(repeating: now)
    }

    /// Takes note that layers are wanted now.
    /// - Returns: whether ``paused`` changed.
    package mutating func want(_ wanted: LayerSet, at now: Instant) -> Bool {
        for layer in 0..<layerCount where wanted.contains(LayerSet(layer: UInt8(layer))) { wantedAt[layer] = now }
        guard !paused.isDisjoint(with: wanted) else { return false }
        paused.subtract(wanted)
        return true
    }

    /// Decides again. To be called about once a second.
    /// - Parameters:
    ///   - wanted: all layers that somebody wants now.
    ///   - flowing: the layers that the publisher sends now.
    /// - Returns: whether ``paused`` changed.
    package mutating func update(wanted: LayerSet, flowing: LayerSet, at now: Instant) -> Bool {
        if want(wanted, at: now) { return true }
        guard !isIgnored else { return false }
        let age = pausedAt.map { now - $0 }
        if let age, age >= Self.obedienceTime, !paused.isDisjoint(with: flowing) {
            isIgnored = true
            paused = []
            return true
        }
        var unused: LayerSet = []
        for layer in 1..<layerCount where now - wantedAt[layer] >= Self.patience {
            unused.insert(LayerSet(layer: UInt8(layer)))
        }
        // What does not flow, because the publisher stopped it by itself, is no reason for an offer.
        guard !unused.subtracting(paused).isDisjoint(with: flowing), age.map({ $0 >= Self.spacing }) ?? true else {
            return false
        }
        paused = unused
        pausedAt = now
        return true
    }
}
