import Forwarding
import Media
import Room
import Synchronization
import Wire

/// A media loop as rooms see it.
struct LoopPlane: MediaPlane {
    let loops: MediaLoops
    /// The loop's place among them.
    let home: Int
    let mediaTransport: MediaTransport
    private var loop: MediaLoop { loops.loops[home] }

    init(_ loops: MediaLoops, home: Int, transport: MediaTransport) {
        self.loops = loops
        self.home = home
        mediaTransport = transport
    }

    func transport() async -> MediaTransport { mediaTransport }
    func addPeer(_ parameters: PeerParameters) async throws { try await loop.addPeer(parameters) }
    func removePeer(_ peer: PeerID) async { await loop.removePeer(peer) }
    func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws {
        try await loop.restartICE(peer, local: local, remote: remote)
    }
    func changeSlots(of peer: PeerID, add: [SendTrackParameters], remove: [MID]) async throws {
        try await loop.changeSlots(of: peer, add: add, remove: remove)
    }
    func connect(slot: TrackID, to source: PlacedTrack?, layer: LayerChoice) async throws {
        try await loops.connect(slot: slot, on: home, to: source?.track, of: source?.home ?? home, layer: layer)
    }
    func requestKeyFrame(of peer: PeerID) async { await loop.requestKeyFrame(of: peer) }
    func statistics(of peer: PeerID) async -> PeerStatistics? { await loop.statistics(of: peer) }
    func load() async -> LoopLoad { await loop.load() }
}

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
