package import MediaTypes

/// A data channel that the node opens to a participant, and what its messages are for.
package struct DataChannelPlan: Hashable, Sendable {
    package enum Use: Hashable, Sendable {
        /// Messages go to the participant's signaling and come from it.
        ///
        /// `sends`: whether the participant may send. One that does so on a channel where it only receives is ended.
        case signaling(sends: Bool)
        /// Messages go to the other participants with a channel of this label.
        case messages(sends: Bool, receives: Bool)
    }

    /// What the node says of the sender before each message to the participant.
    package enum Header: Hashable, Sendable {
        /// Nothing: the message is as it was sent.
        case none
        /// The identifier of the sender.
        case connection
        /// The identifier of the sender, then its user and its display name, each behind its length in two bytes.
        case user
    }

    /// The label of the chat of a channel's users. Its latest texts are kept for those who join later.
    package static let chatLabel = "#chat"

    package var parameters: DataChannelParameters
    package var use: Use
    /// Whether each message is a zlib stream (RFC 1950), in both directions.
    package var isCompressed: Bool
    /// What each message to the participant begins with.
    package var header: Header

    package init(
        _ parameters: DataChannelParameters,
        use: Use,
        isCompressed: Bool = false,
        header: Header = .none
    ) {
        self.parameters = parameters
        self.use = use
        self.isCompressed = isCompressed
        self.header = header
    }

    /// Whether a label is one of messages between participants: it starts with `#`, and has more.
    package static func isOfMessages(_ label: String) -> Bool {
        label.utf8.first == UInt8(ascii: "#") && (2...DataChannelParameters.textBytesMax).contains(label.utf8.count)
    }
}

/// The data channels that the node opens to a participant.
package struct DataPlan: Sendable {
    package var channels: [DataChannelPlan]
    /// The last message to a participant that the node ends, and the label of its channel.
    package var farewell: @Sendable (EndReason) -> (label: String, bytes: [UInt8])?

    /// - Parameter channels: with distinct labels, at most ``DataChannelParameters/channelsMax``.
    package init(
        _ channels: [DataChannelPlan],
        farewell: @escaping @Sendable (EndReason) -> (label: String, bytes: [UInt8])? = { _ in nil }
    ) {
        self.channels = channels
        self.farewell = farewell
    }
}

/// What happened to the data channels of a participant, for its signaling.
package enum ParticipantDataEvent: Sendable, Equatable {
    /// All channels of its plan are open.
    case opened
    /// A message of a channel for signaling, decompressed.
    case message(label: String, [UInt8], lease: DataLease?)
    /// A message of a channel for signaling is refused, and all that follow it are ignored: the participant is to be ended.
    case refused(label: String, DataViolation)
    /// A channel of its plan closed, or could not be opened.
    case closed(label: String)
}

/// Why a message of a participant to its signaling is refused.
package enum DataViolation: Hashable, Sendable {
    /// The participant only receives on the channel.
    case notPermitted
    /// It sends more messages, or more bytes of content, than signaling needs.
    case rate
    /// The message is not a zlib stream.
    case malformed
    /// The content is longer than a message may be, or longer than 16 KiB and a hundred times the stream.
    case tooLong
}

/// Why a message between participants was dropped.
package enum MessageDropReason: String, Hashable, Sendable, CaseIterable {
    /// The participant may not send with this label.
    case notPermitted = "not_permitted"
    /// The participant sends more than it may, and the message would have waited too long.
    case rate
    /// The participant, its channel or the node has more deliveries than it may, and the message would have waited too long. Or
    /// it is more than ten seconds' worth of its sender's deliveries by itself, or its receivers' loop is far behind.
    case deliveries
    /// It is not a zlib stream, or its content is too long: see ``DataViolation/tooLong``.
    case malformed
}
