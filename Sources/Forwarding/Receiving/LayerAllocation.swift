public import MediaTypes

/// What a receiver prefers of one source. Room decides it.
public struct LayerPreference: Hashable, Sendable {
    /// The highest simulcast layer that it may get, or ``LayerChoice/nothing``.
    public var cap: LayerChoice
    /// Sources of a higher priority get their layers first where the rate does not suffice for all. Any number.
    public var priority: Int

    /// Without arguments: the richest layer, with no priority over other sources.
    public init(cap: LayerChoice = .richest, priority: Int = 0) {
        self.cap = cap
        self.priority = priority
    }
}

/// What a slot is to be sent. It becomes current at a key frame of its stream; until then the slot keeps what it plays.
enum TargetLayer: Equatable, Sendable {
    case nothing
    /// The table names no stream yet: the track is a new mirror.
    case unknown
    /// A stream of the source with its layers up to these two; `UInt8.max` for all of them.
    case layer(stream: StreamID, spatialID: UInt8, temporalID: UInt8)
}

/// What one receiver can be sent. There is no congestion control yet: nothing limits the rate.
enum ReceiverRate: Equatable, Sendable {
    case unlimited
}

/// The allocation's input for one slot of a receiver.
struct LayerRequest: Sendable {
    let preference: LayerPreference
    /// What the slot's source has; `nil` without a source.
    let table: LayerTable?
}

/// Decides what the slots of one receiver are to be sent; nothing else decides it. The same input gives the same
/// result.
///
/// With a limit the slots share the rate, so all of a receiver's go in together. Without one the slots are independent,
/// and requests for those whose preference or table changed are enough.
/// - Returns: a target for each request, in their order.
func allocateLayers(_ requests: [LayerRequest], rate: ReceiverRate) -> [TargetLayer] {
    switch rate {
    case .unlimited:
        requests.map { request in
            guard let place = request.preference.cap.place, let table = request.table else { return .nothing }
            let stream = table.resolution[place]
            guard stream != 0 else { return .unknown }
            return .layer(stream: StreamID(rawValue: stream), spatialID: .max, temporalID: .max)
        }
    }
}
