import Logging
import Room
import Synchronization

/// A token bucket for each client network, in a table of bounded size.
///
/// When the table is full, it drops all full buckets, or all buckets if none is full: this limiter does not stop a flood
/// from that many networks.
struct RateLimiter: Sendable {
    /// The maximum number of buckets.
    static let clientsMax = 20_000

    private struct Bucket {
        var tokens: Double
        var updatedAt: ContinuousClock.Instant
    }
    let burst: Double
    let perSecond: Double
    private var buckets: [ClientNetwork: Bucket] = [:]
    var clientCount: Int { buckets.count }

    /// - Parameter burst: The capacity of a bucket; 0 turns the limit off.
    init(burst: Int, perSecond: Double) {
        self.burst = Double(burst)
        self.perSecond = max(perSecond, 0.001)
    }

    /// Takes the tokens of one request. Returns `nil`, or the seconds until enough tokens are available.
    /// - Parameter cost: The number of tokens, at most a full bucket.
    mutating func take(for client: ClientNetwork, cost: Int = 1, at now: ContinuousClock.Instant) -> Int? {
        guard burst > 0 else { return nil }
        let cost = min(Double(cost), burst)
        if buckets[client] == nil, buckets.count >= Self.clientsMax {
            buckets = buckets.filter { tokens(of: $0.value, at: now) < burst }
            if buckets.count >= Self.clientsMax { buckets = [:] }
        }
        let available = buckets[client].map { tokens(of: $0, at: now) } ?? burst
        guard available >= cost else {
            buckets[client] = Bucket(tokens: available, updatedAt: now)
            return max(1, Int(((cost - available) / perSecond).rounded(.up)))
        }
        buckets[client] = Bucket(tokens: available - cost, updatedAt: now)
        return nil
    }

    private func tokens(of bucket: Bucket, at now: ContinuousClock.Instant) -> Double {
        let elapsed = (now - bucket.updatedAt) / .seconds(1)
        return min(burst, bucket.tokens + max(0, elapsed) * perSecond)
    }
}

/// The ``RateLimiter``s of a listener.
final class AddressLimiter: Sendable {
    /// What is limited; each kind has buckets of its own.
    enum Kind: Hashable, Sendable {
        /// HTTP requests and WebSocket handshakes.
        case request
        /// TLS handshakes: one for each request at most.
        case handshake
        /// DELETE requests: a client over its request limit can still end its sessions.
        case ending
        /// WebSocket messages before admission, by their cost.
        case message
        /// Statistics of admitted clients, by their cost.
        case memberMessage
    }
    private struct State {
        var requests: RateLimiter
        var handshakes: RateLimiter
        var endings: RateLimiter
        var messages: RateLimiter
        var memberMessages: RateLimiter
    }
    private let state: Mutex<State>
    private let statistics: SignalingStatistics
    private let logger: Logger

    /// - Parameters:
    ///   - statistics: Counts refusals.
    ///   - logger: Has the address of each refusal, at level debug.
    init(_ limits: HTTPLimits, statistics: SignalingStatistics, logger: Logger) {
        self.logger = logger
        let requests = RateLimiter(burst: limits.requestBurst, perSecond: limits.requestsPerSecond)
        let messages = RateLimiter(burst: limits.messageBurst, perSecond: limits.messagesPerSecond)
        let memberMessages = RateLimiter(
            burst: limits.memberMessageBurst,
            perSecond: limits.memberMessagesPerSecond
        )
        state = Mutex(
            State(
                requests: requests,
                handshakes: requests,
                endings: requests,
                messages: messages,
                memberMessages: memberMessages
            )
        )
        self.statistics = statistics
    }

    /// Takes tokens of `network`. Returns `nil`, or the seconds until enough tokens are available.
    func take(_ kind: Kind, cost: Int = 1, for network: ClientNetwork) -> Int? {
        let wait = state.withLock { state in
            switch kind {
            case .request: state.requests.take(for: network, cost: cost, at: .now)
            case .handshake: state.handshakes.take(for: network, cost: cost, at: .now)
            case .ending: state.endings.take(for: network, cost: cost, at: .now)
            case .message: state.messages.take(for: network, cost: cost, at: .now)
            case .memberMessage: state.memberMessages.take(for: network, cost: cost, at: .now)
            }
        }
        if wait != nil {
            statistics.refused(kind.refusal)
            logger.logLimit(kind.refusal, exceededBy: network)
        }
        return wait
    }
}

extension Logger {
    /// Tells which client exceeds a limit of its address. There may be very many lines, so they are for debugging only.
    func logLimit(_ limit: SignalingStatistics.Refusal, exceededBy network: ClientNetwork) {
        debug("client exceeds a limit", metadata: ["limit": "\(limit.rawValue)", "address": "\(network)"])
    }
}

extension AddressLimiter.Kind {
    fileprivate var refusal: SignalingStatistics.Refusal {
        switch self {
        case .request, .ending: .requestRate
        case .handshake: .handshakeRate
        case .message: .messageRate
        case .memberMessage: .memberMessageRate
        }
    }
}
