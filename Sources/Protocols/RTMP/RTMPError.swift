import Base

/// A reason for which a connection cannot go on. Each describes itself with a sentence for the log.
///
/// No sentence has text of the client, which may be a credential.
package enum RTMPError: Error, Hashable, Sendable {
    /// The first byte of the connection is not 3 (RTMP 1.0 §5.2.2).
    case unknownVersion(UInt8)
    /// A chunk's header refers to an earlier one that its chunk stream never had (§5.3.1.2).
    case missingHeader(chunkStream: Int)
    /// A chunk begins a message inside an incomplete one of the same chunk stream.
    case brokenMessage(chunkStream: Int)
    /// The client uses more than ``RTMPLimits/chunkStreamsMax`` chunk streams.
    case tooManyChunkStreams
    /// A chunk size of 0, or above ``RTMPLimits/chunkBytesMax``.
    case chunkSize(UInt32)
    /// A message that is longer than its limit, both in bytes.
    case messageTooLong(Int, max: Int)
    /// Incomplete messages exceed their limit in bytes.
    case tooMuchIncomplete(max: Int)
    /// The client sent more than ``RTMPLimits/deferredBytesMax`` before its request to publish was answered.
    case tooMuchDeferred
    /// A protocol control message or user control message is too short (§5.4, §6.2).
    case shortControlMessage(type: UInt8)
    /// A command or metadata is not AMF0.
    case amf(AMF0Error)
    /// A command that must have a string argument has none.
    case missingArgument(RTMPCommandName)
    /// A command comes before `connect`.
    case notConnected
    /// The client sent a second `connect`.
    case connectedTwice
    /// Sound or pictures come before the request to publish was accepted.
    case mediaBeforePublish
    /// The lengths within an aggregate message contradict its own (§7.1.6), or it has more than 512 messages.
    case brokenAggregate
    /// The handshake took longer than ``RTMPLimits/handshakeTimeout``.
    case handshakeTimeout
    /// No request to publish came within ``RTMPLimits/publishTimeout`` of the handshake.
    case publishTimeout
    /// The publisher sent nothing for ``RTMPLimits/silenceTimeout``.
    case silence
}

extension RTMPError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownVersion(let version): Self.sentence(version: version)
        case .missingHeader(let stream): "Chunk stream \(stream) refers to a message header that it never had."
        case .brokenMessage(let stream): "Chunk stream \(stream) begins a message before the last one is complete."
        case .tooManyChunkStreams: "The client uses more than \(RTMPLimits.chunkStreamsMax) chunk streams."
        case .chunkSize(let size):
            "The client sets a chunk size of \(size); it must be between 1 and \(RTMPLimits.chunkBytesMax) bytes."
        case .messageTooLong(let length, let max): "A message has \(length) bytes; \(max) are allowed."
        case .tooMuchIncomplete(let max): "Incomplete messages have more than \(max) bytes."
        case .tooMuchDeferred:
            "The client sent more than \(RTMPLimits.deferredBytesMax) bytes before its request to publish was answered."
        case .shortControlMessage(let type): "A control message of type \(type) is too short."
        case .amf(let error): error.description
        case .missingArgument(let name): "The command \(name.rawValue) lacks an argument."
        case .notConnected: "The client sent another command before connect."
        case .connectedTwice: "The client sent a second connect."
        case .mediaBeforePublish: "The client sent sound or pictures before publish was accepted."
        case .brokenAggregate:
            "An aggregate message contradicts its length, or has more than \(RTMPAggregate.partsMax) messages."
        case .handshakeTimeout:
            "The handshake was not complete in \(RTMPLimits.handshakeTimeout.milliseconds / 1_000) s."
        case .publishTimeout: "The client did not publish within \(RTMPLimits.publishTimeout.milliseconds / 1_000) s."
        case .silence: "The publisher sent nothing for \(RTMPLimits.silenceTimeout.milliseconds / 1_000) s."
        }
    }

    /// What the first byte tells of a client that does not speak plain RTMP.
    private static func sentence(version: UInt8) -> String {
        switch version {
        case 6, 8, 9: "The client asks for encrypted RTMP (RTMPE), which is not supported; use rtmps."
        case 0x16: "The client speaks TLS on a port for plain RTMP."
        case 0x41...0x5A: "The client speaks HTTP, not RTMP."
        default: "The client asks for version \(version) of RTMP; only 3 is supported."
        }
    }
}
