import NIOCore
import Room
import Synchronization

/// Bounds the bytes that wait for all clients of a listener together: those that they have not read, or those of messages that
/// they have not sent whole.
///
/// Beyond the limit it closes connections until the rest fits: of the network with the most waiting bytes, the client with
/// the oldest ones. Clients whose bytes are new stay connected as long as closing slow ones is enough.
final class WaitingBudget: Sendable {
    /// One client's connection.
    struct ID: Hashable, Sendable {
        fileprivate let rawValue: UInt64
    }
    /// The clients that count together: those of one network, or a single connection of a shared network.
    private enum Owner: Hashable {
        case network(ClientNetwork)
        case connection(ID)
    }
    private struct Client {
        let owner: Owner
        let cut: @Sendable () -> Void
        var waitingBytes = 0
        /// What waits, in order, with its times.
        var writes: ArraySlice<(bytes: Int, at: NIODeadline)> = []

        mutating func add(_ bytes: Int, at now: NIODeadline) {
            waitingBytes += bytes
            if let last = writes.last, now - last.at < WaitingBudget.writesTogether {
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

        /// The time of the oldest waiting bytes.
        var waitingSince: NIODeadline? { writes.first?.at }

        func isSlow(at now: NIODeadline) -> Bool {
            waitingSince.map { now - $0 >= WaitingBudget.patience } ?? false
        }
    }
    private struct State {
        var clients: [ID: Client] = [:]
        var waitingBytes = 0
        var next: UInt64 = 0
    }

    /// The age of waiting bytes from which its client counts as slow.
    static let patience = TimeAmount.seconds(1)
    /// Writes within this time are recorded as one, which bounds the record.
    private static let writesTogether = TimeAmount.milliseconds(100)

    private let bytesMax: Int
    private let refusal: SignalingStatistics.Refusal
    private let statistics: SignalingStatistics
    private let state = Mutex(State())

    /// - Parameters:
    ///   - bytesMax: The maximum number of waiting bytes of all clients.
    ///   - refusal: What a client is counted as whose connection is closed.
    init(bytesMax: Int, refusal: SignalingStatistics.Refusal, statistics: SignalingStatistics) {
        self.bytesMax = bytesMax
        self.refusal = refusal
        self.statistics = statistics
    }

    /// The number of waiting bytes.
    var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// Adds a client, until ``remove(_:)``.
    /// - Parameters:
    ///   - network: The client's network.
    ///   - cut: Closes the client's connection; called on any thread, at most once.
    func add(from network: ClientNetwork, cut: @escaping @Sendable () -> Void) -> ID {
        state.withLock { state in
            let id = ID(rawValue: state.next)
            state.next += 1
            state.clients[id] = Client(owner: network.isShared ? .connection(id) : .network(network), cut: cut)
            return id
        }
    }

    /// Removes a client and its waiting bytes.
    func remove(_ id: ID) {
        state.withLock { state in
            guard let client = state.clients.removeValue(forKey: id) else { return }
            state.waitingBytes -= client.waitingBytes
        }
    }

    /// Changes a client's waiting bytes. Does nothing after the client was removed or cut.
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
            statistics.refused(refusal)
            client.cut()
        }
    }

    /// The next client to cut.
    private func slowest(of state: State, at now: NIODeadline) -> ID? {
        // If new data alone exceeds the limit, cutting the slow clients would not help.
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
