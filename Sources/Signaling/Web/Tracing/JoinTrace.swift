package import Base
package import ChannelTypes
import MediaTypes
import Room
import Synchronization
import Telemetry

/// One join as a trace: from the request to the first frame, or to where it stopped.
///
/// All its spans are handed over when it ends, so that a join costs little while it is under way.
package final class JoinTrace: Sendable {
    private struct State {
        var attributes: [String: Span.Value]
        /// When authorization began and was decided.
        var authorization: (start: Instant, end: Instant?)?
        var respondedAt: Instant?
        var httpStatus: Int?
        var setup = ConnectionSetup()
        var isReserved = false
        var isConnected = false
        var hasEnded = false
    }

    /// What the request is called in the trace (OpenTelemetry's conventions for HTTP spans).
    package struct Request {
        /// `POST`, or `nil` for a message over a WebSocket.
        var method: String?
        /// With placeholders instead of names, and without secrets: `/whip/{channel}`.
        var route: String

        package init(method: String? = nil, route: String) {
            self.method = method
            self.route = route
        }
    }

    private let joins: JoinTracer
    private let parent: TraceContext.SpanID?
    private let request: Request
    /// Of the span `join`.
    let context: TraceContext
    /// Of the span of the authorization; the operator's server gets it as the parent of its own spans.
    let authorizationContext: TraceContext
    /// When the request arrived, on the clock of the rooms, and in nanoseconds since 1970 UTC.
    let startedAt: Instant
    private let startedUnix: Int64
    private let state: Mutex<State>

    init(
        _ context: TraceContext,
        of joins: JoinTracer,
        parent: TraceContext.SpanID?,
        request: Request,
        attributes: [String: Span.Value],
        at now: RoomTime
    ) {
        self.joins = joins
        self.context = context
        self.parent = parent
        self.request = request
        authorizationContext = joins.tracer.child(of: context)
        startedAt = now.instant
        startedUnix = now.unixNanoseconds
        state = Mutex(State(attributes: attributes))
    }

    // MARK: What happens

    /// Runs the authorization. Requests to the operator's server carry its span.
    /// - Parameter start: as in ``JoinRequest/receivedAt``.
    package func authorizing<Decision: Sendable>(
        since start: Instant,
        _ body: () async -> Decision
    ) async -> Decision {
        state.withLock { $0.authorization = (start, nil) }
        let decision = await TraceContext.$current.withValue(authorizationContext, operation: body)
        let end = joins.clock.now().instant
        state.withLock { $0.authorization = (start, end) }
        return decision
    }

    /// The client has its place. From now on the reports of the rooms tell how it goes on.
    package func reserved(_ participant: ParticipantID, session: ChannelSessionID) {
        state.withLock { state in
            state.isReserved = true
            state.attributes["nagare.connection.id"] = .string(participant.value)
            state.attributes["session.id"] = .string(session.value)
        }
        joins.add(self, of: participant)
    }

    /// The request is answered.
    /// - Parameter status: of HTTP; `nil` over a WebSocket.
    package func responded(status: Int? = nil) {
        let now = joins.clock.now().instant
        state.withLock { state in
            guard state.respondedAt == nil else { return }
            state.respondedAt = now
            state.httpStatus = status
        }
    }

    /// The set-up has come further.
    /// - Returns: whether all that is expected of a member of this role has come.
    func advanced(_ connection: Connection) -> Bool {
        state.withLock { state in
            state.isConnected = state.isConnected || connection.isConnected
            state.setup = connection.setup
            guard state.isConnected else { return false }
            let (role, media) = (connection.member.role, connection.setup.media)
            return (!role.publishes || media.firstFrameReceived != nil)
                && (!role.watches || media.firstFrameSent != nil)
        }
    }

    /// The join did not succeed. Ignored for a member that is connected.
    /// - Parameters:
    ///   - reason: a sentence or word, without secrets.
    ///   - kind: the class of the failure.
    package func failed(_ reason: String, kind: String) {
        guard !state.withLock(\.isConnected) else { return }
        end(error: (reason, kind))
    }

    /// The request is over without a place in the channel, and without a failure.
    package func endUnlessReserved() {
        guard !state.withLock(\.isReserved) else { return }
        end()
    }

    /// Hands the spans over. Only the first end counts.
    func end(error: (reason: String, kind: String)? = nil) {
        let now = joins.clock.now().instant
        let final = state.withLock { state -> State? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return state
        }
        guard let final else { return }
        joins.tracer.finish(spans(final, error, at: now))
    }

    // MARK: Spans

    private func unix(_ instant: Instant) -> Int64 { startedUnix &+ (instant - startedAt).nanoseconds }

    private func spans(_ state: State, _ error: (reason: String, kind: String)?, at now: Instant) -> [Span] {
        let base = state.authorization?.start ?? startedAt
        var children: [Span] = []
        if let authorization = state.authorization {
            children.append(
                Span(
                    "authorization",
                    context: authorizationContext,
                    parent: context.span,
                    kind: .client,
                    start: unix(authorization.start),
                    end: unix(authorization.end ?? now)
                )
            )
        }
        for step in state.setup.steps where step.phase != .authorization {
            children.append(child(step.phase.rawValue, from: base + step.start, to: base + step.end))
        }
        if error != nil || state.respondedAt != nil {
            children.append(requestSpan(state, error, until: state.respondedAt ?? now))
        }
        var attributes = state.attributes
        if let error { attributes["error.type"] = .string(error.kind) }
        let last = children.map(\.end).max() ?? unix(now)
        return [
            Span(
                "join",
                context: context,
                parent: parent,
                kind: .server,
                start: startedUnix,
                end: error == nil ? last : max(last, unix(now)),
                attributes: attributes,
                error: error?.reason
            )
        ] + children
    }

    private func child(_ name: String, from start: Instant, to end: Instant) -> Span {
        Span(
            name,
            context: joins.tracer.child(of: context),
            parent: context.span,
            start: unix(start),
            end: unix(end)
        )
    }

    private func requestSpan(_ state: State, _ error: (reason: String, kind: String)?, until end: Instant) -> Span {
        var attributes: [String: Span.Value] = ["http.route": .string(request.route)]
        if let method = request.method { attributes["http.request.method"] = .string(method) }
        if let status = state.httpStatus { attributes["http.response.status_code"] = .integer(Int64(status)) }
        return Span(
            request.method.map { "\($0) \(request.route)" } ?? "connect",
            context: joins.tracer.child(of: context),
            parent: context.span,
            start: startedUnix,
            end: unix(end),
            attributes: attributes,
            error: state.respondedAt == nil || (state.httpStatus ?? 0) >= 400 ? error?.reason : nil
        )
    }
}
