import Wire

/// A packet that was received in this turn and waits to be sent on, lying in its stream's history.
@safe
struct PendingPacket {
    let description: PacketDescription
    /// The whole packet, in the history's memory, which stays as it is until the turn's packets were sent on.
    let bytes: UnsafeRawPointer
    let length: Int
    /// The stream that it is of; kept alive by its track.
    let stream: Uncounted<ReceivedStream>
    let streamID: UInt64

    var span: RawSpan {
        @_lifetime(borrow self) get {
            let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: length)
            return unsafe _overrideLifetime(buffer.bytes, borrowing: self)
        }
    }
}

/// What all packets of one fan-out share.
struct SendTurn {
    let now: Instant
    /// The abs-send-time extension's 24 bits.
    let absoluteSendTime: UInt32
}

/// Writes the outgoing header of a forwarded packet into raw memory: the one that every packet takes.
enum OutgoingHeader {
    /// The longest that `write` writes.
    static let bytesMax = 12 + 4 + 17 + 4 + 3 + 4 * 17 + 4

    /// Writes the fixed header and the extensions of a plain packet, in the one-byte form.
    /// - Parameter target: has room for `bytesMax` bytes.
    /// - Returns: the header's length; 0, with nothing useful written, when an element needs the two-byte form.
    @inline(__always)
    static func write(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ state: UnsafeMutablePointer<SlotState>,
        _ turn: SendTurn,
        to target: UnsafeMutableRawPointer
    ) -> Int {
        let dependency = unsafe packet.pointee.description.dependencyDescriptor
        // Before anything is counted. A longer element must be written here exactly as a retransmission would.
        guard unsafe state.pointee.extensions.isOneByte, unsafe packet.pointee.description.fitsOneByteForm else {
            return 0
        }
        let payloadType = unsafe state.pointee.outgoingPayloadType
        let marker: UInt8 = unsafe packet.pointee.description.marker ? 0x80 : 0
        let sequence = unsafe segment.sequence(packet.pointee.description.sequence).wire.rawValue
        let timestamp = unsafe segment.timestamp(packet.pointee.description.timestamp).rawValue
        let head: UInt64 =
            0x80 << 56 | UInt64(marker | payloadType) << 48 | UInt64(sequence) << 32 | UInt64(timestamp)
        unsafe target.storeBytes(of: head.bigEndian, as: UInt64.self)
        unsafe target.storeBytes(of: state.pointee.ssrc.rawValue.bigEndian, toByteOffset: 8, as: UInt32.self)
        var end = 16
        if unsafe state.pointee.sendsMID && state.pointee.extensions.mid != 0 {
            let length = unsafe state.pointee.extensions.midLength
            unsafe target.storeBytes(
                of: state.pointee.extensions.mid << 4 | UInt8(truncatingIfNeeded: length - 1),
                toByteOffset: end,
                as: UInt8.self
            )
            unsafe target.storeBytes(
                of: state.pointee.extensions.midBytes.0,
                toByteOffset: end + 1,
                as: UInt64.self
            )
            unsafe target.storeBytes(
                of: state.pointee.extensions.midBytes.1,
                toByteOffset: end + 9,
                as: UInt64.self
            )
            end += 1 + length
        }
        let sendTime = unsafe state.pointee.extensions.absoluteSendTime
        if sendTime != 0 {
            let element = UInt32(sendTime << 4 | 2) << 24 | turn.absoluteSendTime
            unsafe target.storeBytes(of: element.bigEndian, toByteOffset: end, as: UInt32.self)
            end += 4
        }
        let transport = unsafe state.pointee.extensions.transportSequenceNumber
        if transport != 0 {
            let number = unsafe state.pointee.peer.pointee.takeTransportSequence()
            unsafe target.storeBytes(of: transport << 4 | 1, toByteOffset: end, as: UInt8.self)
            unsafe target.storeBytes(of: number.bigEndian, toByteOffset: end + 1, as: UInt16.self)
            end += 3
        }
        let ids = unsafe state.pointee.extensions
        unsafe copy(packet.pointee.description.audioLevel, ids.audioLevel, packet, to: target, at: &end)
        unsafe copy(packet.pointee.description.videoOrientation, ids.videoOrientation, packet, to: target, at: &end)
        unsafe copy(packet.pointee.description.playoutDelay, ids.playoutDelay, packet, to: target, at: &end)
        if ids.dependencyDescriptor != 0, unsafe packet.pointee.description.hasFrameNumber {
            let start = end + 1
            unsafe copy(dependency, ids.dependencyDescriptor, packet, to: target, at: &end)
            unsafe target.storeBytes(
                of: segment.frameNumber(packet.pointee.description.frameNumber).bigEndian,
                toByteOffset: start + DependencyDescriptorHead.frameNumberOffset,
                as: UInt16.self
            )
        }
        guard end > 16 else { return 12 }
        // Padding to a whole word, then the block's head and the packet's extension bit.
        unsafe target.storeBytes(of: 0, toByteOffset: end, as: UInt32.self)
        let words = (end - 16 + 3) / 4
        let block = 0xBEDE_0000 as UInt32 | UInt32(truncatingIfNeeded: words)
        unsafe target.storeBytes(of: block.bigEndian, toByteOffset: 12, as: UInt32.self)
        unsafe target.storeBytes(of: 0x90, as: UInt8.self)
        return 16 + words * 4
    }

    /// Copies an element of at most 16 bytes, if it is there and negotiated.
    @inline(__always)
    private static func copy(
        _ field: PacketDescription.Field,
        _ id: UInt8,
        _ packet: UnsafePointer<PendingPacket>,
        to target: UnsafeMutableRawPointer,
        at end: inout Int
    ) {
        guard id != 0, field.length != 0 else { return }
        unsafe target.storeBytes(of: id << 4 | (field.length - 1), toByteOffset: end, as: UInt8.self)
        unsafe (target + end + 1).copyMemory(
            from: packet.pointee.bytes + Int(field.offset),
            byteCount: Int(field.length)
        )
        end += 1 + Int(field.length)
    }
}
