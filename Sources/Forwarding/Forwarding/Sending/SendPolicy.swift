package import Base
package import CongestionControl
package import Wire

/// Decides whether a media packet or a retransmission to one peer may leave now. RTCP and the handshake never wait.
package enum SendPolicy {
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

    /// Every packet leaves at once, without a decision.
    case immediate
    /// The peer's ``Pacer`` decides. Audio never waits.
    case paced
    /// A function decides about each packet, and again about one that waits each time that it is due.
    case deciding((Request, Instant) -> Decision)

    package var isImmediate: Bool { if case .immediate = self { true } else { false } }
    package var isPaced: Bool { if case .paced = self { true } else { false } }
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
    /// Bytes of the packet as it was received.
    package private(set) var bytes: UInt16
    /// What the slot's layer filter decided when the packet came.
    package private(set) var layer: LayerDecision

    package init(
        slot: SSRC,
        stream: StreamID,
        sequence: ExtendedSequenceNumber,
        bytes: Int,
        retransmits: SequenceNumber? = nil,
        layer: LayerDecision = .undecided
    ) {
        self.slot = slot
        self.stream = stream
        self.sequence = sequence
        self.bytes = UInt16(clamping: bytes)
        self.retransmits = retransmits
        self.layer = layer
    }

    /// The packet is not wanted any more. Its turn comes all the same, because numbers close over it in order.
    mutating func drop() {
        layer = .dropped
        bytes = 0
    }

    /// The packet is left out when its turn comes, which needs no rate.
    package var isDropped: Bool { layer == .dropped }

    package var kind: SentKind { retransmits == nil ? .media : .retransmission }
}

/// The waiting packets of one peer: retransmissions first, then media, each first in, first out.
package struct PacketQueue: Sendable {
    /// As many as a stream's history finds again; a packet beyond is dropped.
    package static let packetsMax = PacketHistory.packetsMax

    private var retransmissions = FIFO()
    private var media = FIFO()
    /// Bytes of all packets that wait.
    package private(set) var bytes = 0

    package init() {}

    package var count: Int { retransmissions.count + media.count }
    package var isEmpty: Bool { retransmissions.isEmpty && media.isEmpty }
    package var first: PacketReference? { retransmissions.first ?? media.first }

    /// - Returns: `false` when the queue is full.
    package mutating func append(_ packet: PacketReference) -> Bool {
        guard count < Self.packetsMax else { return false }
        if packet.retransmits == nil { media.append(packet) } else { retransmissions.append(packet) }
        bytes += Int(packet.bytes)
        return true
    }

    package mutating func removeFirst() {
        bytes -= Int((retransmissions.isEmpty ? media.removeFirst() : retransmissions.removeFirst()).bytes)
    }

    /// Removes the packets of a slot.
    package mutating func removeAll(of slot: SSRC) {
        bytes -= retransmissions.removeAll { $0.slot == slot } + media.removeAll { $0.slot == slot }
    }

    package mutating func removeAll() { self = PacketQueue() }

    /// Gives up the media packets of a slot that wait.
    /// - Parameter isNeedless: which of them; all by default.
    package mutating func dropMedia(
        of slot: SSRC,
        where isNeedless: (PacketReference) -> Bool = { _ in true }
    ) {
        bytes -= media.dropAll { $0.slot == slot && isNeedless($0) }
    }

    private struct FIFO: Sendable {
        private var packets: ContiguousArray<PacketReference> = []
        /// Packets before this index have left.
        private var head = 0
        /// An empty queue keeps room for so many packets: those of a key frame. The room for more is given back.
        private static let capacityKept = 64

        var count: Int { packets.count - head }
        var isEmpty: Bool { head == packets.count }
        var first: PacketReference? { isEmpty ? nil : packets[head] }

        mutating func append(_ packet: PacketReference) {
            if packets.count >= 2 * PacketQueue.packetsMax { compact() }
            packets.append(packet)
        }

        mutating func removeFirst() -> PacketReference {
            precondition(!isEmpty, "a packet waits")
            defer {
                head += 1
                if isEmpty {
                    packets.removeAll(keepingCapacity: packets.capacity <= Self.capacityKept)
                    head = 0
                }
            }
            return packets[head]
        }

        /// - Returns: the bytes of the removed packets.
        mutating func removeAll(where matches: (PacketReference) -> Bool) -> Int {
            compact()
            var removed = 0
            packets.removeAll { packet in
                guard matches(packet) else { return false }
                removed += Int(packet.bytes)
                return true
            }
            return removed
        }

        /// - Returns: the bytes that need not leave any more.
        mutating func dropAll(where isNeedless: (PacketReference) -> Bool) -> Int {
            var removed = 0
            for index in head..<packets.count where isNeedless(packets[index]) {
                removed += Int(packets[index].bytes)
                packets[index].drop()
            }
            return removed
        }

        private mutating func compact() {
            packets.removeFirst(head)
            head = 0
        }
    }
}
