import Base
package import MediaTypes
package import Wire

/// What becomes of a source's payload type on the way to one subscriber; resolved once for each, not per packet.
package enum PayloadMapping: Sendable {
    /// The payload goes out as it is.
    case same(PayloadType, rtx: PayloadType?)
    /// RED goes out as RED, its blocks' payload type changed to the subscriber's (RFC 2198 §3).
    case red(PayloadType, primary: PayloadType)
    /// RED's primary block alone goes out, because the subscriber did not negotiate RED.
    case redPrimary(PayloadType)
    /// The subscriber has no format for it.
    case unsupported(CodecName)

    /// - Parameters:
    ///   - payloadType: the source's, as its sender negotiated it in `track`.
    package init?(_ payloadType: PayloadType, of track: ReceiveTrackParameters, to slot: SendTrackParameters) {
        guard let source = track.codecs.first(where: { $0.payloadType == payloadType }) else { return nil }
        if source.name == .red {
            guard let inner = track.codecs.first(where: { $0.name == .opus }),
                let primary = payloadFormat(for: inner, in: slot)
            else {
                self = .unsupported(.red)
                return
            }
            if let red = slot.codecs.first(where: { $0.name == .red }) {
                self = .red(red.payloadType, primary: primary.payloadType)
            } else {
                self = .redPrimary(primary.payloadType)
            }
        } else if let format = payloadFormat(for: source, in: slot) {
            self = .same(format.payloadType, rtx: format.rtxPayloadType)
        } else {
            self = .unsupported(source.name)
        }
    }
}

/// What forwarding does to a redundant audio payload (RFC 2198 §3).
enum REDBlocks {
    /// Where the packet's own block lies in the payload; `nil` when the payload is malformed.
    static func primaryRange(of payload: RawSpan) -> Range<Int>? {
        guard var cursor = REDBlockCursor(payload) else { return nil }
        while let block = cursor.next() {
            if block.isPrimary { return block.range }
        }
        return nil
    }

    /// Changes the payload type of every block. The payload type is the low seven bits of each block's header, whose
    /// top bit says that another follows.
    static func rewritePayloadTypes(
        in packet: inout MutableRawSpan,
        from start: Int,
        count: Int,
        to payloadType: PayloadType
    ) {
        var offset = start
        while offset < start + count {
            let head = packet.bytes.byte(at: offset)
            packet.store(head & 0x80 | payloadType.rawValue, at: offset)
            guard head & 0x80 != 0 else { return }
            offset += 4
        }
    }
}
