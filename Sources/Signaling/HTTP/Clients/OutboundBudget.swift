import NIOCore
import Room
import Synchronization

/// What waits for all clients of a listener together because they read more slowly than is written to them.
///
/// When it is more than the limit, clients are cut off until the rest fits: of the network that most waits for, the client
/// that has left something unread for longest. Clients that got all of it just now are spared while the others are enough.
final class OutboundBudget: Sendable {
    /// One client's connection.
    struct ID: Hashable, Sendable {
        fileprivate let rawValue: UInt64
    }
    /// Whose clients are counted together: a network's, or one that shares its address with others of any number.
    private enum Owner: Hashable {
        case network(ClientNetwork)
        case connection(ID)
    }
    private struct Client {
        let owner: Owner
        let cut: @Sendable () -> Void
        var waitingBytes = 0
        /// What waits, first to last, and since when.
        var writes: ArraySlice<(bytes: Int, at: NIODeadline)> = []

        mutating func add(_ bytes: Int, at now: NIODeadline) {
            waitingBytes += bytes
            if let last = writes.last, now - last.at < OutboundBudget.writesTogether {
                writes[writes.endIndex - 1].bytes += bytes
            } else {
                writes.append((bytes, now))
            }
        }

        mutating func remove(_ bytes: Int) {
            waitingBytes -= bytes
            var rest = bytes
            while rest > 0, let first = writes.first {
                if first.bytes > rest {
                    writes[writes.startIndex].bytes -= rest
                    return
                }
                rest -= first.bytes
                writes.removeFirst()
            }
        }

        /// Since when the oldest of what waits does.
        var waitingSince: NIODeadline? { writes.first?.at }

        func isSlow(at now: NIODeadline) -> Bool {
            waitingSince.map { now - $0 >= OutboundBudget.patience } ?? false
        }
    }
    private struct State {
        var clients: [ID: Client] = [:]
        var waitingBytes = 0
        var next: UInt64 = 0
    }

    /// How long something waits at least before its client counts as one that reads slowly.
    static let patience = TimeAmount.seconds(1)
    /// Writes within this time are remembered as one, so that what is remembered does not grow with their number.
    private static let writesTogether = TimeAmount.milliseconds(100)

    private let bytesMax: Int
    private let statistics: SignalingStatistics
    private let state = Mutex(State())

    /// - Parameter bytesMax: what may wait for all clients together, in bytes.
    init(bytesMax: Int, statistics: SignalingStatistics) {
        self.bytesMax = bytesMax
        self.statistics = statistics
    }

    /// What waits at present, in bytes.
    var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// A client that may be written to, until ``remove(_:)``.
    /// - Parameters:
    ///   - network: where the client comes from.
    ///   - cut: closes its connection; called on any thread, at most once.
    func add(from network: ClientNetwork, cut: @escaping @Sendable () -> Void) -> ID {
        state.withLock { state in
            let id = ID(rawValue: state.next)
            state.next += 1
            state.clients[id] = Client(owner: network.isShared ? .connection(id) : .network(network), cut: cut)
            return id
        }
    }

    /// The client is gone, and what waited for it with it.
    func remove(_ id: ID) {
        state.withLock { state in
            guard let client = state.clients.removeValue(forKey: id) else { return }
            state.waitingBytes -= client.waitingBytes
        }
    }

    /// So many bytes more wait for a client, or fewer. Nothing happens when it is gone or was cut off.
    func change(_ id: ID, by bytes: Int, at now: NIODeadline = .now()) {
        let slow = state.withLock { state -> [Client] in
            guard state.clients[id] != nil else { return [] }
            if bytes > 0 {
                state.clients[id]?.add(bytes, at: now)
            } else {
                state.clients[id]?.remove(-bytes)
            }
            state.waitingBytes += bytes
            var slow: [Client] = []
            while state.waitingBytes > bytesMax, let id = slowest(of: state, at: now),
                let client = state.clients.removeValue(forKey: id)
            {
                state.waitingBytes -= client.waitingBytes
                slow.append(client)
            }
            return slow
        }
        for client in slow {
            statistics.refused(.slowReader)
            client.cut()
        }
    }

    /// Who is cut off next.
    private func slowest(of state: State, at now: NIODeadline) -> ID? {
        // To cut off all that read slowly is of no use when what was written just now is too much without them.
        var bytes: (slow: [Owner: Int], all: [Owner: Int], slowTotal: Int) = ([:], [:], 0)
        for client in state.clients.values where client.waitingBytes > 0 {
            bytes.all[client.owner, default: 0] += client.waitingBytes
            guard client.isSlow(at: now) else { continue }
            bytes.slow[client.owner, default: 0] += client.waitingBytes
            bytes.slowTotal += client.waitingBytes
        }
        let areEnough = state.waitingBytes - bytes.slowTotal <= bytesMax
        guard let owner = (areEnough ? bytes.slow : bytes.all).max(by: { $0.value < $1.value })?.key else { return nil }
        return state.clients
            .filter { $0.value.owner == owner && $0.value.waitingBytes > 0 }
            .min { ($0.value.waitingSince ?? now) < ($1.value.waitingSince ?? now) }?.key
    }
}
