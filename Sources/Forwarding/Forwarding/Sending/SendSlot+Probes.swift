import Base
import CongestionControl
import MediaTypes
import SRTP
import Wire

/// The packets that probe clusters are made of. They leave on the RTX stream, where a receiver counts them for its feedback
/// and drops what it has.
extension SendSlot {
    /// Padding of one packet: a multiple of 4 below the 255 bytes that its last byte can name (RFC 3550 §5.1).
    private static let paddingBytes = 224
    /// A copy of a smaller packet makes a cluster of too many packets.
    private static let copyBytesMin = 700
    /// Packets before the newest one that are looked at for a copy.
    private static let copyDistanceMax = 16

    /// Whether probes can be made on the slot.
    var canProbe: Bool { retransmitter.rtxStream != nil && hasPacketsForProbes }

    /// Whether there is a stream for the packets of probes once the peer is connected.
    var hasPacketsForProbes: Bool { sendsRTX && rtxPayloadType != nil }

    /// Whether the peer reports on the slot's packets.
    var isReported: Bool { unsafe state.pointee.extensions.numbering != .none }

    private var rtxPayloadType: PayloadType? { parameters.codecs.lazy.compactMap(\.rtxPayloadType).first }

    /// Sends one packet of a probe cluster: a copy of a recent large packet, or padding.
    /// - Parameter offset: how many packets of the cluster were sent before; each copies another packet.
    /// - Returns: its length on the wire; `nil` when it could not be sent.
    func sendProbe(offset: Int, _ turn: SendTurn, into batch: DatagramBatch) -> Int? {
        if let newest = rewriter.newestSequence {
            for distance in 0..<Self.copyDistanceMax {
                let number = newest.advanced(by: -((distance + offset) % Self.copyDistanceMax)).wire
                if let length = sendCopy(of: number, turn, into: batch) { return length }
            }
        }
        return sendPadding(turn, into: batch)
    }

    private func sendCopy(
        of number: SequenceNumber,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Int? {
        guard let (segment, sequence) = unsafe state.pointee.rewriter.origin(of: number),
            let stream = source?.stream(segment.stream)
        else { return nil }
        return stream.history.withPacket(sequence) { packet, description -> Int? in
            guard description.payloadLength >= Self.copyBytesMin,
                turn.now - description.receivedAt <= Retransmitter.ageMax
            else { return nil }
            let mapping = mapping(of: description.payloadType, in: stream.track)
            return unsafe stream.withPending(packet, description) {
                unsafe send($0, segment, mapping, kind: .padding, turn, into: batch)
            } ?? nil
        } ?? nil
    }

    private func sendPadding(_ turn: SendTurn, into batch: DatagramBatch) -> Int? {
        guard unsafe state.pointee.egress.pointee.isSendable, let stream = retransmitter.rtxStream,
            let ssrc = parameters.rtxSSRC, let payloadType = rtxPayloadType, let place = unsafe batch.reserve()
        else { return nil }
        var writer = unsafe HeaderWriter(
            place,
            isTwoByte: !(state.pointee.extensions.isOneByte && names.isOneByte),
            marker: false,
            payloadType: payloadType.rawValue,
            sequence: retransmitter.rtxSequence.wire,
            timestamp: rewriter.newestTimestamp?.timestamp ?? RTPTimestamp(rawValue: 0),
            ssrc: ssrc
        )
        names.append(to: &writer, isRTX: true)
        let extensions = unsafe state.pointee.extensions
        unsafe state.pointee.egress.pointee.writePerSendElements(extensions, turn, to: &writer)
        let header = writer.finish()
        let first = unsafe place.load(as: UInt8.self)
        unsafe place.storeBytes(of: first | 0x20, as: UInt8.self)
        unsafe (place + header).initializeMemory(as: UInt8.self, repeating: 0, count: Self.paddingBytes)
        unsafe place.storeBytes(
            of: UInt8(Self.paddingBytes),
            toByteOffset: header + Self.paddingBytes - 1,
            as: UInt8.self
        )
        let length = unsafe state.pointee.egress.pointee.send(
            stream,
            place,
            headerLength: header,
            payload: place + header,
            payloadLength: Self.paddingBytes,
            index: UInt64(retransmitter.rtxSequence.rawValue),
            numbering: state.pointee.extensions.numbering,
            kind: .padding,
            turn,
            into: batch
        )
        guard length > 0 else { return nil }
        retransmitter.advance()
        return length
    }
}
