/// What a frame tells of the frames that it refers to.
struct FrameReferences {
    var isKey = false
    /// The temporal layer; `nil` where the format does not name it.
    var temporalID: UInt8?
    /// The running number of the last frame of the lowest temporal layer: TL0PICIDX of VP8 and VP9.
    var baseNumber: UInt8?
    /// Whether the frame refers to lower temporal layers only, so that its layer can be decoded from here on.
    var switchesUp = false
}

/// Keeps frames back whose references may be missing: a decoder would show garbage, or stop.
///
/// Where the format numbers the frames of the lowest temporal layer, a loss that hit upper layers alone keeps back those layers
/// alone. Elsewhere everything waits for a key frame.
struct ReferenceGate {
    /// Whether everything waits for a key frame.
    private(set) var needsKeyFrame = true
    private var baseNumber: UInt8?
    /// The lowest temporal layer that waits for a frame that switches up.
    private var brokenLayer: UInt8?
    private var isAfterLoss = false

    /// Packets or whole frames are missing in front of the next frame.
    mutating func lost() { isAfterLoss = true }

    /// Whether all references of the next frame were let through.
    mutating func accepts(_ frame: FrameReferences) -> Bool {
        if frame.isKey {
            self = ReferenceGate()
            needsKeyFrame = false
            baseNumber = frame.baseNumber
            return true
        }
        guard !needsKeyFrame else { return false }
        guard isIntact(frame) else {
            needsKeyFrame = true
            return false
        }
        let layer = frame.temporalID ?? 0
        guard layer > 0 else { return true }
        if let broken = brokenLayer, layer >= broken {
            guard frame.switchesUp else { return false }
            // Later frames of a layer above may refer to the broken one again.
            if layer == broken { brokenLayer = layer &+ 1 }
        }
        return true
    }

    /// Whether no frame of the lowest temporal layer is missing in front of a frame.
    private mutating func isIntact(_ frame: FrameReferences) -> Bool {
        defer { isAfterLoss = false }
        guard let layer = frame.temporalID, let number = frame.baseNumber, let base = baseNumber else {
            return !isAfterLoss
        }
        if isAfterLoss { brokenLayer = 1 }
        guard layer == 0 else { return number == base }
        baseNumber = number
        return number == base &+ 1
    }
}
