import Base

/// One element of a header extension.
public struct HeaderExtensionElement: Hashable, Sendable {
    /// The local identifier: 1…14 in the one-byte form, 1…255 in the two-byte form.
    public let id: UInt8
    /// The position of the element's data in the packet; may be empty in the two-byte form.
    public let range: Range<Int>

    /// - Parameter range: the position of the data in the packet.
    public init(id: UInt8, range: Range<Int>) {
        self.id = id
        self.range = range
    }
}

/// Iterates over the elements of an RTP header extension in the one-byte or two-byte form (RFC 8285 §4.2, §4.3).
///
/// The iteration ends at an element that exceeds the block, at the reserved identifier 15 of the one-byte form, and at
/// an identifier 0 with a length.
public struct HeaderExtensionCursor: ~Escapable {
    private enum Form { case oneByte, twoByte }
    private static let oneByteProfile: UInt16 = 0xBEDE
    /// The low four bits are application-defined.
    private static let twoByteProfile: UInt16 = 0x1000

    private let bytes: RawSpan
    private let form: Form
    private var offset: Int
    private let end: Int

    @_lifetime(copy packet)
    init(_ packet: borrowing RTPPacketView) {
        let start = packet.extensionOffset
        let profile = packet.hasExtension ? packet.bytes.bigEndianUInt16(at: start) : 0
        let isTwoByte = profile & 0xFFF0 == Self.twoByteProfile
        bytes = packet.bytes
        form = isTwoByte ? .twoByte : .oneByte
        offset = start + 4
        end = isTwoByte || profile == Self.oneByteProfile ? packet.headerLength : 0
    }

    /// The next element in packet order; `nil` at the end.
    @_lifetime(self: copy self)
    public mutating func next() -> HeaderExtensionElement? {
        while offset < end {
            let head = bytes.byte(at: offset)
            if head == 0 {
                offset += 1
                continue
            }
            let id: UInt8
            let start: Int
            let length: Int
            switch form {
            case .oneByte:
                id = head >> 4
                start = offset + 1
                length = Int(head & 0x0F) + 1
                guard id != 0, id != 15 else { return finish() }
            case .twoByte:
                guard end - offset >= 2 else { return finish() }
                id = head
                start = offset + 2
                length = Int(bytes.byte(at: offset + 1))
            }
            guard length <= end - start else { return finish() }
            offset = start + length
            return HeaderExtensionElement(id: id, range: start..<offset)
        }
        return nil
    }

    @_lifetime(self: copy self)
    private mutating func finish() -> HeaderExtensionElement? {
        offset = end
        return nil
    }
}
