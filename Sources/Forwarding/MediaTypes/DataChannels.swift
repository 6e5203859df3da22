/// The identifier of a data channel at its peer. It is never used again there.
public struct DataChannelID: RawRepresentable, Hashable, Sendable, Codable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What the description of a peer says about its data channels (RFC 8841).
public struct DataTransportParameters: Hashable, Sendable {
    /// The SCTP port of both ends.
    public static let portDefault: UInt16 = 5_000
    /// The longest message in bytes that the server sends and accepts.
    public static let messageBytesMax = 262_144

    public var port: UInt16
    /// The longest message in bytes that the peer accepts, at most ``messageBytesMax``.
    public var messageBytesMax: Int

    public init(port: UInt16 = Self.portDefault, messageBytesMax: Int = Self.messageBytesMax) {
        self.port = port
        self.messageBytesMax = min(messageBytesMax, Self.messageBytesMax)
    }
}

/// The name of a data channel, and how its messages are delivered (RFC 8832 §5.1).
public struct DataChannelParameters: Hashable, Sendable {
    /// How long a message is worth sending.
    public enum Reliability: Hashable, Sendable {
        case reliable
        /// It is sent again as often at most.
        case retransmissions(Int)
        /// It is sent, or sent again, for as long at most.
        case lifetime(milliseconds: Int)
    }

    /// The most channels of a peer.
    public static let channelsMax = 128
    /// The longest label, and subprotocol, in bytes of UTF-8.
    public static let textBytesMax = 64

    public var label: String
    /// Empty for none.
    public var subprotocol: String
    public var isOrdered: Bool
    public var reliability: Reliability
    /// 128 is below normal, 256 normal, 512 high, 1024 extra high (RFC 8831 §6.4).
    public var priority: UInt16

    public init(
        label: String,
        subprotocol: String = "",
        isOrdered: Bool = true,
        reliability: Reliability = .reliable,
        priority: UInt16 = 256
    ) {
        self.label = label
        self.subprotocol = subprotocol
        self.isOrdered = isOrdered
        self.reliability = reliability
        self.priority = priority
    }
}

/// A message of a data channel.
public struct DataMessage: Sendable, Equatable {
    /// Whether the bytes are text in UTF-8; binary otherwise. They are not checked.
    public var isText: Bool
    public var bytes: [UInt8]
    /// What a received message takes of its sender's credit, until the last copy of the message is gone.
    public var lease: DataLease?
    /// Tells the senders of messages to one receiver apart, so that one who cannot take all loses those of who sends most; 0 for
    /// the node's own.
    public var source: UInt64

    public init(_ bytes: [UInt8], isText: Bool, lease: DataLease? = nil, source: UInt64 = 0) {
        self.bytes = bytes
        self.isText = isText
        self.lease = lease
        self.source = source
    }

    /// Messages with equal content are equal.
    public static func == (left: Self, right: Self) -> Bool { left.isText == right.isText && left.bytes == right.bytes }
}

/// Why a data channel closed.
public enum DataChannelEnd: Hashable, Sendable, CaseIterable {
    /// The peer closed it, or acknowledged that we did.
    case closed
    /// More messages waited than the peer took, and none of them may be dropped.
    case overflow
    /// The association of all its peer's channels ended.
    case associationEnded
    /// It could not be opened: the peer has too many channels, or no association any more.
    case refused
}

/// Why the node ended the association of a peer's data channels.
public enum DataAssociationEnd: String, Hashable, Sendable, CaseIterable {
    /// The peer's packets caused more work than its budget allows.
    case work
    /// The peer sent more control chunks or broken chunks than any working peer sends.
    case flood
    /// Data in either direction took memory, and nothing moved on for 60 s, or for ten seconds with a full receive window.
    case stalled
    /// The received data of all peers of the loop took too much memory, and that of this peer more than its part.
    case memory
    /// The peer sent what the protocol or the node's description does not allow, such as a message that is too long.
    case violation
}

/// What happened to the data channels of a peer.
public enum DataEvent: Sendable, Equatable {
    /// A channel is open: one that the peer opened, or one that was opened by ``DataCommand/open(_:_:)``.
    case opened(DataChannelID, DataChannelParameters, isIncoming: Bool, lease: DataLease?)
    case message(DataChannelID, DataMessage)
    /// `label` is that of the channel.
    case closed(DataChannelID, label: String, DataChannelEnd)
}

/// A request about data channels.
public enum DataCommand: Sendable {
    /// Opens a channel. ``DataEvent/opened(_:_:isIncoming:lease:)`` follows when the peer knows it.
    case open(PeerID, DataChannelParameters)
    /// Sends a message to peers of one loop. One for a channel that is closed is dropped.
    case send(DataMessage, to: [DataAddress])
    /// Closes a channel after its queued messages.
    case close(DataAddress)
    /// Closes all channels of a peer, then its connection, after half a second at most.
    case closeAll(PeerID)
}

extension DataCommand {
    /// The messages that it queues for single receivers; 1 for a command that sends none.
    package var deliveryCount: Int {
        if case .send(_, let receivers) = self { receivers.count } else { 1 }
    }
}

/// A channel of a peer.
public struct DataAddress: Hashable, Sendable {
    public let peer: PeerID
    public let channel: DataChannelID
    public init(peer: PeerID, channel: DataChannelID) {
        self.peer = peer
        self.channel = channel
    }
}
