/// Identifies the mirror of a track on the loop that sends it to subscribers. That loop assigns the identifier and does
/// not reuse it soon.
public struct MirrorID: RawRepresentable, Hashable, Sendable, Codable, BitwiseCopyable {
    /// The index in the low 16 bits, the generation in the high 16 bits.
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// - Parameters:
    ///   - place: the mirror's index, modulo 2^16.
    ///   - generation: how often the index was used before, modulo 2^16.
    public init(place: Int, generation: UInt16) {
        rawValue = UInt32(generation) << 16 | UInt32(truncatingIfNeeded: place & 0xFFFF)
    }

    /// The mirror's index on its loop, 0…65,535.
    public var place: Int { Int(rawValue & 0xFFFF) }
    public var generation: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 16) }
}

/// A set of simulcast layers, by their indices among the track's rids; all indices from 7 on are one member.
public struct LayerSet: OptionSet, Hashable, BitwiseCopyable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// - Parameter layer: the layer's index among the track's rids.
    public init(layer: UInt8) { rawValue = 1 << min(layer, 7) }
    public static let all = Self(rawValue: .max)
}

/// A message between the loop that receives a track (the origin) and a loop that sends it to subscribers through a
/// mirror.
///
/// Any message may be lost. A packet carries its stream and the layer choices that the stream matches. Clocks and
/// layers are repeated with every report, key frame requests until a key frame arrives, a subscription once per second,
/// an unsubscription while packets arrive, and an end with every request of the mirror.
public enum TransferMessage: Hashable, Sendable, BitwiseCopyable {
    /// A packet of the track. Its bytes are the message's body.
    case packet(Packet)
    /// The clock of the publisher's sender report, so that the mirror's sender reports keep audio and video in sync.
    case clock(Clock)
    /// The current layers of the track. The table of its streams is the message's body.
    case layers(MirrorID)
    /// Requests a key frame of one of the origin's streams, or with `nil` of all streams that the mirror sends.
    case keyFrameRequest(MirrorID, stream: UInt64?)
    /// Requests a key frame for a receiver that already received the stream, within the origin's budget for such
    /// requests.
    case repairRequest(MirrorID, stream: UInt64)
    /// Requests a pause of a video stream, because the mirror's loop is overloaded.
    case hold(MirrorID, stream: UInt64)
    /// Selects the layers that the mirror needs. Before the first subscription it gets all.
    case subscribe(Subscription)
    /// Ends the mirror's subscription.
    case unsubscribe(MirrorID)
    /// Answers a request of a mirror to which the origin sends no track.
    case ended(MirrorID)

    /// The fields of a packet.
    public struct Packet: Hashable, Sendable, BitwiseCopyable {
        public var relay: MirrorID
        /// The stream's number at the origin; never 0.
        public var stream: UInt64
        /// The publisher's SSRC.
        public var ssrc: SSRC
        /// The stream's index among the track's rids; 255 without simulcast.
        public var layer: UInt8
        /// The layer choices that the stream matches, one bit each.
        public var choices: UInt8
        /// The layer choices of the track that are matched exactly and not by the nearest layer, one bit each.
        public var exactChoices: UInt8
        /// Whether the packet was recovered by RTX, so that its delay is not reordering.
        public var isRTXRecovered: Bool
        /// Whether the link lost the packet once before, and sends it again.
        public var isRepair: Bool
        /// The packet's extended sequence number at the origin.
        public var sequence: ExtendedSequenceNumber

        @inline(__always)
        public init(
            relay: MirrorID,
            stream: UInt64,
            ssrc: SSRC,
            layer: UInt8,
            choices: UInt8,
            exactChoices: UInt8,
            isRTXRecovered: Bool,
            isRepair: Bool = false,
            sequence: ExtendedSequenceNumber
        ) {
            self.relay = relay
            self.stream = stream
            self.ssrc = ssrc
            self.layer = layer
            self.choices = choices
            self.exactChoices = exactChoices
            self.isRTXRecovered = isRTXRecovered
            self.isRepair = isRepair
            self.sequence = sequence
        }
    }

    public struct Clock: Hashable, Sendable, BitwiseCopyable {
        public var relay: MirrorID
        public var stream: UInt64
        /// The publisher's time in nanoseconds since 1900.
        public var senderNanoseconds: Int64
        /// The stream's RTP timestamp at that time.
        public var timestamp: RTPTimestamp
        /// The origin's clock minus the publisher's, in nanoseconds.
        public var offsetNanoseconds: Int64

        public init(
            relay: MirrorID,
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
        public var relay: MirrorID
        /// The layer choices of the mirror's slots, one bit each.
        public var choices: UInt8
        /// The layers that the mirror still sends although they are no longer chosen.
        public var layers: LayerSet
        /// The layers that the mirror's receivers may be sent, whether their networks carry them at present or not. The
        /// publisher may pause the others.
        public var wanted: LayerSet

        public init(relay: MirrorID, choices: UInt8, layers: LayerSet, wanted: LayerSet = .all) {
            self.relay = relay
            self.choices = choices
            self.layers = layers
            self.wanted = wanted
        }
    }
}

/// Why bytes are not a transfer message.
public enum TransferMessageError: Error, Hashable, Sendable {
    case truncated(needed: Int, available: Int)
    case kind(UInt8)
    /// A stream number is 0.
    case value
    /// Bytes follow a message without a body.
    case trailingBytes(Int)
}
