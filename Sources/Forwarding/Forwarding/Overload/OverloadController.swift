public import Base

/// The load of a media loop in one interval.
public struct LoopSample: Sendable {
    /// The interval's length.
    public var elapsed: Interval
    /// The time that the loop spent in turns, including what other processes took of the processor meanwhile.
    public var busy: Interval
    /// Datagrams that the kernel dropped because the receive buffer was full.
    public var receiveDrops: UInt64
    /// The longest time from the first read of a turn to the system call that sent its output.
    public var delayMax: Interval

    public init(elapsed: Interval, busy: Interval, receiveDrops: UInt64, delayMax: Interval) {
        self.elapsed = elapsed
        self.busy = busy
        self.receiveDrops = receiveDrops
        self.delayMax = delayMax
    }
}

/// Decides which video an overloaded loop sheds, so that loss falls on the share that causes it.
///
/// A loop that does not keep up loses datagrams in the kernel's receive buffer, at random from all its calls. The
/// controller takes a sample of the loop at each interval. While the loop is overloaded, it sheds the heaviest video
/// streams of the heaviest share, step by step. It never sheds audio, and nothing of a share that is below its equal
/// part of the work. When the loop has had spare capacity for a while, the last step is undone.
struct OverloadController: Sendable {
    /// What one received stream cost since the last measurement.
    struct StreamLoad: Sendable {
        let stream: StreamID
        /// Whose media the stream is, see ``PeerParameters/share``.
        let share: UInt64
        /// Packets of the stream, received and sent.
        let packets: UInt64
        /// Whether the stream is video that is not shed yet.
        let isSheddable: Bool
    }

    /// What the caller does after a sample.
    enum Decision: Sendable {
        case goOn
        /// Begins to count the packets of each stream.
        case measure
        /// Calls ``shed(_:received:foreign:)`` with what was counted.
        case shed
    }

    /// Streams that are shed together and restored together.
    private struct Step: Sendable {
        var streams: [StreamID]
        /// Packets a second that this saves.
        let rate: Double
    }

    /// Whether the loop was found overloaded and has not kept up without shedding for a while since.
    private(set) var isOverloaded = false
    /// The newest step last.
    private var steps: [Step] = []
    /// The step that was undone last, while that may prove too early.
    private var probation: Step?
    /// The evidence of an overload: it grows with each overloaded sample and falls with each other one.
    private var score = 0
    /// Until this time has passed, an overload may be the aftermath of the one before.
    private var settling = Interval.zero
    /// Time since the streams' packets were last counted from 0, and the kernel's drops in it.
    private var counted = Interval.zero
    private var drops: UInt64 = 0
    /// Time without overload before a step is undone.
    private var patience = Self.patienceMin
    /// Time since the last overload, or since a step was undone.
    private var calm = Interval.zero
    private var window = Window()

    /// The loop's recent work without overload.
    private struct Window: Sendable {
        var elapsed = Interval.zero
        var busy = Interval.zero
        var packets: UInt64 = 0
    }

    /// Packets that take longer than this through a busy loop are late.
    private static let delayMax = Interval.milliseconds(200)
    /// A late loop that is busy for this share of the time is overloaded.
    private static let busyShare = 0.9
    /// What an overloaded sample adds to the score, what another one subtracts, and the score at which a step is shed.
    /// A single bad sample sheds nothing; neither does one a second, such as a burst of key frames causes.
    private static let overloadedWeight = 4
    private static let calmWeight = 1
    private static let scoreMax = 12
    /// Time for the backlog, NACKs and retransmissions to die down after a step.
    private static let settlingTime = Interval.milliseconds(400)
    /// The least part of all work that one step saves, as a divisor.
    private static let stepDivisor: UInt64 = 4
    private static let patienceMin = Interval.seconds(3)
    private static let patienceMax = Interval.seconds(48)
    /// A step stays undone after this long without overload.
    private static let probationTime = Interval.seconds(3)
    /// The busy share that is allowed with a step undone.
    private static let busyShareMax = 0.85
    /// After this long a step is undone even without apparent capacity: its publisher may send less by now.
    private static let retryInterval = Interval.seconds(60)

    /// Streams that are left out.
    var held: [StreamID] { steps.flatMap(\.streams) }
    var holdsAny: Bool { !steps.isEmpty }

