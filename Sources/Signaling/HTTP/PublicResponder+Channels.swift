import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import Room
import ServiceLifecycle

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PublicResponder {
    /// `GET /api/channels/{channel}`.
    func channel(_ name: ChannelName, isHead: Bool) async -> Response {
        let document = await rooms.snapshot(of: name)?.document ?? ChannelSnapshot.emptyDocument(name)
        let response = Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: document.bytes))
        )
        return isHead ? response.createHeadResponse() : response
    }

    /// `GET /api/channels/{channel}/events`: server-sent events, each with the whole document after a change.
    func events(
        of name: ChannelName,
        until expiry: AccessExpiry?,
        _ request: Request,
        _ context: PublicContext
    ) async throws -> Response {
        let headers: HTTPFields = [
            .contentType: "text/event-stream", .cacheControl: "no-store", .xAccelBuffering: "no",
        ]
        guard request.method == .get else { return Response(status: .ok, headers: headers) }
        let (listener, changes) = try await listen(to: name, context)
        let stream = ChannelEventStream(
            rooms: rooms,
            channelName: name,
            listener: listener,
            expiry: expiry,
            changes: changes,
            configuration: configuration,
            connection: context.channel,
            network: context.network,
            outbound: outbound
        )
        let body = request.body
        return Response(
            status: .ok,
            headers: headers,
            body: ResponseBody { writer in
                try await body.consumeWithInboundCloseHandler { _ in
                    try await stream.write(to: &writer)
                } onInboundClosed: {
                    stream.finish()
                }
                let last = writer
                try await last.finish(nil)
            }
        )
    }

    private func listen(
        to name: ChannelName,
        _ context: PublicContext
    ) async throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>) {
        do throws(RoomError) {
            return try await rooms.listen(to: name, from: context.network)
        } catch {
            if error == .networkListenersFull { statistics.refused(.eventStreamShare) }
            if error == .listenersFull { statistics.refused(.eventStreams) }
            throw error
        }
    }
}

extension HTTPField.Name {
    static let xForwardedFor = Self("X-Forwarded-For")!

    /// Turns off response buffering in nginx.
    static let xAccelBuffering = Self("X-Accel-Buffering")!
}

/// Writes the events of one listener. Its deinitialization ends the listener, also if nothing was written.
final class ChannelEventStream: Sendable {
    private let rooms: Rooms
    private let channelName: ChannelName
    private let listener: ListenerID
    /// The end of the stream; `nil` without one.
    private let expiry: AccessExpiry?
    private let changes: AsyncStream<Void>
    private let configuration: SignalingConfiguration
    private let connection: any Channel
    private let outbound: OutboundBudget
    private let outboundID: OutboundBudget.ID
    /// Signals a change or a heartbeat. Pending signals coalesce into one.
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init(
        rooms: Rooms,
        channelName: ChannelName,
        listener: ListenerID,
        expiry: AccessExpiry?,
        changes: AsyncStream<Void>,
        configuration: SignalingConfiguration,
        connection: any Channel,
        network: ClientNetwork,
        outbound: OutboundBudget
    ) {
        self.rooms = rooms
        self.channelName = channelName
        self.listener = listener
        self.expiry = expiry
        self.changes = changes
        self.configuration = configuration
        self.connection = connection
        self.outbound = outbound
        outboundID = outbound.add(from: network) { connection.close(promise: nil) }
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    deinit {
        outbound.remove(outboundID)
        let (rooms, listener) = (rooms, listener)
        Task { await rooms.stopListening(listener) }
    }

    /// Ends the stream after the current write.
    func finish() { signal.finish() }

    /// Returns when the client or the server ends the stream. Throws when a write fails.
    @concurrent func write(to writer: inout any ResponseBodyWriter) async throws {
        let (changes, signal, expiry) = (changes, signal, expiry)
        let interval = configuration.heartbeatInterval
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await _ in changes { signal.yield() }
                signal.finish()
            }
            group.addTask {
                while !Task.isCancelled {
                    try await Task.sleep(for: interval)
                    signal.yield()
                }
            }
            if let expiry {
                group.addTask {
                    try await Self.wait(for: expiry)
                    signal.finish()
                }
            }
            try await withGracefulShutdownHandler {
                try await writeEvents(to: &writer)
            } onGracefulShutdown: {
                signal.finish()
            }
            group.cancelAll()
        }
        await rooms.stopListening(listener)
    }

    @concurrent private static func wait(for expiry: AccessExpiry) async throws {
        // The real-time clock may be set meanwhile.
        while case let seconds = Double(expiry.unixSeconds) - Date().timeIntervalSince1970, seconds > 0 {
            try await Task.sleep(for: .seconds(min(seconds, 3_600)))
        }
    }

    @concurrent private func writeEvents(to writer: inout any ResponseBodyWriter) async throws {
        var revision: UInt64?
        for await _ in signals {
            guard let snapshot = await rooms.snapshot(of: channelName) else { return }
            guard snapshot.revision != revision else {
                try await write(ByteBuffer(string: ": still here\n\n"), to: &writer)
                continue
            }
            revision = snapshot.revision
            var event = ByteBuffer(string: "id: \(snapshot.revision)\ndata: ")
            event.writeBytes(snapshot.document.bytes)
            event.writeString("\n\n")
            try await write(event, to: &writer)
            try await Task.sleep(for: configuration.eventInterval)
        }
    }

    /// Writes, and closes the connection when the client does not read within the write timeout.
    @concurrent private func write(_ bytes: ByteBuffer, to writer: inout any ResponseBodyWriter) async throws {
        let connection = connection
        let timeout = TimeAmount(configuration.limits.writeTimeout)
        let watchdog = connection.eventLoop.scheduleTask(in: timeout) { connection.close(promise: nil) }
        let count = bytes.readableBytes
        outbound.change(outboundID, by: count)
        defer {
            watchdog.cancel()
            outbound.change(outboundID, by: -count)
        }
        try await writer.write(bytes)
    }
}
