package import ChannelTypes
package import NIOCore
import Room

/// Writes to one WebSocket, from any thread.
///
/// A message counts as waiting from then on, although its handler learns of it when the channel's loop has time: on a busy machine
/// as much may wait for the loop as for the client.
package struct WebSocketWriter: Sendable {
    package let channel: any Channel
    private let budget: WaitingBudget
    private let id: WaitingBudget.ID

    /// - Parameters:
    ///   - network: The client's network.
    ///   - budget: Bounds the unsent bytes of all connections.
    package init(to channel: any Channel, of network: ClientNetwork, in budget: WaitingBudget) {
        self.channel = channel
        self.budget = budget
        id = budget.add(from: network) { channel.close(promise: nil) }
    }

    /// Writes a message, or starts the closing handshake. Does nothing when the channel is being closed.
    package func write(_ output: WebSocketOutput, promise: EventLoopPromise<Void>? = nil) {
        if case .text(let bytes) = output, !mayWait(WebSocketHandler.memory(of: bytes)) {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        channel.writeAndFlush(output, promise: promise)
    }

    // MARK: For the handler

    /// Adds bytes that wait for the client.
    /// - Returns: `false` when the channel is being closed: nothing more is to wait.
    func mayWait(_ bytes: Int) -> Bool { budget.change(id, by: bytes) }

    /// Removes bytes that wait no more.
    func removed(_ bytes: Int) { budget.change(id, by: -bytes) }

    /// Nothing waits any more, and nothing is counted from now on.
    func remove() { budget.remove(id) }
}
