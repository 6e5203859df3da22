import Base

/// The types of OBUs that matter to a container (AV1 §6.2.2).
package enum OBUType {
    /// OBU_SEQUENCE_HEADER.
    package static let sequenceHeader: UInt8 = 1
    /// OBU_TEMPORAL_DELIMITER.
    package static let temporalDelimiter: UInt8 = 2
    /// OBU_FRAME_HEADER.
    package static let frameHeader: UInt8 = 3
    /// OBU_FRAME: a frame header and its tiles.
    package static let frame: UInt8 = 6
    /// OBU_TILE_LIST.
    package static let tileList: UInt8 = 8
    /// OBU_PADDING.
    package static let padding: UInt8 = 15
}

/// One open bitstream unit (AV1 §5.3).
package struct OBU: ~Escapable {
    /// obu_type, 0…15.
    package let type: UInt8
    /// The header: one byte, or two with an extension.
    package let header: RawSpan
    /// The bytes behind header and size.
    package let payload: RawSpan

    /// Reads the OBU at the start of the bytes. Without a size field it has all of them.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan, consumed: inout Int) throws(FormatError) {
        guard bytes.byteCount >= 1 else { throw .truncated("an OBU") }
        let first = bytes.byte(at: 0)
        guard first & 0x80 == 0 else { throw .invalid("obu_forbidden_bit") }
        var offset = first & 0x04 == 0 ? 1 : 2
        guard bytes.byteCount >= offset else { throw .truncated("an OBU header") }
        type = first >> 3 & 0x0F
        header = bytes.extracting(0..<offset)
        var length = bytes.byteCount - offset
        if first & 0x02 != 0 {
            let size = try readLEB128(bytes, at: &offset)
            guard size <= bytes.byteCount - offset else { throw .truncated("an OBU") }
            length = size
        }
        payload = bytes.extracting(offset..<(offset + length))
        consumed = offset + length
    }
}

/// A walk over OBUs that follow each other, at most ``FormatLimits/obusMax``.
package struct OBUCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0
    private var count = 0

    /// Creates a walk from the first OBU.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The next OBU; `nil` after the last.
    @_lifetime(self: copy self)
    @_lifetime(copy self)
    package mutating func next() throws(FormatError) -> OBU? {
        guard offset < bytes.byteCount else { return nil }
        guard count < FormatLimits.obusMax else { throw .limit("OBUs of a temporal unit") }
        count += 1
        var consumed = 0
        let obu = try OBU(bytes.extracting(offset..<bytes.byteCount), consumed: &consumed)
        offset += consumed
        return obu
    }
}

/// The OBUs of one instant as MP4, WebM and RTMP have them (AV1-ISOBMFF §2.4).
package struct AV1TemporalUnit: Hashable, Sendable {
    /// OBUs with sizes, without temporal delimiters, tile lists and padding: ``MediaFrame/bytes``.
    package private(set) var bytes: [UInt8] = []
    /// Whether the first frame is a shown key frame.
    package private(set) var isKey = false
    /// The record of the sequence header in the unit; `nil` when there is none.
    package private(set) var configuration: AV1Configuration?
    private var hasFrame = false
    private var isReducedStill = false

    /// Joins the OBUs of an RTP temporal unit, each with or without a size field.
    package init(_ obus: [[UInt8]]) throws(FormatError) {
        guard obus.count <= FormatLimits.obusMax else { throw .limit("OBUs of a temporal unit") }
        for bytes in obus {
            var consumed = 0
            try append(try OBU(unsafe bytes.span.bytes, consumed: &consumed))
        }
    }

    /// Reads a unit in the low-overhead format (AV1 §5.2), as FLV and MP4 have it.
    package init(_ bytes: RawSpan) throws(FormatError) {
        guard bytes.byteCount <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        self.bytes.reserveCapacity(bytes.byteCount)
        var cursor = OBUCursor(bytes)
        while let obu = try cursor.next() { try append(obu) }
    }

    private mutating func append(_ obu: borrowing OBU) throws(FormatError) {
        switch obu.type {
        case OBUType.temporalDelimiter, OBUType.tileList, OBUType.padding: return
        case OBUType.sequenceHeader:
            let configuration = try AV1Configuration(sequenceHeader: obu.payload)
            self.configuration = configuration
            isReducedStill = configuration.header?.isReducedStill ?? false
        case OBUType.frame, OBUType.frameHeader:
            // show_existing_frame, frame_type in two bits, show_frame (AV1 §5.9.2); 0 is KEY_FRAME.
            guard let first = obu.payload.byteCount > 0 ? obu.payload.byte(at: 0) : nil else {
                throw .truncated("an AV1 frame header")
            }
            if !hasFrame { isKey = isReducedStill || first & 0xF0 == 0x10 }
            hasFrame = true
        default: break
        }
        let (header, payload) = (obu.header, obu.payload)
        guard bytes.count + payload.byteCount + 8 <= FormatLimits.frameBytesMax else {
            throw .limit("bytes of a frame")
        }
        bytes.append(header.byte(at: 0) | 0x02)
        if header.byteCount > 1 { bytes.append(header.byte(at: 1)) }
        bytes.append(leb128: payload.byteCount)
        bytes.append(payload)
    }
}

/// leb128() (AV1 §4.10.5): up to 8 bytes with 7 bits each, least significant first; the value has at most 32 bits.
package func readLEB128(_ bytes: RawSpan, at offset: inout Int) throws(FormatError) -> Int {
    var value: UInt64 = 0
    for index in 0..<8 {
        guard offset < bytes.byteCount else { throw .truncated("an OBU size") }
        let byte = bytes.byte(at: offset)
        offset += 1
        value |= UInt64(byte & 0x7F) << UInt64(7 * index)
        guard byte & 0x80 == 0 else { continue }
        guard value <= UInt64(UInt32.max) else { throw .invalid("an OBU size") }
        return Int(value)
    }
    throw .invalid("an OBU size")
}

extension [UInt8] {
    /// Appends a value that is not negative as leb128().
    mutating func append(leb128 value: Int) {
        var rest = UInt64(clamping: value)
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }
}
