import Base
package import MediaTypes
package import Wire

/// What a slot is to be sent. It becomes current at a key frame of its stream; until then the slot keeps what it plays.
enum TargetLayer: Equatable, Sendable {
    case nothing
    /// The table names no stream yet: the track is a new mirror.
    case unknown
    /// A stream of the source with its layers up to these two; `UInt8.max` for all of them.
    case layer(stream: StreamID, spatialID: UInt8, temporalID: UInt8)
}

/// What one receiver can be sent.
package enum ReceiverRate: Equatable, Sendable {
    case unlimited
    /// For all video of the receiver together.
    case limited(bitsPerSecond: Int)
}

/// The allocation's input for one slot of a receiver.
package struct LayerRequest: Sendable {
    /// The slot's SSRC: what the allocator knows a slot by from call to call.
    var id = SSRC(rawValue: 0)
    var preference: LayerPreference
    /// What the slot's source has; `nil` without a source.
    var table: LayerTable?
    /// Whether the receiver has a picture of the source.
    var isPlaying = false
    /// Whether the slot waits for a key frame of its target.
    var isAwaitingKeyFrame = false

    /// The source is a shared screen: its size comes before its frame rate.
    var isScreen: Bool { preference.importance == .screen || table?.isScreen == true }
    /// The preference's, and that of a screen at least for a screen.
    var importance: SlotImportance { isScreen ? max(preference.importance, .screen) : preference.importance }

    package init(
        id: SSRC = SSRC(rawValue: 0),
        preference: LayerPreference,
        table: LayerTable? = nil,
        isPlaying: Bool = false,
        isAwaitingKeyFrame: Bool = false
    ) {
        self.id = id
        self.preference = preference
        self.table = table
        self.isPlaying = isPlaying
        self.isAwaitingKeyFrame = isAwaitingKeyFrame
    }
}

/// What the slots of one receiver are to be sent.
package struct LayerAllocation: Equatable, Sendable {
    /// A target for each request, in their order.
    var targets: [TargetLayer] = []
    /// Bit/s that the targets take.
    package var allocated = 0
    /// The rate in bit/s at which everything that the slots want is allocated.
    var demand = 0
    /// The lowest rate in bit/s at which one more step is allocated, which a probe has to prove; `nil` when nothing more is
    /// wanted.
    var upgrade: Int?
    /// That step failed of late, so that the rate alone does not decide about it.
    var isUpgradeBarred = false
    /// Everything that the slots want is allocated.
    var isWhole = false
    /// Everything that the slots want is allocated, at costs that change slowly.
    var isSteady = false
    /// When the allocation may change though neither the requests nor the rate do.
    var retryAt: Instant?
}

extension LayerRequest {
    /// The layers that the preference names while the rate has no limit. Slots are independent of each other then.
    var unlimitedTarget: TargetLayer {
        guard let place = preference.cap.place, let table else { return .nothing }
        let stream = table.resolution[place]
        guard stream != 0 else { return .unknown }
        let named = TargetLayer.layer(stream: StreamID(rawValue: stream), spatialID: .max, temporalID: .max)
        guard let height = preference.height else { return named }
        return lowestTarget(ofHeight: height, upTo: stream, table) ?? named
    }

    /// The lowest layers that fill a height; `nil` when none below those of a stream are known to.
    private func lowestTarget(ofHeight height: Int, upTo named: UInt64, _ table: LayerTable) -> TargetLayer? {
        let ranked = RankedEncodings(table, cap: preference.cap)
        for rank in 0..<ranked.count {
            let encoding = table.encodings[ranked[rank]]
            let top = encoding.layers.spatials.top
            for spatialID in 0...top {
                guard let size = encoding.layers.size(ofSpatial: spatialID), size.height >= height else { continue }
                return .layer(
                    stream: StreamID(rawValue: encoding.stream),
                    spatialID: spatialID == top ? .max : UInt8(spatialID),
                    temporalID: .max
                )
            }
            guard encoding.stream != named else { return nil }
        }
        return nil
    }
}
