import MediaTypes
import Wire

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
