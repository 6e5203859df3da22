package import EventLoop
import Forwarding
package import MediaTypes

/// A loop of the node that carries no peers: it takes tracks from the media loops.
///
/// It is made before the media loops are linked, and is then one of their neighbours.
package struct GatewayPlace: Sendable {
    /// Unique among the loops of the node.
    package let location: MediaLocation
    /// Running, or about to be started.
    package let eventLoop: EventLoop

    package init(at location: MediaLocation, on eventLoop: EventLoop) {
        self.location = location
        self.eventLoop = eventLoop
    }
}

/// The rings between one gateway loop and the media loops: what its ``TrackExchange`` is made of.
package struct GatewayPort: Sendable {
    package let place: GatewayPlace
    /// The media loops by their locations.
    let loops: [MediaLocation: MediaLoop]
    let neighbours: [LoopNeighbour]

    /// The media loop at a location; `nil` where there is none.
    package func loop(at location: MediaLocation) -> MediaLoop? { loops[location] }
}
