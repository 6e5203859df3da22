import Base

/// Writes RTP headers in place.
public enum RTPHeaderWriter {
    /// Writes the 12-byte fixed header without padding, extension and contributing sources (RFC 3550 §5.1) at the start
    /// of `packet`. ``HeaderExtensionWriter`` adds a header extension and sets the X bit.
    /// - Precondition: `packet` has at least 12 bytes.
    /// - Returns: the offset after the header.
    @inline(__always)
    @discardableResult
    @_lifetime(packet: copy packet)
    public static func write(
        marker: Bool,
        payloadType: PayloadType,
        sequenceNumber: SequenceNumber,
        timestamp: RTPTimestamp,
        ssrc: SSRC,
        into packet: inout MutableRawSpan
    ) -> Int {
        packet.store(0x80 as UInt8, at: 0)
        packet.store((marker ? 0x80 : 0) | payloadType.rawValue, at: 1)
        packet.store(bigEndian: sequenceNumber.rawValue, at: 2)
        packet.store(bigEndian: timestamp.rawValue, at: 4)
        packet.store(bigEndian: ssrc.rawValue, at: 8)
        return RTPPacketView.fixedHeaderLength
    }
}

/// Writes a header extension block in place, element by element, without allocating (RFC 8285 §4).
///
/// It starts in the one-byte form and converts the block to the two-byte form for an element that requires it: with an
/// identifier above 14, or with data that is empty or longer than 16 bytes. ``finish(_:)`` completes the block.
public struct HeaderExtensionWriter {
    static let oneByteProfile: UInt16 = 0xBEDE
    /// The low four bits are application-defined; sent as zero.
    static let twoByteProfile: UInt16 = 0x1000

    private let start: Int
    private var end: Int
    private var elementCount = 0
    private var isTwoByte = false

    /// - Parameter offset: the start of the block, after the fixed header and the contributing sources.
    public init(at offset: Int = RTPPacketView.fixedHeaderLength) {
        precondition(offset >= RTPPacketView.fixedHeaderLength)
        start = offset
        end = offset + 4
    }

    /// Reserves an element of `length` bytes, 0…255.
    /// - Returns: the range of its data, which the caller writes; `nil`, with nothing changed, when it does not fit in
    ///   `packet`.
    @_lifetime(packet: copy packet)
    public mutating func reserve(
        _ id: HeaderExtensionID,
        length: Int,
        in packet: inout MutableRawSpan
    ) -> Range<Int>? {
        precondition((0...255).contains(length))
        let needsTwoByte = id.rawValue > 14 || length == 0 || length > 16
        let growth = needsTwoByte && !isTwoByte ? elementCount : 0
        let headLength = needsTwoByte || isTwoByte ? 2 : 1
        // Up to 3 bytes of padding follow.
        guard end + growth + headLength + length + 3 <= packet.byteCount else { return nil }
        if needsTwoByte && !isTwoByte { widen(&packet) }
        if isTwoByte {
            packet.store(id.rawValue, at: end)
            packet.store(UInt8(length), at: end + 1)
        } else {
            packet.store(id.rawValue << 4 | UInt8(length - 1), at: end)
        }
        let range = (end + headLength)..<(end + headLength + length)
        end = range.upperBound
        elementCount += 1
        return range
    }

    /// Appends an element with a copy of `data`, 0…255 bytes.
    /// - Returns: `false`, with nothing written, when it does not fit.
    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ data: RawSpan,
        to packet: inout MutableRawSpan
    ) -> Bool {
        guard data.byteCount <= 255, let range = reserve(id, length: data.byteCount, in: &packet) else { return false }
        packet.store(data, at: range.lowerBound)
        return true
    }

    /// Pads the block to four bytes, writes its header and sets the packet's X bit. Writes nothing when there are no
    /// elements.
    /// - Returns: the offset after the block, where the payload starts.
    @_lifetime(packet: copy packet)
    public func finish(_ packet: inout MutableRawSpan) -> Int {
        guard elementCount > 0 else { return start }
        var aligned = end
        while (aligned - start) % 4 != 0 {
            packet.store(0 as UInt8, at: aligned)
            aligned += 1
        }
        packet.store(bigEndian: isTwoByte ? Self.twoByteProfile : Self.oneByteProfile, at: start)
        packet.store(bigEndian: UInt16((aligned - start - 4) / 4), at: start + 2)
        packet.store(packet.bytes.byte(at: 0) | 0x10, at: 0)
        return aligned
    }

    /// Converts the elements to the two-byte form: moves them up by one byte per element, then rewrites them from the
    /// front. The write position never passes the read position.
    @_lifetime(packet: copy packet)
    private mutating func widen(_ packet: inout MutableRawSpan) {
        isTwoByte = true
        var index = end - 1
        while index >= start + 4 {
            packet.store(packet.bytes.byte(at: index), at: index + elementCount)
            index -= 1
        }
        var reading = start + 4 + elementCount
        var writing = start + 4
        end += elementCount
        while reading < end {
            let head = packet.bytes.byte(at: reading)
            let length = Int(head & 0x0F) + 1
            packet.store(head >> 4, at: writing)
            packet.store(UInt8(length), at: writing + 1)
            for byte in 1...length { packet.store(packet.bytes.byte(at: reading + byte), at: writing + 1 + byte) }
            reading += 1 + length
            writing += 2 + length
        }
    }
}
