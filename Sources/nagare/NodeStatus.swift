import Base
import Synchronization

/// Which listeners are up, for the node's state and the line that announces readiness.
final class NodeStatus: Sendable {
    /// The number of listeners that do not accept yet.
    private let awaited: Atomic<Int>
    /// 0 before the public listener accepts.
    private let pagePort = Atomic<Int>(0)
    private let readySince = Replaceable<ContinuousClock.Instant?>(nil)

    init(listeners: Int) { awaited = Atomic(listeners) }

    /// Records that a listener accepts. Returns the page's port when all do, once.
    func listening(pagePort port: Int? = nil) -> Int? {
        if let port { pagePort.store(port, ordering: .relaxed) }
        guard awaited.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return nil }
        readySince.current = .now
        return pagePort.load(ordering: .relaxed)
    }

    /// Whether all listeners accept.
    var hasStarted: Bool { readySince.current != nil }

    var uptimeSeconds: Double { readySince.current.map { $0.duration(to: .now) / .seconds(1) } ?? 0 }
}
