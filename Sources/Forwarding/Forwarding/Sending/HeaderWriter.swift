import Base
import MediaTypes
import SRTP
import Wire

/// Writes the outgoing RTP header of a forwarded packet into raw memory: first sendings and retransmissions alike.
///
/// The extension block takes the one-byte form (RFC 8285 §4.2) or, where the caller finds that an element does not fit it,
/// the two-byte form (§4.3). The caller makes sure of the room.
@safe
struct HeaderWriter {
    private let target: UnsafeMutableRawPointer
    private let isTwoByte: Bool
    /// One past the last byte written. The first element stands behind the fixed header and the block's head.
    private var end = 16

    /// Writes the fixed header (RFC 3550 §5.1).
    @inline(__always)
    init(
        _ target: UnsafeMutableRawPointer,
        isTwoByte: Bool,
        marker: Bool,
        payloadType: UInt8,
        sequence: SequenceNumber,
        timestamp: RTPTimestamp,
        ssrc: SSRC
    ) {
        unsafe self.target = target
        self.isTwoByte = isTwoByte
        let second = (marker ? 0x80 : 0) | payloadType
        let head: UInt64 =
            0x80 << 56 | UInt64(second) << 48 | UInt64(sequence.rawValue) << 32 | UInt64(timestamp.rawValue)
        unsafe target.storeBytes(of: head.bigEndian, as: UInt64.self)
        unsafe target.storeBytes(of: ssrc.rawValue.bigEndian, toByteOffset: 8, as: UInt32.self)
    }

    /// The longest header in the one-byte form without RID, of any packet.
    @inline(__always)
    static var oneByteLengthMax: Int { lengthMax(headBytes: 1, names: 16, copied: 4 * 16) }

    /// The longest header of one packet, in any form.
    /// - Parameter names: bytes of MID and RID together.
    static func lengthMax(_ packet: PacketDescription, names: Int) -> Int {
        // A packet that brings no playout delay may get one.
        let copied =
            Int(packet.audioLevel.length) + Int(packet.videoOrientation.length)
            + max(Int(packet.playoutDelay.length), 3)
            + Int(packet.dependencyDescriptor.length)
        return lengthMax(headBytes: 2, names: names, copied: copied)
    }

    /// - Parameters:
    ///   - headBytes: of each element.
    ///   - names: bytes of MID and RID together.
    ///   - copied: bytes of the elements that the packet brings.
    @inline(__always)
    private static func lengthMax(headBytes: Int, names: Int, copied: Int) -> Int {
        // Fixed header and block head, nine elements, abs-send-time, the transport-wide number, the content type, a word of
        // padding.
        16 + 9 * headBytes + names + 3 + 2 + 1 + copied + 4
    }

    /// Whether a packet fits a datagram of the batch, encrypted and behind a header of the greatest length.
    @inline(__always)
    static func fitsDatagram(headerLengthMax: Int, payloadLength: Int) -> Bool {
        headerLengthMax + payloadLength + SRTPLimits.overheadBytesMax <= DatagramBatch.slotBytes
    }

