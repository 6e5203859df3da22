package import Base
package import ChannelTypes
package import Logging
import Synchronization

/// Writes the log lines of refused clients, at most so many that no client fills the log.
///
/// What exceeds the rate of a network, or that of the node, is at level debug, and the next line says how many there were.
package final class RefusalLog: Sendable {
    /// Lines of one network. A developer who tries out a client sees each of its mistakes.
    private static let networkBurst = 30
    private static let networkPerSecond = 1.0
    /// Lines of all networks: at most about 200 MB a day.
    private static let all = TokenRate(10, burst: 200)

    private struct State {
        var networks = RateLimiter(burst: networkBurst, perSecond: networkPerSecond)
        var all = TokenBucket(RefusalLog.all)
        /// The lines at level debug since the last one that was not.
        var unlogged = 0
    }
    private let state = Mutex(State())
    private let logger: Logger
    private let now: @Sendable () -> Instant

    package init(_ logger: Logger, now: @escaping @Sendable () -> Instant) {
        self.logger = logger
        self.now = now
    }

    /// - Parameters:
    ///   - network: The client's. A shared one has the node's rate only.
    ///   - level: The level within the rates. Lines at level debug count for nothing.
    package func write(
        _ message: Logger.Message,
        of network: ClientNetwork,
        level: Logger.Level = .notice,
        _ metadata: Logger.Metadata
    ) {
        guard level > .debug else { return logger.log(level: level, message, metadata: metadata) }
        let now = now()
        let unlogged: Int? = state.withLock { state in
            let isWithin = network.isShared || state.networks.take(for: network, at: now) == nil
            guard isWithin, state.all.take(at: now) else {
                state.unlogged &+= 1
                return nil
            }
            defer { state.unlogged = 0 }
            return state.unlogged
        }
        guard let unlogged else { return logger.debug(message, metadata: metadata) }
        var metadata = metadata
        if unlogged > 0 { metadata["unlogged"] = "\(unlogged)" }
        logger.log(level: level, message, metadata: metadata)
    }
}
