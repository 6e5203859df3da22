public import Room
import Synchronization

/// What has happened to sessions, connections and clients since the node began. One for the node.
public final class SignalingStatistics: Sendable {
    /// The programs that statistics tell apart, by the name that they have there.
    public enum Client: String, Hashable, Sendable, CaseIterable {
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
        public init(_ agent: ClientAgent) {
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

    /// Why a client was refused or cut off for what it would cost others. The raw value is the metric's label.
    public enum Refusal: String, Hashable, Sendable, CaseIterable {
        /// More requests of one network than the limit on requests permits.
        case requestRate = "request_rate"
        /// More, or larger, first messages of one network than the limit on them permits.
        case messageRate = "message_rate"
        /// A member's statistics were dropped because its network sends more of them than its limit permits.
        case memberMessageRate = "member_message_rate"
        /// More pings, pongs and small fragments on a WebSocket than its limit permits.
        case frameFlood = "frame_flood"
        /// A connection above its network's share.
        case connectionShare = "connection_share"
        /// An event stream above its network's share.
        case eventStreamShare = "event_stream_share"
        /// The node or the channel has as many event streams as it may.
        case eventStreams = "event_streams"
        /// A client that read too slowly while too much waited for all clients together.
        case slowReader = "slow_reader"
        /// A connection without the PROXY protocol's header, or with one that cannot be read.
        case proxyHeader = "proxy_header"
        /// A request at the operators' listener with a `Host` that is not its own.
        case host = "host"
    }

    /// Counts since the node began.
    public struct Counts: Hashable, Sendable {
        public var sessionsCreated: UInt64 = 0
        public var sessionsDestroyed: UInt64 = 0
        public var connectionsCreated: UInt64 = 0
        public var connectionsUpdated: UInt64 = 0
        public var connectionsDestroyed: UInt64 = 0
        /// Those that never came up, and those that were refused before.
        public var connectionsFailed: UInt64 = 0
        /// Of connections that ended.
        public var duration: Duration = .zero
        /// From the wish to join until the transport was up, of all connections together.
        public var setupTime: Duration = .zero
        public var successfulClients: [Client: UInt64] = [:]
        public var failedClients: [Client: UInt64] = [:]
        /// Connections that ended because of the signaling, by the word that the client was told.
        public var signalingErrors: [String: UInt64] = [:]
        public var refusals: [Refusal: UInt64] = [:]

        public init() {}

        /// Connections that are up.
        public var ongoing: UInt64 { connectionsCreated &- connectionsDestroyed }
        /// In seconds.
        public var durationAverage: Double {
            connectionsDestroyed == 0 ? 0 : duration / .seconds(1) / Double(connectionsDestroyed)
        }
        /// In milliseconds.
        public var setupTimeAverage: Double {
            connectionsCreated == 0 ? 0 : setupTime / .milliseconds(1) / Double(connectionsCreated)
        }
    }
    /// How many words of errors are counted apart; the rest goes by the name of `OTHER`.
    private static let errorsMax = 64

    private let state = Mutex(Counts())

    public init() {}

    public var counts: Counts { state.withLock { $0 } }

    /// Counts what rooms report.
    public func take(_ report: RoomReport) {
        state.withLock { counts in
            switch report {
            case .sessionCreated: counts.sessionsCreated += 1
            case .sessionDestroyed: counts.sessionsDestroyed += 1
            case .connectionCreated(let report):
                counts.connectionsCreated += 1
                counts.setupTime += report.connection.setupTime ?? .zero
                counts.successfulClients[Client(report.connection.agent), default: 0] += 1
            case .connectionUpdated: counts.connectionsUpdated += 1
            case .connectionDestroyed(let report, _):
                counts.connectionsDestroyed += 1
                counts.duration += report.duration
            case .connectionFailed(let report, _):
                counts.connectionsFailed += 1
                counts.failedClients[Client(report.connection.agent), default: 0] += 1
            }
        }
    }

    /// Counts a client that was refused or cut off for what it would cost others.
    public func refused(_ reason: Refusal) { state.withLock { $0.refusals[reason, default: 0] += 1 } }

    /// Counts a client that the signaling refused or ended for a mistake.
    /// - Parameters:
    ///   - isConnection: whether it is counted as a failed connection here, because rooms never heard of it.
    ///   - reason: a word as the client is told. When there are too many different ones, further ones are counted together.
    public func signalingFailed(client: ClientAgent, isConnection: Bool = true, reason: String) {
        state.withLock { counts in
            if isConnection {
                counts.connectionsFailed += 1
                counts.failedClients[Client(client), default: 0] += 1
            }
            let isKnown = counts.signalingErrors[reason] != nil || counts.signalingErrors.count < Self.errorsMax
            counts.signalingErrors[isKnown ? reason : "OTHER", default: 0] += 1
        }
    }

    /// As ``signalingFailed(client:isConnection:reason:)`` for a client of Sora's by the name that it gave.
    public func signalingFailed(client: String, isConnection: Bool = true, reason: String) {
        signalingFailed(
            client: ClientAgent(signaling: .sora, name: client),
            isConnection: isConnection,
            reason: reason
        )
    }
}
