import Base

/// The VP8 payload descriptor (RFC 7741 §4.2), with the key frame bit of the payload header (§4.3).
///
/// ```text
/// |X|R|N|S|R| PID |
/// |I|L|T|K|  RSV  |   with X
/// |M| PictureID   |   with I; with M another 8 bits of it
/// |   TL0PICIDX   |   with L
/// |TID|Y| KEYIDX  |   with T or K
/// ```
public struct VP8PayloadDescriptor: Hashable, Sendable {
    /// Bytes before the payload header.
    public let headerLength: Int
    /// S: a partition starts here.
    public let startsPartition: Bool
    /// PID, 0…7.
    public let partition: UInt8
    /// N: the frame is not a reference.
    public let nonReference: Bool
    /// PictureID; `nil` if absent.
    public let pictureID: PictureIDField?
    /// TL0PICIDX; `nil` if absent.
    public let tl0PictureIndex: TL0PictureIndexField?
    /// TID, 0…3.
    public let temporalID: UInt8?
    /// Y: the frame depends on the base layer only.
    public let layerSync: Bool
    /// Whether a key frame starts with this packet.
    public let isKeyFrameStart: Bool

    /// The size in pixels in the header of a key frame (RFC 6386 §9.1); `nil` for any other payload.
    public static func keyFrameSize(_ payload: RawSpan) -> (width: Int, height: Int)? {
        guard let descriptor = VP8PayloadDescriptor(payload), descriptor.isKeyFrameStart else { return nil }
        let start = descriptor.headerLength + 3
        guard payload.byteCount >= start + 7, payload.bigEndianUInt24(at: start) == 0x9D_01_2A else { return nil }
        // Little-endian; the two highest bits are the scale.
        let width = Int(payload.byte(at: start + 3)) | Int(payload.byte(at: start + 4) & 0x3F) << 8
        let height = Int(payload.byte(at: start + 5)) | Int(payload.byte(at: start + 6) & 0x3F) << 8
        return (width, height)
    }

    /// `nil` when the payload ends within or directly after the descriptor.
    public init?(_ payload: RawSpan) {
        let count = payload.byteCount
        guard count >= 1 else { return nil }
        let first = payload.byte(at: 0)
        nonReference = first & 0x20 != 0
        startsPartition = first & 0x10 != 0
        partition = first & 0x07
        var offset = 1
        var pictureID: PictureIDField?
        var tl0PictureIndex: TL0PictureIndexField?
        var temporalID: UInt8?
        var layerSync = false
        if first & 0x80 != 0 {
            guard count >= 2 else { return nil }
            let flags = payload.byte(at: 1)
            offset = 2
            if flags & 0x80 != 0 {
                guard count > offset else { return nil }
                if payload.byte(at: offset) & 0x80 != 0 {
                    guard count >= offset + 2 else { return nil }
                    let value = payload.bigEndianUInt16(at: offset) & 0x7FFF
                    pictureID = PictureIDField(value: value, bits: 15, offset: offset)
                    offset += 2
                } else {
                    pictureID = PictureIDField(value: UInt16(payload.byte(at: offset)), bits: 7, offset: offset)
                    offset += 1
                }
            }
            if flags & 0x40 != 0 {
                guard count > offset else { return nil }
                tl0PictureIndex = TL0PictureIndexField(value: payload.byte(at: offset), offset: offset)
                offset += 1
            }
            if flags & 0x30 != 0 {
                guard count > offset else { return nil }
                if flags & 0x20 != 0 {
                    temporalID = payload.byte(at: offset) >> 6
                    layerSync = payload.byte(at: offset) & 0x20 != 0
                }
                offset += 1
            }
        }
        guard count > offset else { return nil }
        headerLength = offset
        self.pictureID = pictureID
        self.tl0PictureIndex = tl0PictureIndex
        self.temporalID = temporalID
        self.layerSync = layerSync
        // The payload header is at the start of the first partition only. Its lowest bit is 0 in a key frame.
        isKeyFrameStart = startsPartition && partition == 0 && payload.byte(at: offset) & 0x01 == 0
    }
}
