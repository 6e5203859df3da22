import TestSupport
import Wire

/// An RTCP datagram: reads every packet with every cursor, writes what was read and reads it again.
func fuzzRTCP(_ bytes: RawSpan) {
    var cursor = RTCPCompoundCursor(bytes)
    do {
        while let packet = try cursor.next() {
            walk(packet)
            rewrite(packet)
        }
    } catch {
        // Refused.
    }
}

/// Reads the whole packet.
/// - Returns: the number of items.
@discardableResult
func walk(_ packet: borrowing RTCPPacketView) -> Int {
    var items = 0
    require(packet.bytes.byteCount <= packet.lengthWithPadding, "padding only shortens the packet")
    _ = (packet.packetType, packet.count, packet.senderSSRC, packet.mediaSSRC, packet.senderInfo, packet.rembBitrate)
    var blocks = packet.makeReportBlockCursor()
    while blocks.next() != nil { items += 1 }
    var requests = packet.makeFullIntraRequestCursor()
    while requests.next() != nil { items += 1 }
    var lost = packet.makeLostSequenceCursor()
    while lost.next() != nil { items += 1 }
    if var feedback = packet.makeTransportFeedbackCursor() {
        var statuses = 0
        while feedback.next() != nil { statuses += 1 }
        require(statuses == feedback.statusCount, "every packet has a status")
        items += statuses
    }
    if var feedback = packet.makeCongestionControlFeedbackCursor() {
        var statuses = 0
        while feedback.next() != nil { statuses += 1 }
        require(2 * statuses <= packet.bytes.byteCount, "every status has its bytes")
        items += statuses
    }
    return items
}

private func rewrite(_ packet: borrowing RTCPPacketView) {
    let sender = SSRC(rawValue: 1)
    var writer = RTCPWriter()
    switch packet.kind {
    case .senderReport, .receiverReport:
        var blocks: [ReportBlock] = []
        var cursor = packet.makeReportBlockCursor()
        while let block = cursor.next() { blocks.append(block) }
        if let info = packet.senderInfo {
            writer.appendSenderReport(sender: sender, info: info, blocks: blocks)
        } else {
            writer.appendReceiverReport(sender: sender, blocks: blocks)
        }
        reread(writer.bytes) { again in
            require(again.senderInfo == packet.senderInfo, "the sender's figures stay")
            var left = blocks[...]
            var cursor = again.makeReportBlockCursor()
            while let block = cursor.next() { require(left.popFirst() == block, "a block stays") }
            require(left.isEmpty, "no block is lost")
        }
    case .nack:
        var lost: [SequenceNumber] = []
        var cursor = packet.makeLostSequenceCursor()
        while let number = cursor.next() { lost.append(number) }
        writer.appendNACK(sender: sender, media: sender, lost: lost)
        var again: Set<SequenceNumber> = []
        reread(writer.bytes) { packet in
            var cursor = packet.makeLostSequenceCursor()
            while let number = cursor.next() { again.insert(number) }
        }
        require(again == Set(lost), "the same packets are asked for")
    case .remb:
        guard let bitrate = packet.rembBitrate, bitrate < .max else { return }
        reread(RTCPPackets.remb(sender: 1, bitrate: bitrate, sources: [])) { again in
            require(again.rembBitrate == bitrate, "a bitrate stays")
        }
    default: break
    }
}

/// Reads a written datagram to its end.
private func reread(_ datagram: [UInt8], _ body: (borrowing RTCPPacketView) -> Void) {
    withSpan(datagram) { bytes in
        var cursor = RTCPCompoundCursor(bytes)
        do {
            while let packet = try cursor.next() { body(packet) }
        } catch {
            fatalError("broken: what was written reads: \(error)")
        }
    }
}

/// RTCP datagrams of every kind.
func sampleRTCP(media: SSRC) -> [(name: String, bytes: [UInt8])] {
    let sender = SSRC(rawValue: 0x0BAD_CAFE)
    let block = ReportBlock(
        ssrc: media,
        fractionLost: 3,
        cumulativeLost: -2,
        highestSequence: 0x1_0064,
        jitter: 17,
        lastSR: 0x1234_5678,
        delaySinceLastSR: 0x8000
    )
    let info = SenderInfo(
        ntp: NTPTimestamp(rawValue: 0xE000_0000_8000_0000),
        rtp: RTPTimestamp(rawValue: 90_000),
        packetCount: 5,
        octetCount: 5_000
    )
    func make(_ body: (inout RTCPWriter) -> Void) -> [UInt8] {
        var writer = RTCPWriter()
        body(&writer)
        return writer.bytes
    }
    return [
        (
            "sr-sdes",
            make {
                $0.appendSenderReport(sender: media, info: info, blocks: [block, block])
                $0.appendSourceDescription(ssrc: media, cname: "somebody")
            }
        ),
        ("rr", make { $0.appendReceiverReport(sender: sender, blocks: [block]) }),
        ("bye", RTCPPackets.goodbye(media.rawValue)),
        ("pli", make { $0.appendPictureLoss(sender: sender, media: media) }),
        ("fir", RTCPPackets.fullIntraRequest(sender: sender.rawValue, media: media.rawValue, sequence: 3)),
        (
            "nack",
            make { writer in
                let lost = [100, 101, 110, 116, 300].map { SequenceNumber(rawValue: $0) }
                writer.appendNACK(sender: sender, media: media, lost: lost)
            }
        ),
        (
            "remb",
            RTCPPackets.remb(
                sender: sender.rawValue,
                bitrate: 1_500_000,
                sources: [media.rawValue, sender.rawValue]
            )
        ),
        ("xr", RTCPPackets.extendedReport(sender: sender.rawValue, receiver: media.rawValue)),
        (
            "transport-cc",
            make { writer in
                var encoder = TransportFeedbackEncoder(
                    base: TransportSequenceNumber(rawValue: 65_530),
                    firstArrivalTicks: 1_000
                )
                for (index, gap) in [0, 0, 3, 0, 20, 0].enumerated() {
                    _ = encoder.append(missing: gap, arrivalTicks: 1_000 + Int64(index * index * 40))
                }
                writer.appendTransportFeedback(sender: sender, media: media, feedbackCount: 1, encoder)
            }
        ),
        (
            "ccfb",
            [0x8B, 205, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xFE, 0, 3, 0x80, 0x00, 0x00, 0x00, 0xFF, 0xFE, 0, 0]
                + [0, 0, 0, 3, 0, 9, 0, 2, 0xBF, 0xFF, 0x9F, 0xFD, 0x12, 0x34, 0x56, 0x78]
        ),
        ("app", [0x80, 204, 0, 3, 0, 0, 0, 1, 0x74, 0x65, 0x73, 0x74, 1, 2, 3, 4]),
        (
            "transport-cc-runs",
            [0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xF0, 0, 20, 0, 0, 1, 2, 0x00, 0x0A, 0x20, 0x02]
                + [0x60, 0x08, 4, 5]
        ),
    ]
}

func seedsRTCP() -> [(name: String, bytes: [UInt8])] {
    let samples = sampleRTCP(media: SSRC(rawValue: 0x1234_5678))
    return samples + [("compound", samples.flatMap(\.bytes))]
}
