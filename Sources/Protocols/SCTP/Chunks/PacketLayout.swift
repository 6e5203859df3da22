import Base

/// The common header of a packet (RFC 9260 §3.1) and how chunks follow it.
enum PacketLayout {
    static let headerBytes = 12
    /// The most bytes of a packet: with a record of DTLS 1.2 and UDP over IPv6 through a TURN channel it stays below 1280.
    static let bytesMax = 1_188
    static let chunkHeaderBytes = 4

    static func padded(_ count: Int) -> Int { (count + 3) & ~3 }

    /// The checksum of a packet as its field has it: the CRC32c with the field as zero, least significant byte first.
    static func checksum(_ packet: RawSpan) -> UInt32 {
        var crc = CRC32C()
        crc.update(packet.extracting(0..<8))
        crc.updateZeros(4)
        crc.update(packet.extracting(headerBytes..<packet.byteCount))
        return crc.value.byteSwapped
    }

    /// Writes the common header in front of chunks that are there already.
    static func writeHeader(
        port: UInt16,
        tag: UInt32,
        hasChecksum: Bool,
        byteCount: Int,
        into packet: inout MutableRawSpan
    ) {
        packet.store(bigEndian: port, at: 0)
        packet.store(bigEndian: port, at: 2)
        packet.store(bigEndian: tag, at: 4)
        packet.store(bigEndian: UInt32(0), at: 8)
        guard hasChecksum else { return }
        let value = checksum(packet.bytes.extracting(0..<byteCount))
        packet.store(bigEndian: value, at: 8)
    }
}

/// Where a chunk is in its packet.
struct ChunkRange {
    let type: ChunkType
    let flags: UInt8
    /// From the chunk's header to the end of its value, without padding.
    let whole: Range<Int>
    /// The value.
    var body: Range<Int> { whole.lowerBound + PacketLayout.chunkHeaderBytes..<whole.upperBound }
}

/// Walks the chunks of a packet.
struct ChunkWalk {
    private var offset = PacketLayout.headerBytes
    /// Whether a chunk had an impossible length, which ended the walk.
    private(set) var isBroken = false

    mutating func next(in packet: RawSpan) -> ChunkRange? {
        guard packet.byteCount - offset >= PacketLayout.chunkHeaderBytes else {
            // Up to three bytes of padding may be missing or follow.
            isBroken = isBroken || offset < packet.byteCount
            return nil
        }
        let length = Int(packet.bigEndianUInt16(at: offset + 2))
        guard length >= PacketLayout.chunkHeaderBytes, length <= packet.byteCount - offset else {
            isBroken = true
            offset = packet.byteCount
            return nil
        }
        let chunk = ChunkRange(
            type: ChunkType(rawValue: packet.byte(at: offset)),
            flags: packet.byte(at: offset + 1),
            whole: offset..<offset + length
        )
        offset = min(offset + PacketLayout.padded(length), packet.byteCount)
        return chunk
    }
}

/// Walks parameters, and error causes, which have the same form: type, length, value, padding (RFC 9260 §3.2.1).
struct ParameterWalk {
    private var offset: Int
    private(set) var isBroken = false

    /// - Parameter offset: where the first parameter is in the bytes that ``next(in:)`` gets.
    init(from offset: Int) { self.offset = offset }

    /// - Returns: the type and where the value is.
    mutating func next(in bytes: RawSpan) -> (type: UInt16, value: Range<Int>)? {
        guard bytes.byteCount - offset >= 4 else { return nil }
        let length = Int(bytes.bigEndianUInt16(at: offset + 2))
        guard length >= 4, length <= bytes.byteCount - offset else {
            isBroken = true
            offset = bytes.byteCount
            return nil
        }
        let type = bytes.bigEndianUInt16(at: offset)
        let value = offset + 4..<offset + length
        offset = min(offset + PacketLayout.padded(length), bytes.byteCount)
        return (type, value)
    }
}

extension [UInt8] {
    /// A chunk with the given value, padded.
    static func chunk(_ type: ChunkType, flags: UInt8 = 0, _ value: [UInt8] = []) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(PacketLayout.padded(4 + value.count))
        bytes += [type.rawValue, flags]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: 4 + value.count))
        bytes += value
        bytes.pad()
        return bytes
    }

    /// Appends a parameter or an error cause, padded.
    mutating func appendParameter(_ type: UInt16, _ value: [UInt8]) {
        append(bigEndian: type)
        append(bigEndian: UInt16(truncatingIfNeeded: 4 + value.count))
        self += value
        pad()
    }

    private mutating func pad() {
        while count % 4 != 0 { append(0) }
    }

    /// An ABORT or ERROR chunk with one cause.
    static func errorChunk(
        _ type: ChunkType,
        _ cause: ErrorCause,
        _ value: [UInt8] = [],
        flags: UInt8 = 0
    ) -> [UInt8] {
        var causes: [UInt8] = []
        causes.append(bigEndian: cause.rawValue)
        causes.append(bigEndian: UInt16(truncatingIfNeeded: 4 + value.count))
        causes += value
        return .chunk(type, flags: flags, causes)
    }
}
