package import Base
package import ChannelTypes
package import Logging
import Synchronization

/// A token bucket for each client network, in a table of bounded size.
///
/// When the table is full, it drops all full buckets, or all buckets if none is full: this limiter does not stop a flood
/// from that many networks.
struct RateLimiter: Sendable {
    /// The maximum number of buckets.
    static let clientsMax = 20_000

    /// `nil` for no limit.
    private let rate: TokenRate?
    /// For each network, when what it took is paid for.
    private var paidAt: [ClientNetwork: Instant] = [:]
    var clientCount: Int { paidAt.count }

    /// - Parameters:
    ///   - burst: The capacity of a bucket; 0 turns the limit off.
    ///   - perSecond: At least 0.001.
    init(burst: Int, perSecond: Double) {
        rate = burst > 0 ? TokenRate(1, per: .seconds(1 / max(perSecond, 0.001)), burst: burst) : nil
    }

    /// Takes the tokens of one request. Returns `nil`, or the seconds until enough tokens are available.
    /// - Parameter cost: The number of tokens. A full bucket pays for any request.
    mutating func take(for client: ClientNetwork, cost: Int = 1, at now: Instant) -> Int? {
        guard let rate else { return nil }
        if paidAt[client] == nil, paidAt.count >= Self.clientsMax {
            paidAt = paidAt.filter { $0.value > now }
            if paidAt.count >= Self.clientsMax { paidAt = [:] }
        }
        let cost = min(cost, rate.burst)
        guard !rate.take(cost, paidAt: &paidAt[client, default: now], at: now) else { return nil }
        return rate.nextTake(cost, paidAt: paidAt[client] ?? now, at: now)?.secondsToWait(at: now)
    }
}

extension TokenBucket {
    /// Takes a token. Returns `nil`, or the seconds until one is available.
    package mutating func takeOrWait(at now: Instant) -> Int? {
        take(at: now) ? nil : nextTake(at: now)?.secondsToWait(at: now)
    }
}

extension Instant {
    /// The whole seconds until then, for Retry-After; at least 1.
    fileprivate func secondsToWait(at now: Instant) -> Int { max(1, Int((self - now).seconds.rounded(.up))) }
}

/// The ``RateLimiter``s of a listener.
package final class AddressLimiter: Sendable {
    /// What is limited; each kind has buckets of its own.
    package enum Kind: Hashable, Sendable {
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
    private let now: @Sendable () -> Instant
    private let statistics: SignalingStatistics
    private let logger: Logger

    /// - Parameters:
    ///   - statistics: Counts refusals.
    ///   - logger: Has the address of each refusal, at level debug.
    package init(
        _ limits: HTTPLimits,
        now: @escaping @Sendable () -> Instant,
        statistics: SignalingStatistics,
        logger: Logger
    ) {
        self.now = now
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
    package func take(_ kind: Kind, cost: Int = 1, for network: ClientNetwork) -> Int? {
        let now = now()
        let wait = state.withLock { state in
            switch kind {
            case .request: state.requests.take(for: network, cost: cost, at: now)
            case .handshake: state.handshakes.take(for: network, cost: cost, at: now)
            case .ending: state.endings.take(for: network, cost: cost, at: now)
            case .message: state.messages.take(for: network, cost: cost, at: now)
            case .memberMessage: state.memberMessages.take(for: network, cost: cost, at: now)
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
