import MediaTypes
import Wire

/// The payload types of a slot's source, each resolved once, and the codecs that the receiver was told it cannot play.
struct PayloadTable {
    private var mappings: [(PayloadType, PayloadMapping)] = []
    private var announcedUnsupported: Set<CodecName> = []

    /// Forgets everything: another source plays.
    mutating func removeAll() {
        mappings.removeAll(keepingCapacity: true)
        announcedUnsupported.removeAll(keepingCapacity: true)
    }

    mutating func mapping(
        of payloadType: PayloadType,
        in track: ReceiveTrackParameters,
        to slot: SendTrackParameters
    ) -> PayloadMapping {
        for (known, mapping) in mappings where known == payloadType { return mapping }
        guard let mapping = PayloadMapping(payloadType, of: track, to: slot) else {
            return .unsupported(track.codecs.first?.name ?? .vp8)
        }
        mappings.append((payloadType, mapping))
        return mapping
    }

    /// - Returns: whether the codec is found unsupported for the first time.
    mutating func noteUnsupported(_ codec: CodecName) -> Bool { announcedUnsupported.insert(codec).inserted }
}
