internal import Base
package import Wire

/// Makes the RTP packets of a VP8 publisher as a browser sends them: MID, send time and transport-wide number in one
/// header extension, a descriptor with 15-bit picture id and TL0PICIDX, eight packets a frame.
package struct SyntheticPacket {
    package static let payloadType = PayloadType(wire: 96)
    package static let packetsPerFrame = 8
    /// Identifiers of the header extensions, the same for all peers.
    package static var extensions: HeaderExtensionMap {
        var map = HeaderExtensionMap()
        map[.mid] = HeaderExtensionID(rawValue: 4)
        map[.absoluteSendTime] = HeaderExtensionID(rawValue: 2)
        map[.transportSequenceNumber] = HeaderExtensionID(rawValue: 3)
        return map
    }

    package let ssrc: SSRC
    /// Bytes after the RTP header, including the payload descriptor.
    package let payloadBytes: Int
    /// Packets made so far.
    package private(set) var count = 0

    package init(ssrc: SSRC, payloadBytes: Int) {
        precondition((64...1_300).contains(payloadBytes))
        self.ssrc = ssrc
        self.payloadBytes = payloadBytes
    }

    /// Bytes before the payload: the fixed header and 16 bytes of extension.
    package static let headerBytes = 28
    package var packetBytes: Int { Self.headerBytes + payloadBytes }

    /// The next packet, whole. Only the stream's first frame is a key frame.
    package mutating func next() -> [UInt8] {
        let frame = count / Self.packetsPerFrame
        let place = count % Self.packetsPerFrame
        var bytes: [UInt8] = []
        bytes.reserveCapacity(packetBytes)
        bytes.append(0x90)
        bytes.append((place == Self.packetsPerFrame - 1 ? 0x80 : 0) | Self.payloadType.rawValue)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: count &+ 0x1234))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: frame &* 3_000 &+ 77))
        bytes.append(bigEndian: ssrc.rawValue)
        bytes.append(bigEndian: 0xBEDE as UInt16)
        bytes.append(bigEndian: 3 as UInt16)
        bytes += [0x40, UInt8(ascii: "0")]
        bytes += [0x22, 1, 2, 3]
        bytes.append(0x31)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: count))
        bytes += [0, 0, 0]
        precondition(bytes.count == Self.headerBytes)
        bytes.append(place == 0 ? 0x90 : 0x80)
        bytes.append(0xE0)
        bytes.append(bigEndian: 0x8000 | UInt16(truncatingIfNeeded: frame & 0x7FFF))
        bytes.append(UInt8(truncatingIfNeeded: frame))
        bytes.append(0x20)
        bytes.append(frame == 0 ? 0x00 : 0x01)
        while bytes.count < packetBytes { bytes.append(UInt8(truncatingIfNeeded: bytes.count &* 7)) }
        count += 1
        return bytes
    }
}
