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

    /// The mapping of a payload type that was resolved before.
    func known(_ payloadType: PayloadType) -> PayloadMapping? {
        // An index instead of an iterator, which would retain the array for each packet.
        var index = 0
        while index < mappings.count {
            if mappings[index].0 == payloadType { return mappings[index].1 }
            index += 1
        }
        return nil
    }

    /// Resolves a payload type of the source.
    mutating func resolve(
        _ payloadType: PayloadType,
        of track: ReceiveTrackParameters,
        to slot: SendTrackParameters
    ) -> PayloadMapping {
        guard let mapping = PayloadMapping(payloadType, of: track, to: slot) else {
            return .unsupported(track.codecs.first?.name ?? .vp8)
        }
        mappings.append((payloadType, mapping))
        return mapping
    }

    /// - Returns: whether the codec is found unsupported for the first time.
    mutating func noteUnsupported(_ codec: CodecName) -> Bool { announcedUnsupported.insert(codec).inserted }
}
