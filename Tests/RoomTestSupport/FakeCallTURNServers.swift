package import MediaTypes
import Room
import Synchronization

/// The relays of calls of a node without media: they are counted, and tell the node's name.
package final class FakeCallTURNServers: CallTURNServers {
    private struct State {
        var opened: UInt64 = 0
        var open: [CallTURNID] = []
        var kept: [CallTURNID] = []
        var isFull = false
        var isGateClosed = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let name: String
    private let state = Mutex(State())

    /// - Parameter name: in the URLs and the user names.
    package init(_ name: String = "node") { self.name = name }

    /// The relays that have not ended.
    package var open: [CallTURNID] { state.withLock { $0.open } }
    /// Those that ended but for their allocations.
    package var kept: [CallTURNID] { state.withLock { $0.kept } }
    /// How many were opened.
    package var opened: UInt64 { state.withLock { $0.opened } }
    /// The calls that wait at the gate.
    package var waiting: Int { state.withLock { $0.waiting.count } }

    /// From now on no relay is to be had.
    package func fill() { state.withLock { $0.isFull = true } }

    /// From now on calls wait.
    package func closeGate() { state.withLock { $0.isGateClosed = true } }

    package func openGate() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.isGateClosed = false
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    package func open() async -> CallTURN? {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                if state.isGateClosed { state.waiting.append(continuation) }
                return state.isGateClosed
            }
            if !waits { continuation.resume() }
        }
        return state.withLock { state in
            guard !state.isFull else { return nil }
            state.opened += 1
            let id = CallTURNID(location: MediaLocation(loop: LoopIndex(rawValue: 0)), number: state.opened)
            state.open.append(id)
            func access(_ member: String) -> TURNAccess {
                let user = "\(name)-\(state.opened)-\(member)"
                return TURNAccess(urls: ["turn:\(name):7000?transport=udp"], username: user, password: "p-\(user)")
            }
            return CallTURN(id: id, first: access("first"), second: access("second"))
        }
    }

    package func close(_ id: CallTURNID, keepsAllocations: Bool) async {
        state.withLock { state in
            state.open.removeAll { $0 == id }
            if keepsAllocations { state.kept.append(id) }
        }
    }
}
