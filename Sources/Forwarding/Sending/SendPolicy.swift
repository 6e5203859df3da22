package import Wire

/// Decides whether a packet to one peer may leave now.
///
/// It decides on media and retransmissions. RTCP and the handshake bypass it and never wait.
package struct SendPolicy {
    package enum Decision: Equatable, Sendable {
        case now
        /// Not before this instant; an earlier one means as soon as possible.
        case later(Instant)
    }
    /// A packet that a policy decides on.
    package struct Request: Sendable {
        package let kind: SentKind
        /// Bytes of the packet as it was received.
        package let bytes: Int
    }

    private let decide: ((Request, Instant) -> Decision)?

    /// Every packet leaves at once, without a decision.
    package static var immediate: SendPolicy { SendPolicy(decide: nil) }

    private init(decide: ((Request, Instant) -> Decision)?) { self.decide = decide }

    /// - Parameter decide: called for each packet, and again for one that waits each time that it is due.
    package init(_ decide: @escaping (Request, Instant) -> Decision) { self.decide = decide }

    package var isImmediate: Bool { decide == nil }

    package func decision(_ request: Request, at now: Instant) -> Decision { decide?(request, now) ?? .now }
}

/// A packet that waits to leave: where it is kept, never its bytes. It is numbered and encrypted when it leaves.
package struct PacketReference: Equatable, Sendable {
    /// The slot's SSRC, which no other slot of the peer ever has.
    package let slot: SSRC
    package let stream: StreamID
    /// The number at its source, by which the stream's history finds it.
    package let sequence: ExtendedSequenceNumber
    /// For a retransmission the outgoing number that the receiver asked for.
    package let retransmits: SequenceNumber?

    package init(
        slot: SSRC,
        stream: StreamID,
        sequence: ExtendedSequenceNumber,
        retransmits: SequenceNumber? = nil
    ) {
        self.slot = slot
        self.stream = stream
        self.sequence = sequence
        self.retransmits = retransmits
    }

    package var kind: SentKind { retransmits == nil ? .media : .retransmission }
}

/// The waiting packets of one peer, first in, first out.
package struct PacketQueue: Sendable {
    /// As many as a stream's history finds again; a packet beyond is dropped.
    package static let packetsMax = PacketHistory.packetsMax

    private var packets: ContiguousArray<PacketReference> = []
    /// Packets before this index have left.
    private var head = 0

    package init() {}

    package var count: Int { packets.count - head }
    package var isEmpty: Bool { head == packets.count }
    package var first: PacketReference? { isEmpty ? nil : packets[head] }

    /// - Returns: `false` when the queue is full.
    package mutating func append(_ packet: PacketReference) -> Bool {
        guard count < Self.packetsMax else { return false }
        if packets.count >= 2 * Self.packetsMax { compact() }
        packets.append(packet)
        return true
    }

    package mutating func removeFirst() {
        precondition(!isEmpty, "a packet waits")
        head += 1
        if isEmpty {
            packets.removeAll(keepingCapacity: true)
            head = 0
        }
    }

    /// Removes the packets of a slot.
    package mutating func removeAll(of slot: SSRC) {
        compact()
        packets.removeAll { $0.slot == slot }
    }

    package mutating func removeAll() {
        packets.removeAll()
        head = 0
    }

    private mutating func compact() {
        packets.removeFirst(head)
        head = 0
    }
}
