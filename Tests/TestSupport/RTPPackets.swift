/// Builds an RTP packet as a client sends it.
/// - Parameters:
///   - profile: of the header extension (RFC 8285 §4); `nil` for the one-byte form, or the two-byte form when an element
///     needs that: with an identifier above 14, or with data that is empty or longer than 16 bytes.
///   - extensions: the elements, each of at most 255 bytes.
public func makeRTP(
    payloadType: UInt8 = 96,
    marker: Bool = false,
    sequence: UInt16 = 100,
    timestamp: UInt32 = 90_000,
    ssrc: UInt32 = 0x1234_5678,
    profile: UInt16? = nil,
    extensions: [(id: UInt8, data: [UInt8])] = [],
    payload: [UInt8] = []
) -> [UInt8] {
    let first: UInt32 = extensions.isEmpty ? 0x8000_0000 : 0x9000_0000
    let kind = (marker ? 0x80 : 0) | UInt32(payloadType)
    let header = bigEndian([first | kind << 16 | UInt32(sequence), timestamp, ssrc])
    guard !extensions.isEmpty else { return header + payload }
    let fitsOneByte = extensions.allSatisfy { $0.id < 15 && (1...16).contains($0.data.count) }
    let profile = profile ?? (fitsOneByte ? 0xBEDE : 0x1000)
    var block: [UInt8] = []
    for (id, data) in extensions {
        let count = UInt8(truncatingIfNeeded: data.count)
        block += profile == 0xBEDE ? [id << 4 | (count &- 1) & 0x0F] : [id, count]
        block += data
    }
    while block.count % 4 != 0 { block.append(0) }
    return header + bigEndian([UInt32(profile) << 16 | UInt32(block.count / 4)]) + block + payload
}

/// Words in network byte order.
func bigEndian(_ words: [UInt32]) -> [UInt8] {
    words.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
}
