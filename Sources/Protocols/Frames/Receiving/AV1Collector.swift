import Base
import MediaFormat

/// AV1 (RTP Payload Format for AV1 §4): OBU elements, some of them in pieces.
struct AV1Collector: FrameCollector {
    private var units: [[UInt8]] = []
    private var bytes = 0
    /// The last element goes on in the next packet.
    private var isOpen = false
    private var configuration: AV1Configuration?

    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool {
        guard payload.byteCount >= 2 else { throw .truncated("an AV1 payload") }
        let header = payload.byte(at: 0)
        let continues = header & 0x80 != 0
        guard continues == isOpen else { throw .truncated("an OBU") }
        let count = Int(header >> 4 & 0x03)
        var offset = 1
        var number = 0
        while offset < payload.byteCount {
            number += 1
            var length = payload.byteCount - offset
            // The last of a known number of elements has no length.
            if count == 0 || number < count {
                length = try readLEB128(payload, at: &offset)
                guard length <= payload.byteCount - offset else { throw .truncated("an OBU element") }
            }
            try appendElement(payload.extracting(offset..<(offset + length)), joinsLast: continues && number == 1)
            offset += length
        }
        guard count == 0 || number == count else { throw .truncated("an AV1 payload") }
        isOpen = header & 0x40 != 0
        // Only a new coded video sequence is known to begin here; the others may begin with any OBU.
        return header & 0x08 != 0 && !continues
    }

    private mutating func appendElement(_ element: RawSpan, joinsLast: Bool) throws(FormatError) {
        bytes += element.byteCount
        guard bytes <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        if joinsLast, let last = units.indices.last {
            units[last] += element.array()
        } else if element.byteCount > 0 {
            guard units.count < FormatLimits.obusMax else { throw .limit("OBUs of a temporal unit") }
            units.append(element.array())
        }
    }

    mutating func finish() throws(FormatError) -> CollectedFrame? {
        guard !isOpen else { throw .truncated("an OBU") }
        defer { reset() }
        let unit = try AV1TemporalUnit(units)
        if let found = unit.configuration { configuration = found }
        guard !unit.bytes.isEmpty else { return nil }
        return CollectedFrame(
            bytes: unit.bytes,
            references: FrameReferences(isKey: unit.isKey && configuration != nil),
            configuration: unit.isKey ? configuration.map { .av1($0) } : nil
        )
    }

    mutating func reset() {
        units = []
        bytes = 0
        isOpen = false
    }
}
