package import ChannelTypes
package import Room

/// Takes what other nodes say of rooms of the 1:1 relay. It is called on one thread in the order of what happened, and must not
/// block.
package struct CallObserver: Sendable {
    /// Takes a message.
    let received: @Sendable (_ message: [UInt8], _ from: NodeID) -> CallMessageReception
    /// The link to a node is lost. What was sent over it may not have arrived.
    let lost: @Sendable (NodeID) -> Void

    package init(
        received: @escaping @Sendable (_ message: [UInt8], _ from: NodeID) -> CallMessageReception,
        lost: @escaping @Sendable (NodeID) -> Void
    ) {
        self.received = received
        self.lost = lost
    }
}
