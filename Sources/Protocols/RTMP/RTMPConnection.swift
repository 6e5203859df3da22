package import Base

/// The server's side of one RTMP connection that publishes a stream, as a state machine: bytes, answers and instants in, actions
/// out. It does no I/O and reads no clock.
///
/// It completes the handshake, accepts every well-formed `connect`, and asks its owner at `publish`, because encoders show the
/// reason of a refusal only then. From the acceptance on, sound and pictures come out, until the client ends its stream, the owner
/// refuses it, or nothing comes for ten seconds.
///
/// When the client closes the connection, the owner drops the machine: without an `ended` before, the stream is interrupted.
///
/// What it sends is at most three times what the client sent, and 5,000 bytes for the handshake and `connect`. So an owner that does
/// not read while its own queue is long has a bound on that queue.
package struct RTMPConnection: Sendable {
    /// An action of the owner. The owner performs actions in order.
    package enum Action: Hashable, Sendable {
        case send([UInt8])
        /// Answered by ``accept(at:)`` or ``refuse(_:at:)``, later or at once. It comes at most once.
        case publish(RTMPPublishRequest)
        /// The stream's metadata, as often as the publisher sends it. GStreamer does with each change of a bit rate.
        case metadata(RTMPMetadata)
        case media(RTMPMedia)
        /// The stream, or what would have become one, is over. It comes once; only `send` and `close` follow.
        case ended(End)
        /// Closes the connection. Nothing follows.
        case close
    }

    /// Why a connection ends.
    package enum End: Hashable, Sendable {
        /// The publisher ended its stream.
        case unpublished
        /// The owner, or a rule of this type, refused it.
        case refused(RTMPRefusal)
        /// The client violated the protocol or a limit, or was too slow.
        case failed(RTMPError)
    }

    /// The stream that is being published.
    struct Publication: Sendable {
        let request: RTMPPublishRequest
        /// Its message stream.
        let stream: UInt32
        var clock = RTMPClock()
        var lastReceived: Instant
    }

    enum Phase: Sendable {
        case handshake(RTMPHandshake, until: Instant)
        /// - Parameter client: `nil` before `connect`.
        case waiting(client: RTMPClientInfo?, until: Instant)
        /// - Parameters:
        ///   - stream: the message stream of the request.
        ///   - deferred: what the client sent behind the request, unread.
        case deciding(RTMPPublishRequest, stream: UInt32, deferred: [UInt8])
        case publishing(Publication)
        case closing(until: Instant)
        case ended
    }

    let settings: RTMPSettings
    var phase: Phase
    var reader = RTMPChunkReader()
    var writer = RTMPChunkWriter()
    private var acknowledgement = RTMPAcknowledgement()

    /// - Parameters:
    ///   - generator: for the 1,528 random bytes of the handshake, which are no secret.
    ///   - now: when the client connected.
    package init(settings: RTMPSettings, using generator: inout some RandomNumberGenerator, at now: Instant) {
        self.settings = settings
        phase = .handshake(RTMPHandshake(using: &generator), until: now + RTMPLimits.handshakeTimeout)
    }

    /// Whether the owner should stop reading, because the request to publish has no answer yet and much came behind it.
    package var isBlocked: Bool {
        guard case .deciding(_, _, let deferred) = phase else { return false }
        return deferred.count >= RTMPLimits.deferredBytesWanted
    }

    /// The request to publish, from ``Action/publish(_:)`` to the end of the stream.
    package var request: RTMPPublishRequest? {
        switch phase {
        case .deciding(let request, _, _): request
        case .publishing(let publication): publication.request
        case .handshake, .waiting, .closing, .ended: nil
        }
    }

    /// Whether nothing more comes out.
    package var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }
}

// MARK: - Bytes of the client

extension RTMPConnection {
    /// Takes the next bytes of the connection. While the connection closes they are ignored.
    package mutating func receive(_ bytes: RawSpan, at now: Instant) -> [Action] {
        var actions: [Action] = []
        acknowledgement.received += UInt64(bytes.byteCount)
        if case .publishing(var publication) = phase {
            publication.lastReceived = now
            phase = .publishing(publication)
        }
        read(bytes, at: now, &actions)
        return finish(actions)
    }

