import MediaTypes
import Wire

/// A channel's queued commands for one media plane. A slot is queued once, with its last target.
struct MediaCommandQueue {
    enum Command {
        case connect(TrackID)
        case limitSending(PeerID, bitsPerSecond: Int?)
        case remove(PeerID)
        case data(DataCommand)
    }
    /// The source that a slot is to play, and what its receiver prefers of it.
    struct Target {
        var source: PlacedTrack?
        var preference: LayerPreference
    }
    private var commands: [Command] = []
    private var targets: [TrackID: Target] = [:]

    var isEmpty: Bool { commands.isEmpty && targets.isEmpty }

    mutating func add(_ command: Command) { commands.append(command) }

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
