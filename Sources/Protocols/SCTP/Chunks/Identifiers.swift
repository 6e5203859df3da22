/// One of the 65,536 streams of a direction (RFC 9260 §1.3). A data channel has the same number in both directions.
public struct StreamID: RawRepresentable, Hashable, Comparable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The payload protocol identifier of a message (RFC 9260 §3.3.1): what its bytes are.
public struct PayloadProtocol: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    // The values that data channels use (RFC 8831 §8).
    /// A message of the Data Channel Establishment Protocol.
    public static let control = Self(rawValue: 50)
    public static let string = Self(rawValue: 51)
    public static let binary = Self(rawValue: 53)
    /// An empty string, sent as one zero byte, because a DATA chunk is never empty.
    public static let emptyString = Self(rawValue: 56)
    /// An empty binary message, sent as one zero byte.
    public static let emptyBinary = Self(rawValue: 57)
}

/// The type of a chunk (RFC 9260 §3.2).
struct ChunkType: RawRepresentable, Hashable, Sendable {
    let rawValue: UInt8

    static let data = Self(rawValue: 0)
    static let initiation = Self(rawValue: 1)
    static let initiationAck = Self(rawValue: 2)
    static let sack = Self(rawValue: 3)
    static let heartbeat = Self(rawValue: 4)
    static let heartbeatAck = Self(rawValue: 5)
    static let abort = Self(rawValue: 6)
    static let shutdown = Self(rawValue: 7)
    static let shutdownAck = Self(rawValue: 8)
    static let error = Self(rawValue: 9)
    static let cookieEcho = Self(rawValue: 10)
    static let cookieAck = Self(rawValue: 11)
    static let shutdownComplete = Self(rawValue: 14)
    /// I-DATA (RFC 8260 §2.1).
    static let interleavedData = Self(rawValue: 64)
    /// RE-CONFIG (RFC 6525 §3.1).
    static let reconfiguration = Self(rawValue: 130)
    /// PAD (RFC 4820 §3).
    static let padding = Self(rawValue: 132)
    /// FORWARD-TSN (RFC 3758 §3.2).
    static let forwardTSN = Self(rawValue: 192)
    /// I-FORWARD-TSN (RFC 8260 §2.3.1).
    static let interleavedForwardTSN = Self(rawValue: 194)

    /// Whether the rest of a packet is ignored after a chunk of this unknown type.
    var stopsWhenUnknown: Bool { rawValue & 0x80 == 0 }
    /// Whether a chunk of this unknown type is reported to its sender.
    var isReportedWhenUnknown: Bool { rawValue & 0x40 != 0 }
}

/// The flags of DATA and I-DATA (RFC 9260 §3.3.1, RFC 8260 §2.1).
struct DataFlags: OptionSet, Hashable, Sendable {
    let rawValue: UInt8
    static let end = Self(rawValue: 1)
    static let beginning = Self(rawValue: 2)
    static let unordered = Self(rawValue: 4)
    /// The receiver should acknowledge at once (RFC 7053).
    static let immediate = Self(rawValue: 8)
}

/// The T flag of ABORT and SHUTDOWN COMPLETE: the packet has the tag of the receiver's own packets.
let reflectedTagFlag: UInt8 = 1

/// Error causes of ABORT and ERROR (RFC 9260 §3.3.10).
enum ErrorCause: UInt16 {
    case invalidStream = 1
    case missingParameter = 2
    case staleCookie = 3
    case unknownChunk = 6
    case invalidParameter = 7
    case noUserData = 9
    case cookieWhileShuttingDown = 10
    case restart = 11
    case userInitiated = 12
    case protocolViolation = 13
}
