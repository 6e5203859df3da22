import Base

/// Writes RTCP datagrams. The storage is reused, so writing rarely allocates.
///
/// The caller starts a compound packet with a report (RFC 3550 §6.1), or sends a reduced-size one (RFC 5506).
public struct RTCPWriter: Sendable {
    /// The most reports or chunks in one packet: a 5-bit count.
    static let reportBlocksMax = 31
    /// The most NACK entries of one packet; 1 KB fits every path MTU.
    static let nackEntriesMax = 250
    /// The type of the canonical name item (RFC 3550 §6.5.1).
    private static let cnameItem: UInt32 = 1

    /// The datagram so far.
    public private(set) var bytes: [UInt8] = []

    /// Creates an empty datagram with capacity for one Ethernet frame.
    public init() { bytes.reserveCapacity(1500) }

    /// The bytes of the datagram so far.
    public var count: Int { bytes.count }
    /// Whether nothing was appended.
    public var isEmpty: Bool { bytes.isEmpty }

    /// Starts the next datagram.
    public mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Appends a sender report (RFC 3550 §6.4.1), followed by receiver reports for the blocks beyond 31.
    public mutating func appendSenderReport(
        sender: SSRC,
        info: SenderInfo,
        blocks: some Collection<ReportBlock> = EmptyCollection()
    ) {
        let count = min(blocks.count, Self.reportBlocksMax)
        append([
            Self.header(RTCPPacketType.senderReport, format: count, words: 7 + count * Self.blockWords),
            sender.rawValue,
            UInt32(truncatingIfNeeded: info.ntp.rawValue >> 32),
            UInt32(truncatingIfNeeded: info.ntp.rawValue),
            info.rtp.rawValue,
            info.packetCount,
            info.octetCount,
        ])
        guard count > 0 else { return }
        for block in blocks.prefix(Self.reportBlocksMax) { append(block) }
        let rest = blocks.dropFirst(Self.reportBlocksMax)
        if !rest.isEmpty { appendReceiverReport(sender: sender, blocks: rest) }
    }

    /// Appends a receiver report (RFC 3550 §6.4.2), or several when there are more than 31 blocks.
    public mutating func appendReceiverReport(
        sender: SSRC,
        blocks: some Collection<ReportBlock> = EmptyCollection()
    ) {
        var rest = blocks[...]
        repeat {
            let part = rest.prefix(Self.reportBlocksMax)
            let words = 2 + part.count * Self.blockWords
            append([Self.header(RTCPPacketType.receiverReport, format: part.count, words: words), sender.rawValue])
            for block in part { append(block) }
            rest = rest.dropFirst(Self.reportBlocksMax)
        } while !rest.isEmpty
    }

