import Logging
import Web

extension SoraClose {
    /// The level of the close's line in the log.
    ///
    /// SDKs that try several URLs leave silent WebSockets behind, and what exceeds a rate may be very much.
    var logLevel: Logger.Level {
        if self == .connectWaitTimeout || self == .tooManyFromNetwork { return .debug }
        switch close.code {
        // A client leaves, moves or is removed, which the rooms log; the node stops.
        case 1000, 1001: return .debug
        default: return .notice
        }
    }
}
