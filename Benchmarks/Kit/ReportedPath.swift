import Base
internal import CongestionControl
internal import Wire

/// A path to one receiver that carries 10 Mbit/s and loses nothing: what was sent, a report of it, and the controller.
@safe
final class ReportedPath {
    private static let packetsPerReport = 50
    private static let packetBytes = 1_150
    private static let capacity = 2_048
    private static let delay: Int64 = 20_000
    private static let interval: Int64 = 100_000

    /// Microseconds.
    var now: Int64 { unsafe time }
    @exclusivity(unchecked) private var time: Int64 = 1_000_000
    /// The newest number that was sent.
    var newest: Int64 { unsafe count }
    @exclusivity(unchecked) private var count: Int64 = 0
    @exclusivity(unchecked) private var controller = SendController(at: 0)
    @exclusivity(unchecked) private var report = FeedbackReport()
    @exclusivity(unchecked) private var records = ContiguousArray(
        repeating: SentPacket(sentAt: 0, bytes: 0),
        count: ReportedPath.capacity
    )
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 64)
    @exclusivity(unchecked) private var length = 0

    init() { unsafe controller.setDemand(5_000_000) }

    deinit { unsafe bytes.deallocate() }

    /// Sends the packets of a report: frames of ten. `arrived` takes each one's number and arrival.
    func send(_ arrived: (Int64, Instant) -> Void) {
        var freeAt: Int64 = 0
        for index in 0..<Self.packetsPerReport {
            unsafe count += 1
            let sentAt = now + Int64(index / 10) * 20_000
            unsafe records[Int(newest) & (Self.capacity - 1)] = SentPacket(
                sentAt: UInt32(truncatingIfNeeded: sentAt),
                bytes: Self.packetBytes
            )
            unsafe controller.packetSent(bytes: Self.packetBytes, at: sentAt)
            freeAt = max(freeAt, sentAt + Self.delay) + Int64(Self.packetBytes) * 8 / 10
            arrived(newest, Instant(nanoseconds: freeAt * 1_000))
        }
        unsafe time += Self.interval
        unsafe controller.handleTimeout(at: now)
        while unsafe controller.takeProbe(at: now) != nil {}
        unsafe time += Self.delay
    }

    /// Takes a report's bytes.
    func take(_ report: [UInt8]) {
        unsafe bytes.copyBytes(from: report)
        unsafe length = report.count
    }

    func record(_ number: Int64) -> SentPacket? {
        number > newest - Int64(Self.capacity) && number > 0 ? unsafe records[Int(number) & (Self.capacity - 1)] : nil
    }

    @inline(__always)
    func withPacket(_ body: (borrowing RTCPPacketView) -> Void) {
        let report = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<length])
        guard let packet = try? RTCPPacketView(unsafe report.bytes) else { return }
        body(packet)
    }

    /// Lets the controller take what `read` finds in a report.
    @inline(__always)
    func received(_ read: (inout FeedbackReport) -> Void) {
        unsafe read(&report)
        unsafe controller.received(report)
    }

    /// Checks that the last report was understood.
    func check() throws {
        unsafe time -= Self.delay
        let reported = unsafe report.packets.count
        guard reported == Self.packetsPerReport else {
            throw CallError.broken("\(reported) packets were reported")
        }
    }
}
