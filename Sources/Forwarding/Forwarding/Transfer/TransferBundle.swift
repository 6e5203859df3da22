import Base
import Wire

/// The small records of one turn for one link, which leave in one datagram.
@safe
struct TransferBundle: ~Copyable {
    /// The most bytes of a record; longer ones leave in datagrams of their own.
    static let recordMax = 300
    /// The most bytes of a datagram's header and records.
    private static let bytesMax = TransferEnvelope.headerBytes + 1_200
    /// The most packets.
    private static let packetsMax = 64

    /// The header's room and the records; `nil` before the first record.
    private var memory: UnsafeMutableRawPointer?
    /// Bytes in the memory.
    private var length = TransferEnvelope.headerBytes
    private var references: [64 of SentRecords.Record]
    /// Packets among the records.
    private(set) var packetCount = 0
    /// The mirrors that there are packets for, by their places modulo 64.
    private var relays: UInt64 = 0

    init() {
        let none = SentRecords.Record(relay: MirrorID(rawValue: 0), repairs: 0, stream: 0, sequence: .init(rawValue: 0))
        references = .init(repeating: none)
    }

    deinit { unsafe memory?.deallocate() }

    var isEmpty: Bool { length == TransferEnvelope.headerBytes }

    /// The packet of a number, in the order of the records.
    subscript(index: Int) -> SentRecords.Record { references[index] }

    func hasRoom(for count: Int) -> Bool { length + count <= Self.bytesMax && packetCount < Self.packetsMax }

    /// Whether there may be a packet for a mirror.
    func mayCarry(_ relay: MirrorID) -> Bool { relays & Self.bit(relay) != 0 }

    /// - Parameters:
    ///   - age: in nanoseconds.
    ///   - reference: of a packet.
    /// - Returns: `false` without room, or when the message cannot be encoded.
    mutating func append(
        _ message: TransferMessage,
        _ bytes: RawSpan,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        let memory = unsafe allocatedMemory()
        let slot = unsafe UnsafeMutableRawBufferPointer(start: memory, count: Self.bytesMax)
        var span = unsafe slot.mutableBytes
        guard packetCount < Self.packetsMax,
            let written = TransferEnvelope.write(message, bytes, age: age, at: length, of: &span)
        else { return false }
        length += written
        if let reference {
            references[packetCount] = reference
            packetCount += 1
            relays |= Self.bit(reference.relay)
        }
        return true
    }

    /// Copies the records to behind a header's room at `place`.
    /// - Returns: bytes of header and records.
    @unsafe
    func copy(to place: UnsafeMutableRawPointer) -> Int {
        let header = TransferEnvelope.headerBytes
        if let memory = unsafe memory {
            unsafe (place + header).copyMemory(from: memory + header, byteCount: length - header)
        }
        return length
    }

    mutating func removeAll() {
        length = TransferEnvelope.headerBytes
        packetCount = 0
        relays = 0
    }

    private static func bit(_ relay: MirrorID) -> UInt64 { 1 << UInt64(relay.place & 63) }

    private mutating func allocatedMemory() -> UnsafeMutableRawPointer {
        if let memory = unsafe memory { return unsafe memory }
        let made = UnsafeMutableRawPointer.allocate(byteCount: Self.bytesMax, alignment: 16)
        unsafe memory = made
        return unsafe made
    }
}
