import Logging
import Synchronization

/// The least level that the node logs. A reload changes it for all loggers at once.
final class LogThreshold: Sendable {
    private let state: Mutex<Logger.Level>

    init(_ level: Logger.Level) { state = Mutex(level) }

    var level: Logger.Level {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
