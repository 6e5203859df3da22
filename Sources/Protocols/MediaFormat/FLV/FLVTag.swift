import Base

/// The type of an FLV tag (FLV §E.4.1), and by the same number of an RTMP message (RTMP §7.1).
package enum FLVTagType: UInt8, Hashable, Sendable {
    case audio = 8
    case video = 9
    /// A script data object such as onMetaData, whose values nothing here needs.
    case script = 18
}

/// One tag of an FLV file.
package struct FLVTag: Hashable, Sendable {
    /// The type of the body.
    package let type: FLVTagType
    /// In milliseconds, modulo 2³²: 24 bits and the 8 bits of the extension.
    package let timestamp: UInt32
    /// The body, without the header of the tag: the input of ``FLVDemuxer``.
    package let body: [UInt8]

    /// Creates a tag.
    package init(type: FLVTagType, timestamp: UInt32, body: [UInt8]) {
        self.type = type
        self.timestamp = timestamp
        self.body = body
    }

    /// The tag with its header of eleven bytes and the size that follows it (FLV §E.3, §E.4.1). A body above
    /// ``FormatLimits/frameBytesMax`` minus one is cut.
    package var encoded: [UInt8] {
        let body = body.prefix(FormatLimits.frameBytesMax - 1)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(body.count + 15)
        bytes.append(type.rawValue)
        bytes.append(bigEndian24: UInt32(truncatingIfNeeded: body.count))
        bytes.append(bigEndian24: timestamp & 0xFF_FF_FF)
        bytes.append(UInt8(truncatingIfNeeded: timestamp >> 24))
        bytes.append(bigEndian24: 0)
        bytes += body
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: body.count + 11))
        return bytes
    }
}

/// Cuts the bytes of an FLV file or of HTTP-FLV into tags. Holds at most one incomplete tag of 16 MiB.
package struct FLVFileReader: Sendable {
    private static let tagHeaderBytes = 11
    /// The most bytes of the file's header; it has 9, and no known writer more.
    private static let headerBytesMax = 64

    private var pending: [UInt8] = []
    private var hasHeader = false

    /// Creates a reader in front of the file's header.
    package init() {}

    /// Takes the next bytes of the file and passes each tag that they complete to `receive`. Tags of unknown types are
    /// left out.
    package mutating func append(_ bytes: RawSpan, receive: (FLVTag) -> Void) throws(FormatError) {
        pending.append(bytes)
        var offset = 0
        if !hasHeader { try readHeader(&offset) }
        if hasHeader {
            while let tag = try readTag(&offset) {
                if let tag = tag.tag { receive(tag) }
            }
        }
        if offset > 0 { pending.removeFirst(offset) }
    }

    /// Reads the header and the size of the tag before the first (FLV §E.2).
    private mutating func readHeader(_ offset: inout Int) throws(FormatError) {
        let signature = pending.prefix(3)
        guard signature.elementsEqual("FLV".utf8.prefix(signature.count)) else {
            throw .invalid("the signature of FLV")
        }
        guard pending.count >= 9 else { return }
        let length = unsafe Int(pending.span.bytes.bigEndianUInt32(at: 5))
        guard (9...Self.headerBytesMax).contains(length) else { throw .invalid("the header length of FLV") }
        guard pending.count >= length + 4 else { return }
        offset = length + 4
        hasHeader = true
    }

    /// - Returns: `nil` when the next tag is not complete; a tag of `nil` for one of an unknown type.
    private func readTag(_ offset: inout Int) throws(FormatError) -> (tag: FLVTag?, Void)? {
        guard pending.count - offset >= Self.tagHeaderBytes else { return nil }
        let bytes = unsafe pending.span.bytes
        let first = bytes.byte(at: offset)
        guard first & 0x20 == 0 else { throw .unsupported("encrypted FLV") }
        let length = Int(bytes.bigEndianUInt24(at: offset + 1))
        let start = offset + Self.tagHeaderBytes
        // The size behind the tag repeats the length; some writers write 0, so it is not compared.
        guard pending.count - start >= length + 4 else { return nil }
        let timestamp = UInt32(bytes.byte(at: offset + 7)) << 24 | bytes.bigEndianUInt24(at: offset + 4)
        offset = start + length + 4
        guard let type = FLVTagType(rawValue: first & 0x1F) else { return (nil, ()) }
        let body = Array(pending[start..<(start + length)])
        return (FLVTag(type: type, timestamp: timestamp, body: body), ())
    }
}

/// Extends 32-bit milliseconds to 64 bits by the shortest distance from the time before.
struct FLVClock: Sendable {
    private var last: Int64?

    init() {}

    mutating func extend(_ timestamp: UInt32) -> Int64 {
        guard let last else {
            self.last = Int64(timestamp)
            return Int64(timestamp)
        }
        let step = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: last))
        let extended = last &+ Int64(step)
        self.last = extended
        return extended
    }
}
