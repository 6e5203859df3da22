package import MediaTypes
import Synchronization

/// The TURN relays of calls whose media goes from client to client.
package protocol CallTURNServers: Sendable {
    /// A relay for a new call; `nil` when there is none to be had.
    func open() async -> CallTURN?

    /// Ends a relay.
    /// - Parameter keepsAllocations: whether those that the clients have stay for as long as they refresh them.
    func close(_ id: CallTURNID, keepsAllocations: Bool) async
}

/// The relays of a node: those of its media loops in turn.
package final class MediaPlaneTURNServers: CallTURNServers {
    private let planes: [any MediaPlane]
    /// The relays that were asked for so far.
    private let count = Atomic(0)

    package init(_ planes: [any MediaPlane]) { self.planes = planes }

    package func open() async -> CallTURN? {
        let first = count.wrappingAdd(1, ordering: .relaxed).oldValue
        // A loop may have as many as it may.
        for offset in planes.indices {
            let index = Int(UInt(bitPattern: first &+ offset) % UInt(planes.count))
            if let relay = await planes[index].openCallRelay() { return relay }
        }
        return nil
    }

    package func close(_ id: CallTURNID, keepsAllocations: Bool) async {
        await planes.first { $0.location == id.location }?.closeCallRelay(id, keepsAllocations: keepsAllocations)
    }
}
