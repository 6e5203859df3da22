import MediaTypes
import Synchronization

/// Carries peers' events from the media loops to the rooms, which are made after the loops.
final class PeerEventRelay: Sendable {
    /// A struct, because a closure that is read out of a generic `Mutex` is converted at each read, and Swift 6.3 leaks
    /// the 64 bytes of the conversion.
    private struct Handler {
        let handle: @Sendable (PeerID, PeerEvent) -> Void
    }
    private let handler = Mutex<Handler?>(nil)

    /// Where events go from now on. There are none before: peers come from the rooms.
    func connect(to handler: @escaping @Sendable (PeerID, PeerEvent) -> Void) {
        self.handler.withLock { $0 = Handler(handle: handler) }
    }

    func carry(_ events: [(PeerID, PeerEvent)]) {
        guard let handler = handler.withLock({ $0 }) else { return }
        for (peer, event) in events { handler.handle(peer, event) }
    }
}
