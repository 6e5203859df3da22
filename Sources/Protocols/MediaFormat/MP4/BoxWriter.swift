import Base

/// Appends boxes of the ISO base media file format (ISO/IEC 14496-12 §4.2), whose sizes it fills in.
struct BoxWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: UInt8) { bytes.append(value) }
    mutating func append(_ value: UInt16) { bytes.append(bigEndian: value) }
    mutating func append(_ value: UInt32) { bytes.append(bigEndian: value) }
    mutating func append(_ value: UInt64) { bytes.append(bigEndian: value) }
    mutating func append(_ value: Int32) { bytes.append(bigEndian: UInt32(bitPattern: value)) }
    mutating func append(_ code: FourCC) { bytes.append(code) }
    mutating func append(_ data: [UInt8]) { bytes += data }
    mutating func append(zeros count: Int) { bytes += [UInt8](repeating: 0, count: max(count, 0)) }

    /// A box with what `body` appends.
    mutating func box(_ type: FourCC, _ body: (inout BoxWriter) -> Void) {
        let start = bytes.count
        append(UInt32(0))
        append(type)
        body(&self)
        bytes.store(bigEndian: UInt32(truncatingIfNeeded: bytes.count - start), at: start)
    }

    /// A box with version and flags.
    mutating func fullBox(_ type: FourCC, version: UInt8 = 0, flags: UInt32 = 0, _ body: (inout BoxWriter) -> Void) {
        box(type) {
            $0.append(UInt32(version) << 24 | flags & 0xFF_FF_FF)
            body(&$0)
        }
    }

    /// Overwrites four bytes that exist.
    mutating func store(_ value: UInt32, at offset: Int) { bytes.store(bigEndian: value, at: offset) }
}

/// A box in bytes: its type and where its body is.
struct BoxSpan {
    let type: FourCC
    /// From the size field to the end of the body.
    let range: Range<Int>
    let body: Range<Int>

    /// The box with its header; `bytes` are those that it was found in.
    func copy(of bytes: [UInt8]) -> [UInt8] {
        guard range.upperBound <= bytes.count else { return [] }
        return Array(bytes[range])
    }

    /// The boxes that follow each other in a range, at most `boxesMax`.
    static func all(in bytes: [UInt8], _ range: Range<Int>) throws(FormatError) -> [BoxSpan] {
        let boxesMax = 256
        var boxes: [BoxSpan] = []
        var offset = range.lowerBound
        guard range.upperBound <= bytes.count else { throw .truncated("a box") }
        let span = unsafe bytes.span.bytes
        while range.upperBound - offset >= 8 {
            let size = Int(span.bigEndianUInt32(at: offset))
            guard size >= 8, size <= range.upperBound - offset else { throw .invalid("the size of a box") }
            guard boxes.count < boxesMax else { throw .limit("boxes") }
            let type = FourCC(rawValue: span.bigEndianUInt32(at: offset + 4))
            boxes.append(BoxSpan(type: type, range: offset..<(offset + size), body: (offset + 8)..<(offset + size)))
            offset += size
        }
        return boxes
    }

    /// The first box of a type in a range.
    static func first(_ type: FourCC, in bytes: [UInt8], _ range: Range<Int>) throws(FormatError) -> BoxSpan {
        guard let box = try all(in: bytes, range).first(where: { $0.type == type }) else {
            throw .invalid("the boxes: there is no \(type)")
        }
        return box
    }
}
