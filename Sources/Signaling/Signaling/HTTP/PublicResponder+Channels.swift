import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import Room
import ServiceLifecycle
import Web

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PublicResponder {
    /// `GET /api/channels/{channel}`.
    func channel(_ name: ChannelName, isHead: Bool) async -> Response {
        let document = await directory.snapshot(of: name)?.document ?? ChannelSnapshot.emptyDocument(name)
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
        _ reader: Reader,
        _ request: Request,
        _ context: ClientContext
    ) async throws -> Response {
        guard request.method == .get else {
            try await directory.checkApp(reader.app, of: name)
            return Response(status: .ok, headers: Self.eventStreamHeaders)
        }
        let (listener, changes) = try await listen(to: name, app: reader.app, context)
        let stream = ChannelEventStream(
            directory: directory,
            channelName: name,
            listener: listener,
            expiry: reader.expiry,
            changes: changes,
            configuration: configuration,
            output: eventStreamOutput(context)
        )
        return response(request, stream)
    }

    private func listen(
        to name: ChannelName,
        app: String?,
        _ context: ClientContext
    ) async throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>) {
        do throws(RoomError) {
            return try await directory.listen(to: name, from: context.network, app: app)
        } catch {
            if error == .networkListenersFull { statistics.refused(.eventStreamShare) }
            if error == .listenersFull { statistics.refused(.eventStreams) }
            throw error
        }
    }
}

/// Writes the events of one listener. Its deinitialization ends the listener, also if nothing was written.
final class ChannelEventStream: EventStream {
    private let directory: ChannelDirectory
    private let channelName: ChannelName
    private let listener: ListenerID
    /// The end of the stream; `nil` without one.
    private let expiry: AccessExpiry?
    private let changes: AsyncStream<Void>
    private let configuration: SignalingConfiguration
    private let output: EventStreamOutput
    /// Signals a change or a heartbeat. Pending signals coalesce into one.
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init(
        directory: ChannelDirectory,
        channelName: ChannelName,
        listener: ListenerID,
        expiry: AccessExpiry?,
        changes: AsyncStream<Void>,
        configuration: SignalingConfiguration,
        output: EventStreamOutput
    ) {
        self.directory = directory
        self.channelName = channelName
        self.listener = listener
        self.expiry = expiry
        self.changes = changes
        self.configuration = configuration
        self.output = output
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    deinit {
        let (directory, listener) = (directory, listener)
        Task { await directory.stopListening(listener) }
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
        await directory.stopListening(listener)
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
            guard let snapshot = await directory.snapshot(of: channelName) else { return }
            guard snapshot.revision != revision else {
                try await output.write(.heartbeat, to: &writer)
                continue
            }
            revision = snapshot.revision
            var event = ByteBuffer(string: "id: \(snapshot.revision)\ndata: ")
            event.writeBytes(snapshot.document.bytes)
            event.writeString("\n\n")
            try await output.write(event, to: &writer)
            try await Task.sleep(for: configuration.eventInterval)
        }
    }
}
