import Base

/// The datagram between two media loops of two nodes: a header in the clear, sealed contents and a tag. Integers are
/// big-endian.
///
/// | bytes | |
/// |---|---|
/// | 1 | 0xD0 + kind |
/// | 1 | the phase of the keys, its low 8 bits |
/// | 2 | the link's number at the receiver |
/// | 8 | counter: the nonce, one more with every datagram of the sender |
/// | … | sealed: records, or a report |
/// | 16 | tag |
///
/// The header is authenticated. A packet of 1,200 bytes costs ``overheadBytes`` more.
public enum TransferEnvelope {
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// Records: see ``record(at:of:)``.
        case media
        /// A ``TransferFeedback``.
        case report
    }

    /// What a datagram begins with, by which it is told from the other protocols of a port.
    public static let firstBytes: ClosedRange<UInt8> = 0xD0...0xDF
    public static let headerBytes = 12
    public static let tagBytes = 16
    /// Of a record: its length, and its age.
    public static let recordHeaderBytes = 4
    /// The most bytes of a datagram.
    public static let bytesMax = DatagramBatch.slotBytes
    /// What a datagram with one packet is longer than the packet.
    public static let overheadBytes = headerBytes + recordHeaderBytes + TransferMessage.packetBytes + tagBytes
    /// The unit of a record's age, in nanoseconds.
    public static let ageUnit: Int64 = 100_000

    /// The clear part of a datagram.
    public struct Header: Hashable, Sendable {
        public var kind: Kind
        /// The low 8 bits of the phase.
        public var phase: UInt8
        /// The number that the receiver gave the link.
        public var link: UInt16
        public var counter: UInt64

        public init(kind: Kind, phase: UInt8, link: UInt16, counter: UInt64) {
            self.kind = kind
            self.phase = phase
            self.link = link
            self.counter = counter
        }

        /// Reads the header of a datagram; `nil` when it is too short or of an unknown kind.
        @inline(__always)
        public init?(_ datagram: RawSpan) {
            guard datagram.byteCount > TransferEnvelope.headerBytes + TransferEnvelope.tagBytes,
                TransferEnvelope.firstBytes.contains(datagram.byte(at: 0)),
                let kind = Kind(rawValue: datagram.byte(at: 0) & 0xF)
            else { return nil }
            self.kind = kind
            phase = datagram.byte(at: 1)
            link = datagram.bigEndianUInt16(at: 2)
            counter = datagram.bigEndianUInt64(at: 4)
        }

        /// Writes the header to the start of `datagram`, which has room for it.
        @inline(__always)
        @_lifetime(datagram: copy datagram)
        public func write(into datagram: inout MutableRawSpan) {
            datagram.store(TransferEnvelope.firstBytes.lowerBound | kind.rawValue, at: 0)
            datagram.store(phase, at: 1)
            datagram.store(bigEndian: link, at: 2)
            datagram.store(bigEndian: counter, at: 4)
        }
    }

    // MARK: - Records

    /// One message in the contents of a datagram.
    public struct Record: Hashable, Sendable {
        /// Nanoseconds between the message's cause and its sending, in steps of ``TransferEnvelope/ageUnit``; 6.5 s at most.
        public var age: Int64
        /// Of the message within the contents.
        public var range: Range<Int>
    }

    /// Writes a record to `offset`: the message and its body behind a length and an age.
    /// - Parameter age: nanoseconds; a negative one counts as 0.
    /// - Returns: the bytes written; `nil` when it does not fit.
    @inline(__always)
    @_lifetime(contents: copy contents)
    public static func write(
        _ message: TransferMessage,
        _ body: RawSpan,
        age: Int64,
        at offset: Int,
        of contents: inout MutableRawSpan
    ) -> Int? {
        guard let length = message.encode(body, at: offset + recordHeaderBytes, into: &contents),
            let encoded = UInt16(exactly: length)
        else { return nil }
        contents.store(bigEndian: encoded, at: offset)
        contents.store(bigEndian: UInt16(clamping: age / ageUnit), at: offset + 2)
        return recordHeaderBytes + length
    }

    /// The record at an offset of a datagram's contents; the next one follows the end of its range.
    /// - Returns: `nil` at the end of the contents, and where they are broken.
    @inline(__always)
    public static func record(at offset: Int, of contents: RawSpan) -> Record? {
        guard offset >= 0, contents.byteCount - offset > recordHeaderBytes else { return nil }
        let length = Int(contents.bigEndianUInt16(at: offset))
        let start = offset + recordHeaderBytes
        guard length > 0, length <= contents.byteCount - start else { return nil }
        let age = Int64(contents.bigEndianUInt16(at: offset + 2)) * ageUnit
        return Record(age: age, range: start..<start + length)
    }
}
