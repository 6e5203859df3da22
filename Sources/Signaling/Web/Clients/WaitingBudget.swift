import Base
import ChannelTypes
import NIOCore
import Synchronization

/// Bounds the bytes that wait for all clients of a listener together: those that they have not read, or those of messages that
/// they have not sent whole.
///
/// Beyond the limit it closes connections until the rest fits: of the network with the most waiting bytes, the client with
/// the oldest ones, and of several the one that connected first. Clients whose bytes are new stay connected as long as closing
/// slow ones is enough.
///
/// The bytes of a closed client are there until its loop has ended the connection, which a busy machine delays. With them all may
/// take an eighth more. Beyond that, no bytes are added for the networks of closed clients, whose connections are closed instead.
package final class WaitingBudget: Sendable {
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
        /// Its connection is being closed.
        var isCut = false
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
        /// Of the clients whose connections are open, and of the others.
        var waitingBytes = 0
        var closingBytes = 0
        /// Clients whose connections are being closed.
        var closing: [Owner: Int] = [:]
        var next: UInt64 = 0

        mutating func cut(_ id: ID) -> Client? {
            guard let client = clients[id] else { return nil }
            clients[id]?.isCut = true
            waitingBytes -= client.waitingBytes
            closingBytes += client.waitingBytes
            closing[client.owner, default: 0] += 1
            return client
        }

        mutating func remove(_ id: ID) {
            guard let client = clients.removeValueAndRoom(forKey: id) else { return }
            guard client.isCut else {
                waitingBytes -= client.waitingBytes
                return
            }
            closingBytes -= client.waitingBytes
            let rest = (closing[client.owner] ?? 1) - 1
            closing[client.owner] = rest > 0 ? rest : nil
        }
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
    package init(bytesMax: Int, refusal: SignalingStatistics.Refusal, statistics: SignalingStatistics) {
        self.bytesMax = bytesMax
        self.refusal = refusal
        self.statistics = statistics
    }

    /// The number of waiting bytes of the clients whose connections are open.
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
    func remove(_ id: ID) { state.withLock { $0.remove(id) } }

    /// Changes a client's waiting bytes. Does nothing after the client was removed.
    /// - Returns: `false` when the client is cut: nothing more is to wait for it.
    @discardableResult
    func change(_ id: ID, by bytes: Int, at now: NIODeadline = .now()) -> Bool {
        let (slow, isCut) = state.withLock { state -> ([Client], Bool) in
            guard let client = state.clients[id] else { return ([], true) }
            guard !client.isCut else {
                // What would be added does not wait.
                let removed = min(max(-bytes, 0), client.waitingBytes)
                state.clients[id]?.remove(removed)
                state.closingBytes -= removed
                return ([], true)
            }
            if bytes > 0 {
                state.clients[id]?.add(bytes, at: now)
            } else {
                state.clients[id]?.remove(-bytes)
            }
            state.waitingBytes += bytes
            var slow: [Client] = []
            while state.waitingBytes > bytesMax, let id = slowest(of: state, at: now), let client = state.cut(id) {
                slow.append(client)
            }
            let isBeyond = state.closingBytes - bytesMax / 8 > bytesMax - state.waitingBytes
            if isBeyond, bytes > 0, state.closing[client.owner] != nil, state.clients[id]?.isCut == false,
                let client = state.cut(id)
            {
                slow.append(client)
            }
            return (slow, state.clients[id]?.isCut == true)
        }
        for client in slow {
            statistics.refused(refusal)
            client.cut()
        }
        return !isCut
    }

    /// The next client to cut.
    private func slowest(of state: State, at now: NIODeadline) -> ID? {
        // If new data alone exceeds the limit, cutting the slow clients would not help.
        var bytes: (slow: [Owner: Int], all: [Owner: Int], slowTotal: Int) = ([:], [:], 0)
        for client in state.clients.values where client.waitingBytes > 0 && !client.isCut {
            bytes.all[client.owner, default: 0] += client.waitingBytes
            guard client.isSlow(at: now) else { continue }
            bytes.slow[client.owner, default: 0] += client.waitingBytes
            bytes.slowTotal += client.waitingBytes
        }
        let areEnough = state.waitingBytes - bytes.slowTotal <= bytesMax
        guard let owner = (areEnough ? bytes.slow : bytes.all).max(by: { $0.value < $1.value })?.key else { return nil }
        return state.clients
            .filter { $0.value.owner == owner && $0.value.waitingBytes > 0 && !$0.value.isCut }
            .min {
                let (one, other) = ($0.value.waitingSince ?? now, $1.value.waitingSince ?? now)
                return one == other ? $0.key.rawValue < $1.key.rawValue : one < other
            }?.key
    }
}
