public import MediaTypes
public import Wire

/// Names one link of a forwarder: the way to one other loop, of this node or of another one. Chosen by the loop's owner.
public struct LinkID: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// What a mirror is made with.
public struct MirroredTrack: Sendable {
    public let id: TrackID
    public let parameters: ReceiveTrackParameters

    public init(id: TrackID, parameters: ReceiveTrackParameters) {
        self.id = id
        self.parameters = parameters
    }
}

/// A transfer message as loops of one node hand it over: a value of fixed size. The bytes of a packet or of a layer table go
/// beside it.
public struct TransferRecord: BitwiseCopyable, Sendable {
    public let message: TransferMessage
    /// Of a packet: what the origin's parse found. Without it the packet is parsed again, as one of another node is.
    package let description: PacketDescription?

    /// A message that came encoded.
    public init(_ message: TransferMessage) {
        self.message = message
        description = nil
    }

    @inline(__always)
    init(_ packet: TransferMessage.Packet, _ description: PacketDescription) {
        message = .packet(packet)
        self.description = description
    }

    /// Whether the message is not a packet, and so may use the room that a link keeps for such.
    public var isControl: Bool { if case .packet = message { false } else { true } }
}

/// The way to another loop: a queue with a limit, which never waits. A class to derive from, so that a packet finds it without
/// counting references.
open class TransferLink {
    /// Tracks that cross over the link, either way.
    var users = 0 {
        didSet { if oldValue == 0, users > 0 { becameUsed() } }
    }

    public init() {}

    /// The first track crosses.
    func becameUsed() {}

    /// Queues one record and a copy of its bytes, of which only a packet and a layer table have any.
    /// - Returns: `false` when there is no room, which the link counts.
    open func send(_ record: TransferRecord, _ bytes: RawSpan) -> Bool { false }

    /// Lets the other loop begin with what was queued. Called once for each fan-out that sent something.
    open func flush() {}
}

extension TransferLink {
    /// Queues a message without bytes beside it.
    func send(_ message: TransferMessage) -> Bool { send(TransferRecord(message), RawSpan()) }
}