    /// Reads all messages, but none behind a request to publish.
    private mutating func read(_ bytes: RawSpan, at now: Instant, _ actions: inout [Action]) {
        do throws(RTMPError) {
            var offset = 0
            while try step(bytes, &offset, at: now, &actions) {}
        } catch {
            fail(error, &actions)
        }
    }

    /// - Returns: whether there may be more to read.
    private mutating func step(
        _ bytes: RawSpan,
        _ offset: inout Int,
        at now: Instant,
        _ actions: inout [Action]
    ) throws(RTMPError) -> Bool {
        switch phase {
        case .handshake(var handshake, let until):
            // A second copy would have the handshake copy its bytes.
            phase = .ended
            writer.writeHandshake(try handshake.receive(bytes, &offset))
            guard handshake.isComplete else {
                phase = .handshake(handshake, until: until)
                return false
            }
            phase = .waiting(client: nil, until: now + RTMPLimits.publishTimeout)
        case .deciding(let request, let stream, var deferred):
            phase = .ended
            let count = bytes.byteCount - offset
            guard deferred.count + count <= RTMPLimits.deferredBytesMax else { throw .tooMuchDeferred }
            deferred.append(contentsOf: bytes, from: offset, count: count)
            phase = .deciding(request, stream: stream, deferred: deferred)
            return false
        case .waiting, .publishing:
            guard let message = try reader.read(bytes, &offset) else { return false }
            try receive(message, at: now, &actions)
        case .closing, .ended: return false
        }
        return true
    }

    private mutating func receive(
        _ message: RTMPMessage,
        at now: Instant,
        _ actions: inout [Action]
    ) throws(RTMPError) {
        switch message.type {
        case .setChunkSize: try reader.setChunkSize(message)
        case .abort: try reader.abort(message)
        case .windowAcknowledgementSize: acknowledgement.setWindow(try message.number())
        case .userControl: try receiveUserControl(message)
        case .audio: try receiveMedia(.audio, message, &actions)
        case .video: try receiveMedia(.video, message, &actions)
        case .aggregate: try receiveAggregate(message, &actions)
        case .commandAMF0, .commandAMF3:
            let command = try Self.decode(message) { message throws(AMF0Error) in try RTMPCommand(message) }
            try receive(command, at: now, &actions)
        case .dataAMF0, .dataAMF3:
            guard case .publishing = phase else { return }
            let metadata = try Self.decode(message) { message throws(AMF0Error) in try RTMPMetadata(message) }
            if let metadata { actions.append(.metadata(metadata)) }
        // Shared objects and what nobody knows.
        case .acknowledgement, .setPeerBandwidth, nil: break
        }
    }

    private static func decode<Content>(
        _ message: RTMPMessage,
        _ read: (RTMPMessage) throws(AMF0Error) -> Content
    ) throws(RTMPError) -> Content {
        guard message.body.count <= RTMPLimits.commandBytesMax else {
            throw .messageTooLong(message.body.count, max: RTMPLimits.commandBytesMax)
        }
        do throws(AMF0Error) { return try read(message) } catch { throw .amf(error) }
    }

    private mutating func receiveUserControl(_ message: RTMPMessage) throws(RTMPError) {
        guard message.body.count >= 2 else { throw .shortControlMessage(type: message.rawType) }
        let event = unsafe message.body.span.bytes.bigEndianUInt16(at: 0)
        if RTMPUserControl(rawValue: event) == .pingRequest {
            writer.writeUserControl(.pingResponse, try message.number(at: 2))
        }
    }

    /// An empty message carries nothing, and is dropped.
    private mutating func receiveMedia(
        _ kind: RTMPMedia.Kind,
        _ message: RTMPMessage,
        _ actions: inout [Action]
    ) throws(RTMPError) {
        guard case .publishing(var publication) = phase else { throw .mediaBeforePublish }
        let time = publication.clock.time(of: message.timestamp)
        phase = .publishing(publication)
        guard !message.body.isEmpty else { return }
        actions.append(.media(RTMPMedia(kind, timestamp: time, body: message.body)))
    }

