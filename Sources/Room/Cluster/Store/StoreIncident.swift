import Synchronization

/// A fault of the store, by what an operator has to look at.
package enum StoreIncident: String, CaseIterable, Hashable, Sendable {
    /// It cannot be reached, or is not ready to answer.
    case away
    /// Its answers come too late.
    case slow
    /// It has no memory left.
    case full
    /// It takes no writes.
    case readOnly = "read_only"
    /// It refuses this node's requests, or what it answers is of no use.
    case refused
    /// It has forgotten everything.
    case emptied
    /// It has forgotten what happened last.
    case olderCopy = "older_copy"

    /// What made the store fail.
    init(_ error: StoreError) {
        switch error {
        case .timedOut: self = .slow
        case .down("OOM"): self = .full
        case .down("READONLY"), .down("MISCONF"), .down("NOREPLICAS"): self = .readOnly
        case .unavailable, .busy, .down: self = .away
        case .refused, .malformed: self = .refused
        }
    }
}

/// How often each ``StoreIncident`` began, since the start.
package final class StoreIncidents: Sendable {
    private final class Count: Sendable {
        let value = Atomic<UInt64>(0)
    }
    private let counts = Dictionary(uniqueKeysWithValues: StoreIncident.allCases.map { ($0, Count()) })

    package init() {}

    func note(_ incident: StoreIncident) { counts[incident]?.value.wrappingAdd(1, ordering: .relaxed) }

    package func count(of incident: StoreIncident) -> UInt64 {
        counts[incident]?.value.load(ordering: .relaxed) ?? 0
    }
}
