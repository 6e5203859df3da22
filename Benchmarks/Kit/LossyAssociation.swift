import Base
internal import SCTP

/// Two associations with a path between them that loses packets, in virtual time.
final class LossyAssociation {
    private struct Flight {
        let arrival: Instant
        let isForward: Bool
        let bytes: [UInt8]
    }

    /// One way.
    private static let delay = Interval.milliseconds(30)
    private static let step = Interval.milliseconds(1)
    private static let message = [UInt8](repeating: 7, count: 32_768)

    private var sender: DataChannels
    private var receiver: DataChannels
    private var generator: SplitMix64
    private var flights: [Flight] = []
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var buffer = [UInt8](repeating: 0, count: 1_200)
    private let lossPercent: Int
    private(set) var bytes = 0

    init(lossPercent: Int, seed: UInt64) {
        generator = SplitMix64(seed: seed)
        self.lossPercent = lossPercent
        sender = DataChannels(isClient: false, AssociationSettings(), using: &generator)
        receiver = DataChannels(isClient: true, AssociationSettings(), using: &generator)
    }

    /// The rate of one reliable ordered channel over some seconds, in Mbit/s.
    func megabits(seconds: Int) throws -> Double {
        sender.connect(at: now)
        let channel = try sender.open(ChannelParameters(label: "#x"), at: now)
        let end = now + .seconds(seconds)
        while now < end {
            while sender.bufferedBytes < 8 * Self.message.count {
                do { try sender.send(Self.message, isText: false, on: channel, at: now) } catch { break }
            }
            step()
        }
        return Double(bytes) * 8 / Double(seconds) / 1_000_000
    }

    private func step() {
        let due = flights.prefix { $0.arrival <= now }
        for flight in due {
            if flight.isForward {
                try? receiver.receive(unsafe flight.bytes.span.bytes, at: now)
            } else {
                try? sender.receive(unsafe flight.bytes.span.bytes, at: now)
            }
        }
        flights.removeFirst(due.count)
        while let event = receiver.nextEvent(at: now) {
            if case .message(_, _, let message) = event { bytes += message.count }
        }
        while sender.nextEvent(at: now) != nil {}
        if let deadline = sender.nextDeadline, deadline <= now { sender.handleTimeout(at: now) }
        if let deadline = receiver.nextDeadline, deadline <= now { receiver.handleTimeout(at: now) }
        transmit(isForward: true)
        transmit(isForward: false)
        now += Self.step
    }

    /// All flights take the same time, so they arrive in the order of their sending.
    private func transmit(isForward: Bool) {
        while let length = nextPacket(isForward: isForward) {
            if Int.random(in: 0..<100, using: &generator) < lossPercent { continue }
            flights.append(
                Flight(arrival: now + Self.delay, isForward: isForward, bytes: Array(buffer.prefix(length)))
            )
        }
    }

    private func nextPacket(isForward: Bool) -> Int? {
        var elements = buffer.mutableSpan
        var span = unsafe elements.mutableBytes
        return isForward
            ? sender.nextPacket(into: &span, at: now)?.byteCount
            : receiver.nextPacket(into: &span, at: now)?.byteCount
    }
}