    private mutating func receiveAggregate(_ message: RTMPMessage, _ actions: inout [Action]) throws(RTMPError) {
        guard case .publishing = phase else { throw .mediaBeforePublish }
        for part in try RTMPAggregate.parts(of: message) {
            switch part.type {
            case .audio: try receiveMedia(.audio, part, &actions)
            case .video: try receiveMedia(.video, part, &actions)
            default: break
            }
        }
    }

    mutating func fail(_ error: RTMPError, _ actions: inout [Action]) {
        phase = .ended
        actions += [.ended(.failed(error)), .close]
    }

    /// Puts what is sent before the other actions, so that it goes out before a close.
    private mutating func finish(_ actions: [Action]) -> [Action] {
        switch phase {
        case .waiting, .deciding, .publishing:
            if let count = acknowledgement.take() { writer.writeControl(.acknowledgement, count) }
        case .handshake, .closing, .ended: break
        }
        let output = writer.take()
        return output.isEmpty ? actions : [.send(output)] + actions
    }
}

// MARK: - Answers of the owner

extension RTMPConnection {
    /// Accepts the request to publish. What came behind it is read now. Without a request, nothing happens.
    package mutating func accept(at now: Instant) -> [Action] {
        guard case .deciding(let request, let stream, let deferred) = phase else { return [] }
        phase = .publishing(Publication(request: request, stream: stream, lastReceived: now))
        reader.limits = .publisher
        writer.writeUserControl(.streamBegin, stream)
        writeStatus("NetStream.Publish.Start", "The stream is live.", stream: stream)
        var actions: [Action] = []
        read(unsafe deferred.span.bytes, at: now, &actions)
        return finish(actions)
    }

    /// Refuses the request to publish, or ends the stream: sends the reason, and closes the connection soon after. Before a request
    /// to publish, the connection closes at once. After its end, nothing happens.
    package mutating func refuse(_ refusal: RTMPRefusal, at now: Instant) -> [Action] {
        var actions: [Action] = []
        switch phase {
        case .deciding(_, let stream, _): refuse(refusal, stream: stream, at: now, &actions)
        case .publishing(let publication): refuse(refusal, stream: publication.stream, at: now, &actions)
        case .handshake, .waiting:
            phase = .ended
            actions = [.ended(.refused(refusal)), .close]
        case .closing, .ended: break
        }
        return finish(actions)
    }

    /// Whether the publisher follows ``requestReconnect(to:description:)``.
    package var canReconnect: Bool { request?.client.capabilities.contains(.reconnect) ?? false }

    /// Asks the publisher to connect again (Enhanced RTMP v2 "Reconnect Request"). It goes on here until it has.
    /// - Parameters:
    ///   - url: the `tcUrl` of the server to connect to; `nil` for this one.
    ///   - description: a sentence for the encoder's log.
    /// - Returns: nothing when the publisher does not follow such a request, or does not publish.
    package mutating func requestReconnect(to url: String?, description: String) -> [Action] {
        guard case .publishing = phase, canReconnect else { return [] }
        let members = url.map { [AMF0Member("tcUrl", .string($0))] } ?? []
        writeStatus("NetConnection.Connect.ReconnectRequest", description, stream: 0, members)
        return finish([])
    }
}

// MARK: - Timeouts

extension RTMPConnection {
    /// The time of the next ``handleTimeout(at:)``; `nil` while the owner decides, and after the end.
    package var nextDeadline: Instant? {
        switch phase {
        case .handshake(_, let until), .waiting(_, let until), .closing(let until): until
        case .publishing(let publication): publication.lastReceived + RTMPLimits.silenceTimeout
        case .deciding, .ended: nil
        }
    }

    /// Ends the connection when its deadline has passed.
    package mutating func handleTimeout(at now: Instant) -> [Action] {
        guard let deadline = nextDeadline, now >= deadline else { return [] }
        var actions: [Action] = []
        switch phase {
        case .handshake: fail(.handshakeTimeout, &actions)
        case .waiting: fail(.publishTimeout, &actions)
        case .publishing: fail(.silence, &actions)
        case .closing:
            phase = .ended
            actions = [.close]
        case .deciding, .ended: break
        }
        return actions
    }
}
