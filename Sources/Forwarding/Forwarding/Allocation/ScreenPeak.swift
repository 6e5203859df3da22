import Base

/// The bit rate that a shared screen rose to in the last ten seconds. A screen that stands still for a moment keeps its claim
/// to that.
struct ScreenPeak: Sendable {
    private static let spans = 10
    private static let span = Interval.seconds(1)

    private var stream: UInt64 = 0
    /// The highest bit rates of ten seconds, the newest last.
    private var peaks: [10 of Int] = .init(repeating: 0)
    private var spanBeganAt = Instant(nanoseconds: 0)

    /// Takes the bit rate of the screen's highest encoding now.
    /// - Returns: how much more the screen claims than that, in thousandths.
    mutating func note(_ bitrate: Int, of stream: UInt64, at now: Instant) -> Int {
        let elapsed = now - spanBeganAt
        if stream != self.stream || elapsed >= Self.span * Self.spans || elapsed < .zero {
            self.stream = stream
            peaks = .init(repeating: 0)
            spanBeganAt = now
        } else {
            while now - spanBeganAt >= Self.span {
                for index in 1..<Self.spans { peaks[index - 1] = peaks[index] }
                peaks[Self.spans - 1] = 0
                spanBeganAt += Self.span
            }
        }
        peaks[Self.spans - 1] = max(peaks[Self.spans - 1], bitrate)
        guard bitrate > 0 else { return 1_000 }
        return max(1_000, min(claim, 100 * bitrate) * 1_000 / bitrate)
    }

    /// The second highest of the peaks: a single one may be a key frame's.
    private var claim: Int {
        var (highest, second) = (0, 0)
        for index in 0..<Self.spans {
            if peaks[index] > highest {
                (highest, second) = (peaks[index], highest)
            } else {
                second = max(second, peaks[index])
            }
        }
        return second
    }
}
