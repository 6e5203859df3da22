import Base
import Testing

@testable import Forwarding

/// The policing of what one peer publishes, in virtual time.
@Suite struct PublishLimiterTests {
    private static let start = Instant(nanoseconds: 1_000_000_000_000)

    /// Bytes that pass in a time, of packets that arrive at a constant rate.
    private func passed(_ bitsPerSecond: Int, of offered: Int, seconds: Int, isAudio: Bool = false) -> Int {
        var limiter = PublishLimiter(bitsPerSecondMax: bitsPerSecond)
        let packetBytes = 1_200
        let gap = Interval(nanoseconds: Int64(packetBytes * 8 * 1_000_000_000 / offered))
        var (now, bytes) = (Self.start, 0)
        while now - Self.start < .seconds(seconds) {
            if limiter.take(bytes: packetBytes, isAudio: isAudio, at: now) { bytes += packetBytes }
            now += gap
        }
        return bytes
    }

    @Test(arguments: [500_000, 1_500_000, 8_000_000])
    func `a publisher at its rate, or 15 % above it, loses nothing`(rate: Int) {
        for percent in [50, 100, 114] {
            let offered = rate * percent / 100
            #expect(passed(rate, of: offered, seconds: 60) * 8 >= offered * 60, "\(percent) %")
        }
    }

    @Test(arguments: [500_000, 1_500_000, 8_000_000], [150, 300, 1_000])
    func `beyond it no more than the rate, its tolerance and one burst pass`(rate: Int, percent: Int) {
        let seconds = 60
        let allowed = rate / 8 * 115 / 100
        let burst = max(allowed, PublishLimiter.burstBytesMin)
        let bytes = passed(rate, of: rate * percent / 100, seconds: seconds)
        #expect(bytes <= allowed * seconds + burst + 1_200)
        #expect(bytes >= allowed * seconds * 99 / 100, "what the rate permits is not lost")
        let audio = passed(rate, of: rate * percent / 100, seconds: seconds, isAudio: true)
        #expect(audio >= bytes && audio <= allowed * seconds + 2 * burst + 1_200, "audio has twice the burst")
    }

    @Test func `without a limit everything passes`() {
        var limiter = PublishLimiter(bitsPerSecondMax: nil)
        let isTaken = (0..<10_000).allSatisfy { _ in limiter.take(bytes: 1_500, at: Self.start) }
        #expect(isTaken)
    }
}
