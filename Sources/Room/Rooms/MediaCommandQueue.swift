import MediaTypes
import Wire

/// A channel's commands that wait for one media plane. Each slot waits once, for the last source that it is to play.
struct MediaCommandQueue {
    enum Command {
        case connect(TrackID)
        case remove(PeerID)
    }
    /// What a slot is to play.
    struct Target {
        var source: PlacedTrack?
        var layer: LayerChoice
    }
    private var commands: [Command] = []
    private var targets: [TrackID: Target] = [:]

    var isEmpty: Bool { commands.isEmpty && targets.isEmpty }
    var hasCommands: Bool { !commands.isEmpty }

    mutating func add(_ command: Command) { commands.append(command) }

    /// Returns whether the slot was not waiting; then a command has to be added for it.
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
