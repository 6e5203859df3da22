package import ChannelTypes
import HTTPTypes
package import Hummingbird
import NIOCore
import Room

/// Writes server-sent events to one client, within the limits on unsent bytes and on the time of a write.
package final class EventStreamOutput: Sendable {
    private let connection: any Channel
    private let timeout: TimeAmount
    private let outbound: WaitingBudget
    private let id: WaitingBudget.ID

    package init(_ connection: any Channel, network: ClientNetwork, outbound: WaitingBudget, timeout: Duration) {
        self.connection = connection
        self.timeout = TimeAmount(timeout)
        self.outbound = outbound
        id = outbound.add(from: network) { connection.close(promise: nil) }
    }

    deinit { outbound.remove(id) }

    /// Where the connection's timers run.
    package var eventLoop: any EventLoop { connection.eventLoop }

    /// Writes, and closes the connection when the client does not read within the write timeout.
    @concurrent package func write(_ bytes: ByteBuffer, to writer: inout any ResponseBodyWriter) async throws {
        let connection = connection
        let watchdog = connection.eventLoop.scheduleTask(in: timeout) { connection.close(promise: nil) }
        let count = bytes.storageCapacity
        defer { watchdog.cancel() }
        guard outbound.change(id, by: count) else { throw ChannelError.ioOnClosedChannel }
        defer { outbound.change(id, by: -count) }
        try await writer.write(bytes)
    }
}

/// A stream of server-sent events.
package protocol EventStream: Sendable {
    /// Returns when the client or the server ends the stream. Throws when a write fails.
    @concurrent func write(to writer: inout any ResponseBodyWriter) async throws

    /// Ends the stream after the current write.
    func finish()
}

extension ByteBuffer {
    /// A comment of a stream of server-sent events, which keeps the connection open.
    package static var heartbeat: Self { ByteBuffer(string: ": still here\n\n") }
}