    /// Appends a source description of one chunk with a canonical name (RFC 3550 §6.5.1), cut at 255 bytes.
    public mutating func appendSourceDescription(ssrc: SSRC, cname: String) {
        var cname = cname
        cname.withUTF8 { text in
            let count = min(text.count, 255)
            // The item, and one to four zero bytes that end the chunk at a 32-bit boundary.
            let words = 2 + (2 + count) / 4 + 1
            let item = Self.cnameItem << 8 | UInt32(truncatingIfNeeded: count)
            let header = Self.header(RTCPPacketType.sourceDescription, format: 1, words: words)
            let end = bytes.count + words * 4
            append([header, ssrc.rawValue])
            bytes.append(UInt8(truncatingIfNeeded: item >> 8))
            bytes.append(UInt8(truncatingIfNeeded: item))
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[..<count]))
            while bytes.count < end { bytes.append(0) }
        }
    }

    /// Appends a picture loss indication (RFC 4585 §6.3.1).
    public mutating func appendPictureLoss(sender: SSRC, media: SSRC) {
        let header = Self.header(RTCPPacketType.payloadFeedback, format: Int(RTCPFormat.pictureLoss), words: 3)
        append([header, sender.rawValue, media.rawValue])
    }

    /// Appends generic NACKs for `lost` (RFC 4585 §6.2.1): as many packets as needed, none when `lost` is empty.
    /// Ascending numbers need the fewest bytes.
    public mutating func appendNACK(sender: SSRC, media: SSRC, lost: some Sequence<SequenceNumber>) {
        var start: Int?
        var entries = 0
        var entry: (base: SequenceNumber, mask: UInt16)?
        for number in lost {
            if let (base, mask) = entry {
                let distance = base.distance(to: number)
                if distance == 0 { continue }
                if (1...16).contains(distance) {
                    entry = (base, mask | 1 << UInt16(distance - 1))
                    continue
                }
                appendNACKEntry(base, mask)
                entries += 1
            }
            if entries == Self.nackEntriesMax, let full = start {
                finish(full)
                start = nil
                entries = 0
            }
            if start == nil {
                start = begin(RTCPPacketType.transportFeedback, format: RTCPFormat.nack, sender, media)
            }
            entry = (number, 0)
        }
        guard let start, let (base, mask) = entry else { return }
        appendNACKEntry(base, mask)
        finish(start)
    }

    /// Appends the transport-wide feedback in `encoder`; nothing when it is empty.
    /// - Parameter feedbackCount: one more than in the previous feedback packet, modulo 256.
    public mutating func appendTransportFeedback(
        sender: SSRC,
        media: SSRC,
        feedbackCount: UInt8,
        _ encoder: borrowing TransportFeedbackEncoder
    ) {
        guard encoder.statusCount > 0 else { return }
        let start = begin(RTCPPacketType.transportFeedback, format: RTCPFormat.transportCC, sender, media)
        encoder.write(feedbackCount: feedbackCount, to: &bytes)
        // The last padding byte is the padding count (RFC 3550 §6.4.1).
        let padding = (4 - (bytes.count - start) % 4) % 4
        if padding > 0 {
            for _ in 1..<padding { bytes.append(0) }
            bytes.append(UInt8(padding))
            bytes[start] |= 0x20
        }
        finish(start)
    }

    /// The first word of a packet of `words` 32-bit words (RFC 3550 §6.4.1).
    private static func header(_ type: UInt8, format: Int, words: Int) -> UInt32 {
        0x8000_0000 | UInt32(truncatingIfNeeded: format & 0x1F) << 24 | UInt32(type) << 16
            | UInt32(truncatingIfNeeded: words - 1) & 0xFFFF
    }

    /// Appends words in network byte order.
    @inline(__always)
    private mutating func append<let count: Int>(_ words: InlineArray<count, UInt32>) {
        var words = words
        for index in words.indices { words[index] = words[index].bigEndian }
        unsafe withUnsafeBytes(of: words) { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func begin(_ type: UInt8, format: UInt8, _ sender: SSRC, _ media: SSRC) -> Int {
        let start = bytes.count
        append([Self.header(type, format: Int(format), words: 1), sender.rawValue, media.rawValue])
        return start
    }

    /// Writes the length of the packet that starts at `start`.
    private mutating func finish(_ start: Int) {
        let length = bytes.count - start
        precondition(length % 4 == 0 && length <= 0x4_0000, "an RTCP packet is a 16-bit count of words")
        bytes.store(bigEndian: UInt16(length / 4 - 1), at: start + 2)
    }

    private mutating func append(_ block: ReportBlock) {
        let lost = max(-0x80_0000, min(0x7F_FFFF, block.cumulativeLost))
        append([
            block.ssrc.rawValue,
            UInt32(block.fractionLost) << 24 | UInt32(bitPattern: lost) & 0xFF_FFFF,
            block.highestSequence,
            block.jitter,
            block.lastSR,
            block.delaySinceLastSR,
        ])
    }
    private static let blockWords = 6

    private mutating func appendNACKEntry(_ base: SequenceNumber, _ mask: UInt16) {
        append([UInt32(base.rawValue) << 16 | UInt32(mask)])
    }
}
