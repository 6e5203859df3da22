import Synchronization
package import Wire

/// Which of the proxy's UDP ports stands for which media address of the server.
///
/// Candidates in the server's descriptions take ports as they appear, on the threads of HTTP. The media proxy looks them up
/// for each new client, on its loop's thread.
package final class MediaPorts: Sendable {
    private struct State: Sendable {
        var ports: [UInt16] = []
        /// The server's addresses, in the order of `ports`.
        var targets: [TransportAddress] = []
    }
    private let state = Mutex(State())

    package init() {}

    /// Sets the proxy's open ports.
    package func open(_ ports: [UInt16]) { state.withLock { $0.ports = ports } }

    /// The port that stands for `target`, the next free one at first; `nil` when all ports are taken.
    package func port(for target: TransportAddress) -> UInt16? {
        state.withLock { state in
            if let index = state.targets.firstIndex(of: target) { return state.ports[index] }
            guard state.targets.count < state.ports.count else { return nil }
            state.targets.append(target)
            return state.ports[state.targets.count - 1]
        }
    }

    /// The server's address behind the port at `index`; `nil` when it stands for none.
    package func target(ofPortAt index: Int) -> TransportAddress? {
        state.withLock { index < $0.targets.count ? $0.targets[index] : nil }
    }
}