    /// Takes the sample of one interval.
    /// - Parameter packets: RTP packets that the loop received and sent in it.
    mutating func observe(_ sample: LoopSample, packets: UInt64) -> Decision {
        counted = counted + sample.elapsed
        drops &+= sample.receiveDrops
        settling = max(settling - sample.elapsed, .zero)
        let isLate =
            sample.delayMax >= Self.delayMax && sample.busy.seconds >= Self.busyShare * sample.elapsed.seconds
        if sample.receiveDrops > 0 || isLate { return noteOverload() }
        noteCalm(sample, packets: packets)
        return .goOn
    }

    private mutating func noteOverload() -> Decision {
        calm = .zero
        window = Window()
        if let step = probation {
            // It was undone too early.
            probation = nil
            steps.append(step)
            patience = min(Interval(nanoseconds: patience.nanoseconds * 2), Self.patienceMax)
            score = 0
            settling = Self.settlingTime
        }
        guard settling == .zero else { return .goOn }
        let isFirst = score == 0
        score += Self.overloadedWeight
        if isFirst {
            counted = .zero
            drops = 0
            return .measure
        }
        guard score >= Self.scoreMax else { return .goOn }
        score = 0
        settling = Self.settlingTime
        isOverloaded = true
        return .shed
    }

    private mutating func noteCalm(_ sample: LoopSample, packets: UInt64) {
        score = max(score - Self.calmWeight, 0)
        calm = calm + sample.elapsed
        window.elapsed = window.elapsed + sample.elapsed
        window.busy = window.busy + sample.busy
        window.packets &+= packets
        if probation != nil, calm >= Self.probationTime {
            probation = nil
            patience = Self.patienceMin
        }
        guard window.elapsed >= Self.patienceMin else { return }
        let recent = window
        window = Window()
        guard calm >= patience else { return }
        guard let step = steps.last else {
            isOverloaded = false
            return
        }
        guard hasRoom(for: step, recent) || calm >= Self.retryInterval else { return }
        steps.removeLast()
        probation = step
        calm = .zero
    }

    /// Whether the loop would keep up with a step undone, at the recent cost of a packet.
    private func hasRoom(for step: Step, _ recent: Window) -> Bool {
        let rate = max(Double(recent.packets) / recent.elapsed.seconds, 1)
        let share = recent.busy.seconds / recent.elapsed.seconds
        return share * (rate + step.rate) / rate <= Self.busyShareMax
    }

    /// Chooses the streams to shed. Their packets are counted from 0 at the next ``Decision/measure``.
    /// - Parameters:
    ///   - loads: every stream's, since they were last counted from 0.
    ///   - received: datagrams received in that time.
    ///   - foreign: those of them that are not media. Where they are more than any share's packets, as in a flood, no
    ///     share is the cause and nothing is shed.
    mutating func shed(_ loads: [StreamLoad], received: UInt64, foreign: UInt64) -> [StreamID] {
        var shares: [UInt64: UInt64] = [:]
        for load in loads where load.packets > 0 { shares[load.share, default: 0] += load.packets }
        let count = UInt64(shares.count)
        var total = shares.values.reduce(0, +)
        // The heaviest last; in a fixed order among equals.
        var candidates = loads.filter { $0.isSheddable && $0.packets > 0 }
            .sorted { ($0.packets, $0.stream.rawValue) < ($1.packets, $1.stream.rawValue) }
        // The loop's capacity is what it takes in of all that arrives.
        let lost = Double(drops) / Double(max(drops &+ received, 1))
        let goal = max(total / Self.stepDivisor, UInt64(Double(total) * lost), 1)
        var step: [StreamID] = []
        var taken: UInt64 = 0
        while taken < goal {
            let heaviest = candidates.indices.max { left, right in
                let (first, second) = (candidates[left], candidates[right])
                return (shares[first.share] ?? 0, first.share, left) < (shares[second.share] ?? 0, second.share, right)
            }
            guard let heaviest else { break }
            let load = candidates[heaviest]
            guard let work = shares[load.share], work * count >= total, work > foreign else { break }
            candidates.remove(at: heaviest)
            step.append(load.stream)
            shares[load.share] = work - load.packets
            total -= load.packets
            taken += load.packets
        }
        guard !step.isEmpty else { return [] }
        steps.append(Step(streams: step, rate: Double(taken) / max(counted.seconds, 0.001)))
        return step
    }

    /// Forgets streams that have ended.
    mutating func forget(where isGone: (StreamID) -> Bool) {
        for index in steps.indices { steps[index].streams.removeAll(where: isGone) }
        steps.removeAll { $0.streams.isEmpty }
    }
}