    /// Writes an element's head. An identifier above 14 or data of more than 16 bytes needs the two-byte form.
    @inline(__always)
    private mutating func appendHead(_ id: UInt8, length: Int) {
        if isTwoByte {
            unsafe target.storeBytes(of: id, toByteOffset: end, as: UInt8.self)
            unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: length), toByteOffset: end + 1, as: UInt8.self)
            end += 2
        } else {
            unsafe target.storeBytes(
                of: id << 4 | UInt8(truncatingIfNeeded: length - 1),
                toByteOffset: end,
                as: UInt8.self
            )
            end += 1
        }
    }

    /// Appends a MID of at most 16 bytes, which a slot keeps beside its identifiers. The bytes behind it are overwritten.
    @inline(__always)
    mutating func appendMID(_ extensions: SentExtensions) {
        appendHead(extensions.mid, length: extensions.midLength)
        unsafe target.storeBytes(of: extensions.midBytes.0, toByteOffset: end, as: UInt64.self)
        unsafe target.storeBytes(of: extensions.midBytes.1, toByteOffset: end + 8, as: UInt64.self)
        end += extensions.midLength
    }

    /// Appends an element with a copy of `data`, 1…255 bytes.
    mutating func append(_ id: UInt8, _ data: RawSpan) {
        appendHead(id, length: data.byteCount)
        unsafe data.withUnsafeBytes { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe (target + end).copyMemory(from: from, byteCount: bytes.count)
        }
        end += data.byteCount
    }

    mutating func append(_ id: UInt8, _ value: UInt8) {
        appendHead(id, length: 1)
        unsafe target.storeBytes(of: value, toByteOffset: end, as: UInt8.self)
        end += 1
    }

    @inline(__always)
    mutating func append(_ id: UInt8, bigEndianUInt24 value: UInt32) {
        if isTwoByte {
            appendHead(id, length: 3)
            unsafe target.storeBytes(of: (value << 8).bigEndian, toByteOffset: end, as: UInt32.self)
            end += 3
        } else {
            let element = UInt32(id << 4 | 2) << 24 | value
            unsafe target.storeBytes(of: element.bigEndian, toByteOffset: end, as: UInt32.self)
            end += 4
        }
    }

    @inline(__always)
    mutating func append(_ id: UInt8, bigEndianUInt16 value: UInt16) {
        appendHead(id, length: 2)
        unsafe target.storeBytes(of: value.bigEndian, toByteOffset: end, as: UInt16.self)
        end += 2
    }

    /// Copies an element of the received packet, if it is there and negotiated.
    @inline(__always)
    private mutating func copy(
        _ field: PacketDescription.Field,
        _ id: UInt8,
        of packet: UnsafePointer<PendingPacket>
    ) {
        guard id != 0, field.length != 0 else { return }
        let length = Int(field.length)
        appendHead(id, length: length)
        unsafe (target + end).copyMemory(from: packet.pointee.bytes + Int(field.offset), byteCount: length)
        end += length
    }

    /// Appends what the packet brought: audio level, orientation, playout delay, and the dependency descriptor with the
    /// slot's own frame number.
    @inline(__always)
    mutating func appendForwarded(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ extensions: SentExtensions
    ) {
        unsafe copy(packet.pointee.description.audioLevel, extensions.audioLevel, of: packet)
        unsafe copy(packet.pointee.description.videoOrientation, extensions.videoOrientation, of: packet)
        unsafe copy(packet.pointee.description.playoutDelay, extensions.playoutDelay, of: packet)
        if extensions.dependencyDescriptor != 0, unsafe packet.pointee.description.hasFrameNumber {
            let start = end + (isTwoByte ? 2 : 1)
            unsafe copy(packet.pointee.description.dependencyDescriptor, extensions.dependencyDescriptor, of: packet)
            unsafe target.storeBytes(
                of: segment.frameNumber(packet.pointee.description.frameNumber).bigEndian,
                toByteOffset: start + DependencyDescriptorHeader.frameNumberOffset,
                as: UInt16.self
            )
            guard segment.templateIDOffset != 0 else { return }
            let length = unsafe Int(packet.pointee.description.dependencyDescriptor.length)
            unsafe Self.shiftTemplateIDs(target + start, length, by: segment.templateIDOffset)
        }
    }

    @inline(never)
    private static func shiftTemplateIDs(_ place: UnsafeMutableRawPointer, _ length: Int, by shift: UInt8) {
        var descriptor = unsafe UnsafeMutableRawBufferPointer(start: place, count: length).mutableBytes
        DependencyDescriptorHeader.shiftTemplateIDs(in: &descriptor, by: shift)
    }

    /// Pads the block to a whole word, and writes its head and the extension bit; nothing when there is no element.
    /// - Returns: the header's length.
    @inline(__always)
    func finish() -> Int {
        guard end > 16 else { return 12 }
        unsafe target.storeBytes(of: 0, toByteOffset: end, as: UInt32.self)
        let words = (end - 16 + 3) / 4
        let profile: UInt32 = isTwoByte ? 0x1000_0000 : 0xBEDE_0000
        let block = profile | UInt32(truncatingIfNeeded: words)
        unsafe target.storeBytes(of: block.bigEndian, toByteOffset: 12, as: UInt32.self)
        unsafe target.storeBytes(of: 0x90, as: UInt8.self)
        return 16 + words * 4
    }
}

/// The MID and RID elements of a slot as bytes, for the packets that are not plain: RID, and a MID of any length.
struct HeaderNames {
    private let mid: [UInt8]
    private let rid: [UInt8]
    private let midID: UInt8
    private let ridID: UInt8
    private let repairedRIDID: UInt8
    /// The elements fit the one-byte form (RFC 8285 §4.2).
    let isOneByte: Bool

    init(_ parameters: SendTrackParameters) {
        func id(_ kind: HeaderExtension) -> UInt8 { parameters.extensions[kind]?.rawValue ?? 0 }
        mid = Array(parameters.mid.value.utf8)
        rid = parameters.rid.map { Array($0.value.utf8) } ?? []
        midID = id(.mid)
        ridID = id(.rtpStreamID)
        repairedRIDID = id(.repairedRTPStreamID)
        isOneByte = mid.count <= 16 && rid.count <= 16 && max(midID, ridID, repairedRIDID) <= 14
    }

    /// Bytes of both.
    var count: Int { mid.count + rid.count }

    /// Appends the MID and, with layers, the RID: the repaired one on an RTX stream (RFC 8852 §3.2).
    func append(to writer: inout HeaderWriter, isRTX: Bool) {
        guard midID != 0 else { return }
        writer.append(midID, unsafe mid.span.bytes)
        let id = isRTX ? repairedRIDID : ridID
        if id != 0, !rid.isEmpty { writer.append(id, unsafe rid.span.bytes) }
    }
}
