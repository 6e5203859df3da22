internal import Wire

/// Why an offer, answer or fragment cannot be taken.
public enum NegotiationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text breaks SDP's or the protocol's rules. Trying again with the same text is pointless.
    case malformed(String)
    /// The text is legal, and asks for something that the server does not do.
    case unsupported(String)

    /// What was wrong and what to do, for the developer of the application.
    public var sentence: String {
        switch self {
        case .malformed(let sentence), .unsupported(let sentence): sentence
        }
    }
    public var description: String { sentence }

    init(_ error: SDPParseError) { self = .malformed(error.sentence) }
}
