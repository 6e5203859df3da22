import Base
public import Wire

@testable import Forwarding

extension Instant {
    static func ms(_ count: Int) -> Instant { Instant(nanoseconds: Int64(count) * 1_000_000) }
}

extension ExtendedSequenceNumber: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) { self.init(rawValue: value) }
}

/// A description as a parse of a packet gives it.
func describe(
    _ sequence: Int64,
    timestamp: UInt32 = 0,
    payloadType: UInt8 = 96,
    payloadBytes: UInt16 = 100,
    at now: Instant = .ms(0),
    pictureID: UInt16? = nil,
    bits: UInt8 = 15,
    tl0: UInt8? = nil,
    frameNumber: UInt16? = nil
) -> PacketDescription {
    var description = PacketDescription(
        sequence: ExtendedSequenceNumber(rawValue: sequence),
        timestamp: RTPTimestamp(rawValue: timestamp),
        payloadType: PayloadType(wire: payloadType),
        marker: false,
        payloadOffset: 12,
        payloadLength: payloadBytes,
        receivedAt: now
    )
    if let pictureID {
        description.pictureID = pictureID
        description.pictureIDBits = bits
        description.pictureIDOffset = 2
    }
    if let frameNumber {
        description.dependencyDescriptor = PacketDescription.Field(20..<23)
        description.frameNumber = frameNumber
    }
    if let tl0 {
        description.tl0 = tl0
        description.tl0Offset = 4
    }
    return description
}

/// An RTP packet with header extension elements in the one-byte form.
func makePacket(
    sequence: UInt16 = 1,
    timestamp: UInt32 = 0,
    payloadType: UInt8 = 96,
    marker: Bool = false,
    ssrc: UInt32 = 1,
    extensions: [(id: UInt8, data: [UInt8])] = [],
    payload: [UInt8]
) -> [UInt8] {
    var bytes: [UInt8] = [extensions.isEmpty ? 0x80 : 0x90, (marker ? 0x80 : 0) | payloadType]
    bytes.append(bigEndian: sequence)
    bytes.append(bigEndian: timestamp)
    bytes.append(bigEndian: ssrc)
    if !extensions.isEmpty {
        var block: [UInt8] = []
        for (id, data) in extensions { block += [id << 4 | UInt8(data.count - 1)] + data }
        while block.count % 4 != 0 { block.append(0) }
        bytes.append(bigEndian: UInt16(0xBEDE))
        bytes.append(bigEndian: UInt16(block.count / 4))
        bytes += block
    }
    return bytes + payload
}
