import Base
import CongestionControl
import TestSupport
import Wire

/// One subscriber: audio of 50 kbit/s, video of 30 pictures a second whose rate follows the target, a pacer, probes,
/// and the receiver's reports. Times are microseconds.
struct Flow {
    /// What a packet was sent for.
    enum Purpose {
        case audio, video, padding
    }

    /// What became of a packet.
    struct Record {
        var purpose: Purpose
        var bytes: Int
        var cluster: UInt8
        var sentAt: Int64
        /// How long it waited in queues, its own transmission included; `nil` unless it left the last one.
        var queueDelay: Int64?
        var arrivedAt: Int64?
        /// A queue was full.
        var isDropped = false
        var isReportedLost = false
        var isReported = false
        /// It left as ECT(1).
        var isMarked = false
        /// The field with which it arrived; `nil` when the reports do not tell.
        var ecn: ECNCodepoint?
    }

    static let audioRate = 50_000.0
    static let audioBytes = 125
    static let audioInterval: Int64 = 20_000
    static let pictureInterval: Int64 = 33_333
    static let packetBytes = 1_200
    /// The steps of the video's rate.
    private static let step = 50_000.0
    /// The deviation of the pictures' sizes.
    private static let sizeDeviation = 0.2
    /// A sender whose pacer is further behind skips a picture, in seconds.
    private static let pacerMax = 0.5

    let settings: FlowSettings
    var controller: any RateController
    var generator: SeededGenerator
    var records: [Record] = []
    /// The demand that the controller knows.
    var demand = 0.0
    var pacer = Pacer()
    var probe: ProbeRun?
    var receiver = Receiver()

    init(_ settings: FlowSettings, controller: any RateController, seed: UInt64) {
        self.settings = settings
        self.controller = controller
        generator = SeededGenerator(seed: seed)
    }

    /// Puts the packets of a picture into the pacer.
    mutating func makePicture() {
        let budget = controller.target - Self.audioRate
        let rate = min(max((budget / Self.step).rounded(.down) * Self.step, Self.step), demand)
        let size = max(0.3, 1 + Self.sizeDeviation * generator.normal())
        guard Double(pacer.queuedBytes) * 8 <= controller.pacingRate * Self.pacerMax else { return }
        var bytes = Int(rate / 8 / 30 * size)
        while bytes > 0 {
            pacer.add(max(min(bytes, Self.packetBytes), 60))
            bytes -= Self.packetBytes
        }
    }

    /// Makes the receiver's report of what arrived until now.
    mutating func makeReport(at now: Int64) -> FeedbackReport? { receiver.makeReport(&records, at: now) }
}

/// Video that waits for the pacer's rate.
struct Pacer {
    private var sizes: [Int] = []
    private var head = 0
    private(set) var queuedBytes = 0
    private var tokens = 0.0
    private var tokensAt: Int64 = 0
    var isScheduled = false

    var isEmpty: Bool { head == sizes.count }

    mutating func add(_ bytes: Int) {
        sizes.append(bytes)
        queuedBytes += bytes
    }

    /// Takes the next packet whatever the rate is.
    mutating func takeFirst() -> Int? {
        guard head < sizes.count else { return nil }
        defer {
            head += 1
            if head > 512 {
                sizes.removeFirst(head)
                head = 0
            }
        }
        queuedBytes -= sizes[head]
        return sizes[head]
    }

    /// - Parameter burst: the time whose bytes leave at once, in seconds.
    mutating func refill(rate: Double, burst: Double, at now: Int64) {
        let depth = max(rate * burst / 8, 1_500)
        tokens = min(tokens + rate / 8 * Double(now - tokensAt) / 1e6, depth)
        tokensAt = now
    }

    /// Takes a packet that may leave now.
    mutating func take() -> Int? {
        guard tokens > 0, let bytes = takeFirst() else { return nil }
        tokens -= Double(bytes)
        return bytes
    }

    /// Microseconds until the next packet may leave.
    func wait(rate: Double) -> Int64 { max(1_000, Int64(-tokens * 8e6 / max(rate, 1))) }
}

/// A probe cluster that is being sent: packets each 2 ms, so that its rate is right over its length.
struct ProbeRun {
    static let interval: Int64 = 2_000

    let cluster: ProbeCluster
    let startedAt: Int64
    var bytes = 0
    var packets = 0

    var isComplete: Bool { bytes >= cluster.bytesMin && packets >= cluster.packetsMin }
    var paddingBytes: Int { min(1_000, max(200, Int(cluster.rate * 0.002 / 8))) }

    func isDue(at now: Int64) -> Bool {
        !isComplete && Double(bytes) < cluster.rate * Double(now - startedAt + Self.interval) / 8e6
    }
}
