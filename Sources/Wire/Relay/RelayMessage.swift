/// Names the mirror of a track on the loop that plays it. That loop makes the name, and does not use it again soon.
public struct RelayID: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The mirror's place in the low half, how often the place was used before in the high half.
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// - Parameters:
    ///   - place: of which the low 16 bits are kept.
    ///   - generation: how often the place was used before, modulo 2^16.
    public init(place: Int, generation: UInt16) {
        rawValue = UInt32(generation) << 16 | UInt32(truncatingIfNeeded: place & 0xFFFF)
    }

    /// The mirror's place among its loop's, 0…65,535.
    public var place: Int { Int(rawValue & 0xFFFF) }
    public var generation: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 16) }
}

/// A set of simulcast layers, by their places among the track's rids; all places from 7 on are one member.
public struct LayerSet: OptionSet, Hashable, BitwiseCopyable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// - Parameter layer: the layer's place among the track's rids.
    public init(layer: UInt8) { rawValue = 1 << min(layer, 7) }
}

/// One message between the loop that receives a track (the origin) and a loop that plays it through a mirror.
///
/// Any message may be lost. A packet says itself which stream it is of and which layer choices that stream answers; clocks
/// and layers are repeated with every report; key frames are requested again while none comes; a subscription is
/// repeated once a second; an unsubscription is repeated as long as packets come.
public enum RelayMessage: Hashable, Sendable, BitwiseCopyable {
    /// A packet of the track. Its bytes stand beside the message.
    case packet(Packet)
    /// What a sender report of the publisher said, so that the mirror's sender reports keep audio and video together.
    case clock(Clock)
    /// What layers the track has at the moment. The table of its streams stands beside the message.
    case layers(RelayID)
    /// Requests a key frame of one of the origin's streams, or with `nil` of all that the mirror plays.
    case keyFrameRequest(RelayID, stream: UInt64?)
    /// Requests a key frame for a receiver that played the stream already, within the origin's budget of such requests.
    case repairRequest(RelayID, stream: UInt64)
    /// Requests that a video stream be left out for a while, because the mirror's loop is overloaded.
    case hold(RelayID, stream: UInt64)
    /// Says which layers the mirror needs. Until the first one the mirror gets all.
    case subscribe(Subscription)
    /// Ends the mirror's subscription: it gets nothing more.
    case unsubscribe(RelayID)

    /// What is said of a packet.
    public struct Packet: Hashable, Sendable, BitwiseCopyable {
        public var relay: RelayID
        /// The origin's number of the stream; never 0.
        public var stream: UInt64
        /// The publisher's SSRC.
        public var ssrc: SSRC
        /// The stream's place among the track's rids; 255 without simulcast.
        public var layer: UInt8
        /// The layer choices that the stream answers, a bit each.
        public var choices: UInt8
        /// The layer choices of the track whose stream is what they name, and not the nearest to it.
        public var exactChoices: UInt8
        /// The packet came as a retransmission, so that its being late is no reordering.
        public var isRTXRecovered: Bool
        /// The packet's number, unwrapped at the origin.
        public var sequence: ExtendedSequenceNumber

        @inline(__always)
        public init(
            relay: RelayID,
            stream: UInt64,
            ssrc: SSRC,
            layer: UInt8,
            choices: UInt8,
            exactChoices: UInt8,
            isRTXRecovered: Bool,
            sequence: ExtendedSequenceNumber
        ) {
            self.relay = relay
            self.stream = stream
            self.ssrc = ssrc
            self.layer = layer
            self.choices = choices
            self.exactChoices = exactChoices
            self.isRTXRecovered = isRTXRecovered
            self.sequence = sequence
        }
    }

    public struct Clock: Hashable, Sendable, BitwiseCopyable {
        public var relay: RelayID
        public var stream: UInt64
        /// The publisher's time in nanoseconds since 1900.
        public var senderNanoseconds: Int64
        /// The stream's RTP timestamp at that time.
        public var timestamp: RTPTimestamp
        /// The origin's clock minus the publisher's, in nanoseconds.
        public var offsetNanoseconds: Int64

        public init(
            relay: RelayID,
            stream: UInt64,
            senderNanoseconds: Int64,
            timestamp: RTPTimestamp,
            offsetNanoseconds: Int64
        ) {
            self.relay = relay
            self.stream = stream
            self.senderNanoseconds = senderNanoseconds
            self.timestamp = timestamp
            self.offsetNanoseconds = offsetNanoseconds
        }
    }

    public struct Subscription: Hashable, Sendable, BitwiseCopyable {
        public var relay: RelayID
        /// The layer choices that slots of the mirror made, a bit each.
        public var choices: UInt8
        /// Layers that still play at the mirror, though they are not chosen any more.
        public var layers: LayerSet

        public init(relay: RelayID, choices: UInt8, layers: LayerSet) {
            self.relay = relay
            self.choices = choices
            self.layers = layers
        }
    }
}

/// Why bytes are no relay message.
public enum RelayMessageError: Error, Hashable, Sendable {
    case truncated(needed: Int, available: Int)
    /// The sender speaks a version that this node does not.
    case version(UInt8)
    case kind(UInt8)
    /// A stream number that must not be 0 is 0, or a reserved bit is set.
    case value
    /// A message without a body has bytes behind its end.
    case trailingBytes(Int)
}
