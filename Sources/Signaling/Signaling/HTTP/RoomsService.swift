import Access
import Base
import ChannelTypes
package import Logging
import MediaTypes
package import Room
import ServiceLifecycle
import Wire

/// Removes every participant at a graceful shutdown.
///
/// Services shut down in reverse order of their list: put it before ``PublicServer``.
package struct RoomsService: Service {
    private let directory: ChannelDirectory
    package init(_ directory: ChannelDirectory) { self.directory = directory }

    package func run() async throws {
        // It throws when the task is cancelled.
        try? await gracefulShutdown()
        await directory.shutdown()
    }
}

/// Makes the notice handler of ``ChannelDirectory`` that logs all notices.
package func logNotices(to logger: Logger) -> @Sendable (ChannelDirectory.Event) -> Void {
    let log = NoticeLog(logger: logger)
    return { log.log($0) }
}

private struct NoticeLog: Sendable {
    let logger: Logger

    func log(_ notice: ChannelDirectory.Event) {
        switch notice {
        case .joined(let attendance):
            let client = attendance.agent.name.printable
            logger.info("participant joined", metadata: metadata(attendance, ["client": "\(client)"]))
        case .connected(let attendance):
            let milliseconds = Int(attendance.duration.seconds * 1_000)
            logger.info("peer connected", metadata: metadata(attendance, ["milliseconds": "\(milliseconds)"]))
        case .ended(let participant, let reason, let attendance):
            let details: Logger.Metadata = ["reason": "\(reason.message.printable)"]
            guard let attendance else {
                let metadata = details.merging(["participant": "\(participant)"]) { $1 }
                logger.info("participant ended before it joined", metadata: metadata)
                return
            }
            guard attendance.hasJoined else {
                logger.info("participant ended before it joined", metadata: metadata(attendance, details))
                return
            }
            let seconds: Logger.Metadata = ["seconds": "\(Int(attendance.duration.seconds))"]
            logger.info("participant ended", metadata: metadata(attendance, details.merging(seconds) { $1 }))
        case .formatUnsupported(let attendance, let slot, let codec):
            logger.warning(
                "viewer cannot play the publisher's codec, so it sees nothing",
                metadata: metadata(attendance, ["slot": "\(slot)", "codec": "\(codec.rawValue)"])
            )
        case .dataEnded(let attendance, let reason):
            logger.warning(
                "the node ended the data channels of a participant",
                metadata: metadata(attendance, ["reason": "\(reason.message)"])
            )
        case .subscriptionFailed(let slot, let error):
            logger.debug("subscription refused", metadata: ["slot": "\(slot)", "error": "\(error)"])
        case .report(.sessionCreated(let session, _)):
            logger.info("session began", metadata: ["channel": "\(session.channel)", "session": "\(session.id)"])
        case .report(.sessionDestroyed(let session, _)):
            logger.info("session ended", metadata: ["channel": "\(session.channel)", "session": "\(session.id)"])
        case .report: break
        }
    }

    /// - Parameter details: What only this event has.
    private func metadata(_ attendance: ChannelDirectory.ParticipantInfo, _ details: Logger.Metadata) -> Logger.Metadata
    {
        let metadata: Logger.Metadata = [
            "channel": "\(attendance.channel)", "participant": "\(attendance.participant)",
            "peer": "\(attendance.peer)", "role": "\(attendance.role.rawValue)",
            "protocol": "\(attendance.agent.signaling.rawValue)", "address": "\(attendance.network)",
        ]
        return metadata.merging(details) { $1 }
    }
}

extension EndReason {
    fileprivate var message: String {
        switch self {
        case .left: "left"
        case .shutdown: "the server shut down"
        case .setupFailed: "setup failed"
        case .transport(let reason): reason.rawValue
        case .disconnectedByOperator: "an operator disconnected it"
        case .kicked: "an operator removed its user from the channel"
        case .banned: "an operator banned its user from the channel"
        case .channelTerminated: "an operator closed the channel"
        case .channelExpired: "the channel has lived for as long as it may"
        case .madeAudience: "an operator made its user audience"
        case .pongTimedOut: "it did not answer pings"
        case .lifetimeExpired: "its permitted time is over"
        case .tokenExpired: "its token expired"
        case .sessionTerminated: "an operator ended the session"
        case .tooSlow: "its signaling did not take the events that waited for it"
        case .unanswered: "it did not answer its offer in time"
        case .unreachable: "its transport found no path in time"
        case .evicted: "the node was full, and it had not connected"
        case .replaced: "the same user joined again"
        case .signalingLost: "its signaling broke off"
        case .rejected(let reason): reason
        }
    }
}

extension DataAssociationEnd {
    fileprivate var message: String {
        switch self {
        case .work: "its packets caused more work than those of one client may cause"
        case .flood: "it sent more control chunks or broken chunks than a working client does"
        case .stalled: "its data took memory, and nothing moved on in time"
        case .memory: "the data of all clients took too much memory, and its own more than its part"
        case .violation: "it sent what SCTP or the node's description does not allow"
        }
    }
}
