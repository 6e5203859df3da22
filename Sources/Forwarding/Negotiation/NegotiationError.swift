internal import Wire

/// Why an offer, answer or trickle fragment is refused.
public enum NegotiationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text violates SDP or the protocol. A retry with the same text fails again.
    case malformed(String)
    /// The text is legal, but asks for something that the server does not support.
    case unsupported(String)

    /// What is wrong and what to do, for the application's developer.
    public var message: String {
        switch self {
        case .malformed(let message), .unsupported(let message): message
        }
    }
    public var description: String { message }

    init(_ error: SDPParseError) { self = .malformed(error.message) }
}
