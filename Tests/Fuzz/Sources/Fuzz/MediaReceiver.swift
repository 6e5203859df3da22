import Base
import MediaTypes
import SRTP
import Wire

/// The subscriber: checks that everything sent decrypts and is well-formed, and that no key stream is reused.
struct MediaReceiver {
    /// Every slot that the peer has or had.
    var slots = ConnectedMedia.send
    /// The newest sequence number received, by SSRC.
    private(set) var newest: [UInt32: UInt16] = [:]
    private var unwrappers: [UInt32: SequenceUnwrapper] = [:]
    private var seen: [UInt32: [Int64: [UInt8]]] = [:]

    mutating func received(_ datagram: RawSpan, with transform: LibSRTPTransform) {
        require(datagram.byteCount <= 1_500, "a datagram fits an Ethernet frame")
        guard PacketProtocol(firstByte: datagram.byte(at: 0)) == .rtp else { return }
        let isRTCP = RTPPacketView.isRTCP(datagram)
        let bytes = datagram.array()
        let plain = unprotect(bytes, room: 0, isRTCP: isRTCP, with: transform)
        if isRTCP {
            guard let plain else { fatalError("broken: RTCP decrypts") }
            withSpan(plain) { readRTCP($0) }
        } else {
            checkRTP(bytes, isReadable: plain != nil)
            if let plain { withSpan(plain) { readRTP($0) } }
        }
    }

    private func readRTCP(_ bytes: RawSpan) {
        var cursor = RTCPCompoundCursor(bytes)
        do {
            while let packet = try cursor.next() { walk(packet) }
        } catch {
            fatalError("broken: our RTCP is valid: \(error)")
        }
    }

    /// A packet that is sent twice with one index must be the same both times (RFC 7714 §8.4).
    private mutating func checkRTP(_ bytes: [UInt8], isReadable: Bool) {
        withSpan(bytes) { span in
            let ssrc = span.bigEndianUInt32(at: 8)
            let number = SequenceNumber(rawValue: span.bigEndianUInt16(at: 2))
            let index = unwrappers[ssrc, default: SequenceUnwrapper()].unwrap(number)
            let before = seen[ssrc]?[index.rawValue]
            if let before {
                require(before == bytes, "one key stream is used for one packet")
            } else {
                require(isReadable || !isNew(index, ssrc), "a packet of a new number decrypts")
                seen[ssrc, default: [:]][index.rawValue] = bytes
            }
            newest[ssrc] = unwrappers[ssrc]?.newest?.wire.rawValue
        }
    }

    /// Whether the index is within the replay window.
    private func isNew(_ index: ExtendedSequenceNumber, _ ssrc: UInt32) -> Bool {
        guard let newest = unwrappers[ssrc]?.newest else { return true }
        return index.distance(to: newest) < SRTPLimits.replayWindowPackets
    }

    private func readRTP(_ bytes: RawSpan) {
        let packet: RTPPacketView
        do { packet = try RTPPacketView(bytes) } catch { fatalError("broken: our RTP is valid: \(error)") }
        var cursor = packet.makeExtensionCursor()
        var last = packet.hasExtension ? packet.extensionOffset + 4 : packet.headerLength
        while let element = cursor.next() { last = element.range.upperBound }
        require(packet.headerLength - last < 4, "our extensions are valid to their end")
        let ssrc = packet.ssrc
        let payloadType = packet.payloadType
        guard let slot = slots.first(where: { $0.ssrc == ssrc || $0.rtxSSRC == ssrc }) else {
            fatalError("broken: every packet has a slot's SSRC, and \(ssrc) is no slot's")
        }
        let known =
            ssrc == slot.ssrc
            ? slot.codecs.contains { $0.payloadType == payloadType }
            : slot.codecs.contains { $0.rtxPayloadType == payloadType }
        require(known, "every packet is of a negotiated format")
    }
}
