import ChannelTypes

/// The executors that the actors of channels run on.
///
/// With control loops, each channel is pinned to one of them by its name. Without any, each channel has its own serial
/// executor on the global pool.
struct ControlExecutors: Sendable {
    private let loops: [any SerialExecutor]

    init(_ loops: [any SerialExecutor]) { self.loops = loops }

    /// An executor on the global pool.
    private actor PoolExecutor {}

    /// The executor of one channel, which keeps it alive.
    enum Executor: Sendable {
        case loop(any SerialExecutor)
        case pool(any Actor)

        var unowned: UnownedSerialExecutor {
            switch self {
            case .loop(let executor): unsafe executor.asUnownedSerialExecutor()
            case .pool(let actor): unsafe actor.unownedExecutor
            }
        }
    }

    /// The executor of a channel. It depends on the name and the number of loops only.
    func executor(for channel: ChannelName) -> Executor {
        guard !loops.isEmpty else { return .pool(PoolExecutor()) }
        return .loop(loops[Self.index(of: channel, count: loops.count)])
    }

    /// For each loop, the name of a channel that runs on it.
    var nameOnEachLoop: [ChannelName] {
        var names: [Int: ChannelName] = [:]
        var number = 0
        while names.count < loops.count {
            if let name = ChannelName("probe-\(number)") { names[Self.index(of: name, count: loops.count)] = name }
            number += 1
        }
        return loops.indices.compactMap { names[$0] }
    }

    /// The index of a channel's loop among `count`.
    static func index(of channel: ChannelName, count: Int) -> Int { Int(channel.stableHash % UInt64(count)) }
}
