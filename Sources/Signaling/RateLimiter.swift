import NIOCore
import Synchronization
import Wire

/// A token bucket for each client address, in a table of bounded size.
///
/// An IPv6 client is its /64, which is what one subscriber holds. When the table is full, buckets that have filled up
/// again are dropped first; if there are none, all are: a flood from that many addresses is not stopped here.
struct RateLimiter: Sendable {
    /// Addresses remembered at one time.
    static let clientsMax = 20_000

    private struct Bucket {
        var tokens: Double
        var updatedAt: ContinuousClock.Instant
    }
    let burst: Double
    let perSecond: Double
    private var buckets: [IPAddress: Bucket] = [:]
    var clientCount: Int { buckets.count }

    /// - Parameter burst: 0 turns the limit off.
    init(burst: Int, perSecond: Double) {
        self.burst = Double(burst)
        self.perSecond = max(perSecond, 0.001)
    }

    /// Takes one request's token. Returns `nil`, or after how many seconds there is one again.
    mutating func take(for client: IPAddress, at now: ContinuousClock.Instant) -> Int? {
        guard burst > 0 else { return nil }
        if buckets[client] == nil, buckets.count >= Self.clientsMax {
            buckets = buckets.filter { tokens(of: $0.value, at: now) < burst }
            if buckets.count >= Self.clientsMax { buckets = [:] }
        }
        let available = buckets[client].map { tokens(of: $0, at: now) } ?? burst
        guard available >= 1 else {
            buckets[client] = Bucket(tokens: available, updatedAt: now)
            return max(1, Int(((1 - available) / perSecond).rounded(.up)))
        }
        buckets[client] = Bucket(tokens: available - 1, updatedAt: now)
        return nil
    }

    private func tokens(of bucket: Bucket, at now: ContinuousClock.Instant) -> Double {
        let elapsed = (now - bucket.updatedAt) / .seconds(1)
        return min(burst, bucket.tokens + max(0, elapsed) * perSecond)
    }

    /// What a client is counted by.
    static func key(of address: SocketAddress?) -> IPAddress {
        guard let text = address?.ipAddress, let address = IPAddress(text) else { return .anyV4 }
        return address.isV4 ? address : IPAddress(high: address.high, low: 0)
    }
}

/// The one ``RateLimiter`` of a listener.
final class AddressLimiter: Sendable {
    private let limiter: Mutex<RateLimiter>

    init(_ limits: HTTPLimits) {
        limiter = Mutex(RateLimiter(burst: limits.requestBurst, perSecond: limits.requestsPerSecond))
    }

    /// Takes a token for whoever is at the other end of `channel`. Returns `nil`, or after how many seconds there is
    /// one again.
    func take(for channel: any Channel) -> Int? {
        let client = RateLimiter.key(of: channel.remoteAddress)
        return limiter.withLock { $0.take(for: client, at: .now) }
    }
}
