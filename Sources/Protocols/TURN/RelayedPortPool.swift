import Base
import Wire

/// The ports of relayed addresses on one of the node's addresses. Nothing listens on them: they only tell allocations
/// apart.
///
/// The order is a permutation of all ports that depends on the seed, so that a port comes again as late as possible. A
/// port rests after use.
struct RelayedPortPool: Sendable {
    /// Ports below 1024 are never used.
    static let portMin: UInt16 = 1_024

    private let reserved: Set<UInt16>
    private let networkMax: Int
    private let roundKeys: [4 of UInt64]
    private var position: UInt16 = 0
    /// One bit a port that is in use, resting or never used. Empty before the first use.
    private var taken: [UInt64] = []
    private(set) var inUse = 0
    /// Ports that rest, by the end of their rest, with the networks of the clients that had them.
    private var resting: [(port: UInt16, network: IPAddress, until: Instant)] = []
    private var firstResting = 0
    /// The ports in use or resting of each network that has any.
    private var heldByNetwork: [IPAddress: Int] = [:]

    /// - Parameter networkMax: ports that the clients of one network hold, in use or resting.
    init(reserved: Set<UInt16>, networkMax: Int, using generator: inout some RandomNumberGenerator) {
        self.reserved = reserved
        self.networkMax = networkMax
        roundKeys = [generator.next(), generator.next(), generator.next(), generator.next()]
    }

    /// A port that is not in use, and even if `even`; `nil` when all such ports are in use or resting, or the client's network
    /// holds as many as it may.
    mutating func acquire(for client: IPAddress, even: Bool = false, at now: Instant) -> UInt16? {
        if taken.isEmpty {
            taken = Array(repeating: 0, count: 1_024)
            for port in 0..<Self.portMin { take(port) }
            for port in reserved { take(port) }
        }
        releaseRested(at: now)
        let available = 65_536 - Int(Self.portMin) - reserved.count { $0 >= Self.portMin }
        guard inUse + resting.count - firstResting < available,
            heldByNetwork[client.network, default: 0] < networkMax
        else { return nil }
        for _ in 0...UInt16.max {
            let port = permuted(position)
            position &+= 1
            guard !isTaken(port), !even || port.isMultiple(of: 2) else { continue }
            take(port)
            inUse += 1
            heldByNetwork[client.network, default: 0] += 1
            return port
        }
        return nil
    }

    private mutating func take(_ port: UInt16) { taken[Int(port >> 6)] |= 1 << UInt64(port & 63) }

    /// Takes back a port from ``acquire(for:even:at:)`` for this client, which then rests.
    mutating func release(_ port: UInt16, of client: IPAddress, at now: Instant) {
        precondition(inUse > 0 && isTaken(port), "the port was acquired")
        inUse -= 1
        resting.append((port, client.network, now + TURNTimes.addressRest))
    }

    private mutating func releaseRested(at now: Instant) {
        while firstResting < resting.count, resting[firstResting].until <= now {
            let (port, network, _) = resting[firstResting]
            taken[Int(port >> 6)] &= ~(1 << UInt64(port & 63))
            let held = heldByNetwork[network, default: 1] - 1
            heldByNetwork[network] = held > 0 ? held : nil
            firstResting += 1
        }
        if firstResting > 64, firstResting * 2 > resting.count {
            resting.removeFirst(firstResting)
            firstResting = 0
        }
    }

    private func isTaken(_ port: UInt16) -> Bool { taken[Int(port >> 6)] >> UInt64(port & 63) & 1 != 0 }

    /// A Feistel network over two bytes: a permutation of all 16-bit numbers.
    private func permuted(_ number: UInt16) -> UInt16 {
        var left = UInt8(number >> 8)
        var right = UInt8(truncatingIfNeeded: number)
        for round in 0..<4 {
            let mixed = (roundKeys[round] &+ UInt64(right)) &* 0x9E37_79B9_7F4A_7C15
            (left, right) = (right, left ^ UInt8(mixed >> 56))
        }
        return UInt16(left) << 8 | UInt16(right)
    }
}
