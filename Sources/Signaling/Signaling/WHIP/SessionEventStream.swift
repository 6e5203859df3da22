import ChannelTypes
import HTTPTypes
import Hummingbird
import NIOCore
import Room
import ServiceLifecycle
import Web

extension PublicResponder {
    /// `GET /sessions/{id}/events`: server-sent events about the session itself. A session has one stream: a new one ends
    /// the one before.
    func sessionEvents(_ request: Request, _ id: ResourceID?, _ context: ClientContext) async throws -> Response {
        let (id, _) = try await authorizedSession(request, id, from: context.network)
        guard request.method == .get else { return Response(status: .ok, headers: Self.eventStreamHeaders) }
        guard let events = await directory.events(of: id) else { throw HTTPFailure.sessionUnknown }
        let stream = SessionEventStream(
            directory: directory,
            events: events,
            heartbeatInterval: configuration.heartbeatInterval,
            output: eventStreamOutput(context)
        )
        return response(request, stream)
    }
}

/// Writes the events of one WHIP or WHEP session. Its deinitialization ends the reading, also if nothing was written.
actor SessionEventStream: EventStream {
    /// The names of the events, for the `Link` of a session.
    static let names = "token.expiring,interrupted,resumed,track.changed,network.quality,ended"

    private let directory: ChannelDirectory
    private let events: ParticipantEvents
    private let heartbeatInterval: Duration
    private let output: EventStreamOutput
    private var session = SessionEvents()
    private var timer = DeadlineTimer()
    /// An event's text, or `nil` for a heartbeat.
    private let texts: AsyncStream<String?>
    private let text: AsyncStream<String?>.Continuation
    /// A client that reads none of so many has lost interest.
    private static let textsMax = 64

    init(directory: ChannelDirectory, events: ParticipantEvents, heartbeatInterval: Duration, output: EventStreamOutput)
    {
        self.directory = directory
        self.events = events
        self.heartbeatInterval = heartbeatInterval
        self.output = output
        (texts, text) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.textsMax))
    }

    deinit {
        let (directory, events) = (directory, events)
        Task { await directory.stopReading(events) }
    }

    /// Ends the stream after the current write.
    nonisolated func finish() { text.finish() }

    /// Returns when the session, the client or the server ends the stream. Throws when a write fails.
    @concurrent nonisolated func write(to writer: inout any ResponseBodyWriter) async throws {
        let (text, interval) = (text, heartbeatInterval)
        // The client knows from it that no later event is missed.
        text.yield(nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.read() }
            group.addTask {
                while !Task.isCancelled {
                    try await Task.sleep(for: interval)
                    text.yield(nil)
                }
            }
            try await withGracefulShutdownHandler {
                for await text in texts {
                    try await output.write(text.map { ByteBuffer(string: $0) } ?? .heartbeat, to: &writer)
                }
            } onGracefulShutdown: {
                text.finish()
            }
            group.cancelAll()
        }
        await directory.stopReading(events)
    }

    /// Returns when the session ends, or its task is cancelled.
    private func read() async {
        for await event in events { send(session.received(event, at: DeadlineTimer.now)) }
        timer.cancel()
        text.finish()
    }

    private func timeout() {
        timer.fired()
        send(session.handleTimeout(at: DeadlineTimer.now))
    }

    private func send(_ made: String?) {
        timer.set(session.nextDeadline, on: output.eventLoop) { [weak self] in
            _ = Task { await self?.timeout() }
        }
        if let made { text.yield(made) }
    }
}
