import MediaTypes

/// A channel's queued commands for one media plane. A slot is queued once, with its last target.
struct MediaCommandQueue {
    enum Command {
        case connect(TrackID)
        case limitSending(PeerID, bitsPerSecond: Int?)
        /// Of all video of the peer.
        case requestKeyFrames(PeerID)
        case remove(PeerID)
        case data(DataCommand)
    }
    /// The source that a slot is to play, and what its receiver prefers of it.
    struct Target {
        var source: PlacedTrack?
        var preference: LayerPreference
    }
    /// A message of a participant to others of the plane.
    private struct Delivery {
        let message: DataMessage
        /// Those that it was not handed out for yet.
        var receivers: ArraySlice<DataAddress>
        /// Of memory.
        let bytes: Int
    }
    /// What deliveries may take of memory. Those of a second are a tenth of it, unless they are long ones for few.
    private static let deliveryBytesMax = 16 << 20
    private var commands: [Command] = []
    private var targets: [TrackID: Target] = [:]
    private var deliveries = Queue<Delivery>()
    private var deliveryBytes = 0

    var isEmpty: Bool { targets.isEmpty && !hasWork }
    /// Whether there is something to perform. A target may wait for an earlier one of its slot.
    var hasWork: Bool { !commands.isEmpty || !deliveries.isEmpty }

    mutating func add(_ command: Command) { commands.append(command) }

    /// - Returns: whether there was room. There is none while a plane is far behind.
    mutating func add(_ message: DataMessage, to receivers: [DataAddress]) -> Bool {
        guard !receivers.isEmpty else { return true }
        let bytes = message.bytes.count + receivers.count * MemoryLayout<DataAddress>.stride
        guard deliveries.isEmpty || deliveryBytes + bytes <= Self.deliveryBytesMax else { return false }
        deliveryBytes += bytes
        deliveries.append(Delivery(message: message, receivers: receivers[...], bytes: bytes))
        return true
    }

    /// Takes messages in their order, for at most `count` receivers. One for more of them is taken in parts.
    mutating func takeDeliveries(_ count: Int) -> [DataCommand] {
        var taken: [DataCommand] = []
        var left = count
        while left > 0, var first = deliveries.first {
            let part = first.receivers.prefix(left)
            taken.append(.send(first.message, to: Array(part)))
            left -= part.count
            first.receivers = first.receivers.dropFirst(part.count)
            if first.receivers.isEmpty {
                deliveryBytes -= first.bytes
                deliveries.removeFirst()
            } else {
                deliveries.replaceFirst(by: first)
            }
        }
        return taken
    }

    /// - Returns: whether the slot had no target; then a command must be added for it.
    mutating func setTarget(_ target: Target, for slot: TrackID) -> Bool {
        targets.updateValue(target, forKey: slot) == nil
    }

    func hasTarget(for slot: TrackID) -> Bool { targets[slot] != nil }
    mutating func takeTarget(for slot: TrackID) -> Target? { targets.removeValue(forKey: slot) }

    mutating func takeCommands() -> [Command] {
        defer { commands = [] }
        return commands
    }
}
