import Base
internal import CongestionControl
internal import Forwarding
internal import Wire

/// The part of a viewer that reports when packets arrived (transport-wide congestion control feedback). The network between
/// forwarder and viewer loses nothing, carries 100 Mbit/s, and takes 20 ms.
struct FeedbackReporter {
    private static let delay = Interval.milliseconds(20)
    private static let nanosecondsPerByte: Int64 = 80

    private let media: SSRC
    private var generator = TransportFeedbackGenerator()
    private var writer = RTCPWriter()
    /// The number after the last one that arrived.
    private var next: UInt16
    private var lastArrivedAt = Instant(nanoseconds: 0)
    /// Packets that were reported.
    private(set) var packetsReported = 0

    /// - Parameters:
    ///   - media: the SSRC that the viewer is sent.
    ///   - next: the number that the next packet to the viewer takes.
    init(media: SSRC, next: UInt16) {
        self.media = media
        self.next = next
    }

    /// Writes a report of all packets that left since the one before; `nil` when none did.
    mutating func makeReport(of egress: Egress, at now: Instant) -> [UInt8]? {
        while next != egress.nextTransportSequence {
            let number = TransportSequenceNumber(rawValue: next)
            next &+= 1
            guard let packet = egress.sentPacket(number) else { continue }
            let sentAt = Instant(nanoseconds: Int64(packet.sentAt) * 1_000)
            let transmission = Interval(nanoseconds: Int64(packet.bytes) * Self.nanosecondsPerByte)
            lastArrivedAt = max(sentAt + Self.delay, lastArrivedAt) + transmission
            generator.received(number, at: lastArrivedAt)
            packetsReported += 1
        }
        writer.removeAll()
        let isMade = generator.makeFeedback(
            at: now,
            writer: &writer,
            senderSSRC: SSRC(rawValue: 7),
            mediaSSRC: media
        )
        return isMade ? writer.bytes : nil
    }
}
