package import Base
package import ChannelTypes
package import MediaTypes
package import Metrics
package import Room
import Synchronization

/// Counts sessions, connections and clients since the node started. There is one per node.
package final class SignalingStatistics: Sendable {
    /// The client programs in statistics. The raw value is the name there.
    package enum Client: String, Hashable, Sendable, CaseIterable {
        case android = "sora_android_sdk"
        case c = "sora_c_sdk"
        case cpp = "sora_cpp_sdk"
        case flutter = "sora_flutter_sdk"
        case ios = "sora_ios_sdk"
        case javaScript = "sora_js_sdk"
        case python = "sora_python_sdk"
        case unity = "sora_unity_sdk"
        case obsWHIP = "obs_studio_whip"
        case obsWHEP = "obs_studio_whep"
        case zakuro = "webrtc_load_testing_tool_zakuro"
        case momo = "webrtc_native_client_momo"
        case unknown

        /// By what the client calls itself.
        package init(_ agent: ClientAgent) {
            let name = agent.name.lowercased()
            switch agent.signaling {
            case .whip: self = name.contains("obs") ? .obsWHIP : .unknown
            case .whep: self = name.contains("obs") ? .obsWHEP : .unknown
            case .sora, .other: self = Self.soraClient(name)
            }
        }

        private static func soraClient(_ name: String) -> Self {
            let names: [(String, Self)] = [
                ("zakuro", .zakuro), ("momo", .momo), ("sora android sdk", .android), ("sora ios sdk", .ios),
                ("sora javascript sdk", .javaScript), ("sora python sdk", .python), ("sora unity sdk", .unity),
                ("sora flutter sdk", .flutter), ("sora c++ sdk", .cpp), ("sora cpp sdk", .cpp), ("sora c sdk", .c),
            ]
            return names.first { name.contains($0.0) }?.1 ?? .unknown
        }
    }

    /// The limit because of which a client was refused or closed. The raw value is the metric's label.
    package enum Refusal: String, Hashable, Sendable, CaseIterable {
        /// A network began more TLS handshakes than it may make requests.
        case handshakeRate = "handshake_rate"
        /// A network exceeded its rate of requests.
        case requestRate = "request_rate"
        /// A network exceeded its rate of messages before admission.
        case messageRate = "message_rate"
        /// A client's statistics were dropped because its network exceeded its rate.
        case memberMessageRate = "member_message_rate"
        /// A client was ended because it sent more messages, or more bytes of them, than signaling needs, over its WebSocket or its
        /// data channels.
        case clientMessageRate = "client_message_rate"
        /// A client was ended for a message on a data channel on which it only receives, or one that is malformed or too long.
        case dataMessage = "data_message"
        /// A WebSocket exceeded its rate of pings, pongs and small fragments.
        case frameFlood = "frame_flood"
        /// A connection above its network's share.
        case connectionShare = "connection_share"
        /// An event stream above its network's share.
        case eventStreamShare = "event_stream_share"
        /// The node or the channel reached its limit of event streams.
        case eventStreams = "event_streams"
        /// A slow client was closed because the unsent bytes of all clients reached their limit.
        case slowReader = "slow_reader"
        /// A slow client was closed because the bytes of messages that have not arrived whole reached their limit.
        case slowSender = "slow_sender"
        /// A connection of a proxy without a valid PROXY protocol header.
        case proxyHeader = "proxy_header"
        /// A newcomer while more joined at once than the node serves beside its calls. Of a cluster only.
        case joinRate = "join_rate"
        /// A request for a session of another node, which did not answer.
        case forwarding = "forwarding"
        /// A request with an unknown `Host` at the admin listener.
        case host = "host"
    }

    /// How a registration at the 1:1 relay ended. The raw value is the metric's label.
    package enum CallRegistration: String, Hashable, Sendable, CaseIterable {
        case accepted
        /// By the node's token, or by the operator's server.
        case rejected
        /// The room had two members.
        case full
    }

    /// The counts since the node started.
    package struct Counts: Hashable, Sendable {
        package var sessionsCreated: UInt64 = 0
        package var sessionsDestroyed: UInt64 = 0
        package var connectionsCreated: UInt64 = 0
        /// Those that are created, by what they connected over.
        package var connectionsOver: [TransportProtocol: UInt64] = [:]
        package var connectionsUpdated: UInt64 = 0
        package var connectionsDestroyed: UInt64 = 0
        /// Connections that never connected or were refused.
        package var connectionsFailed: UInt64 = 0
        /// The total duration of ended connections.
        package var duration: Duration = .zero
        /// The total time from the request to join until the transport connected.
        package var setupTime: Duration = .zero
        /// The same of each connection.
        package var setupTimes = DurationHistogram.setupTimes
        /// The time of each request to join until the node's description: a WHIP answer, or a Sora offer.
        package var answerTimes = DurationHistogram.setupTimes
        package var successfulClients: [Client: UInt64] = [:]
        package var failedClients: [Client: UInt64] = [:]
        /// Connections that ended because of the signaling, by close reason.
        package var signalingErrors: [String: UInt64] = [:]
        package var refusals: [Refusal: UInt64] = [:]
        package var relayRegistrations: [CallRegistration: UInt64] = [:]
        /// Messages that the 1:1 relay passed on.
        package var relayedMessages: UInt64 = 0

        package init() {}

        /// The number of connected connections.
        package var ongoing: UInt64 { connectionsCreated &- connectionsDestroyed }
        /// The average duration of ended connections, in seconds.
        package var durationAverage: Double {
            connectionsDestroyed == 0 ? 0 : duration / .seconds(1) / Double(connectionsDestroyed)
        }
        /// The average setup time, in milliseconds.
        package var setupTimeAverage: Double {
            connectionsCreated == 0 ? 0 : setupTime / .milliseconds(1) / Double(connectionsCreated)
        }
    }
    /// The maximum number of distinct error reasons. Further ones count as `OTHER`.
    private static let errorsMax = 64

    private let state = Mutex(Counts())

    package init() {}

    package var counts: Counts { state.withLock { $0 } }

    /// Counts a report of the rooms.
    package func take(_ report: RoomReport) {
        state.withLock { counts in
            switch report {
            case .sessionCreated: counts.sessionsCreated += 1
            case .sessionDestroyed: counts.sessionsDestroyed += 1
            case .connectionCreated(let report):
                counts.connectionsCreated += 1
                counts.connectionsOver[report.connection.member.transport, default: 0] += 1
                if let setupTime = report.connection.setupTime {
                    counts.setupTime += setupTime
                    counts.setupTimes.observe(nanoseconds: Int64(setupTime / .nanoseconds(1)))
                }
                counts.successfulClients[Client(report.connection.agent), default: 0] += 1
            case .connectionUpdated: counts.connectionsUpdated += 1
            case .roleChanged, .qualityChanged, .setupAdvanced, .connectionInterrupted, .connectionResumed,
                .publishingBegan,
                .flowChanged, .firstFrameReceived:
                break
            case .connectionDestroyed(let report, _):
                counts.connectionsDestroyed += 1
                counts.duration += report.duration
            case .connectionFailed(let report, _):
                counts.connectionsFailed += 1
                counts.failedClients[Client(report.connection.agent), default: 0] += 1
            }
        }
    }

    /// Counts a client that was refused or closed because of a limit.
    package func refused(_ reason: Refusal) { state.withLock { $0.refusals[reason, default: 0] += 1 } }

    /// Counts a request to join that the node answered with its description.
    /// - Parameter duration: since the request.
    package func answered(after duration: Interval) {
        state.withLock { $0.answerTimes.observe(nanoseconds: duration.nanoseconds) }
    }

    /// Counts a registration at the 1:1 relay.
    package func relayRegistered(_ result: CallRegistration) {
        state.withLock { $0.relayRegistrations[result, default: 0] += 1 }
    }

    /// Counts a message that the 1:1 relay passed on.
    package func relayedMessage() { state.withLock { $0.relayedMessages += 1 } }

    /// Counts a connection that the signaling refused or ended because of an error.
    /// - Parameters:
    ///   - isConnection: Whether to count a failed connection, because the rooms do not report it.
    ///   - reason: The close reason.
    func signalingFailed(client: ClientAgent, isConnection: Bool = true, reason: String) {
        state.withLock { counts in
            if isConnection {
                counts.connectionsFailed += 1
                counts.failedClients[Client(client), default: 0] += 1
            }
            let isKnown = counts.signalingErrors[reason] != nil || counts.signalingErrors.count < Self.errorsMax
            counts.signalingErrors[isKnown ? reason : "OTHER", default: 0] += 1
        }
    }

    /// ``signalingFailed(client:isConnection:reason:)`` for a Sora client, by its `sora_client`.
    package func signalingFailed(client: String, isConnection: Bool = true, reason: String) {
        signalingFailed(
            client: ClientAgent(signaling: .sora, name: client),
            isConnection: isConnection,
            reason: reason
        )
    }
}
