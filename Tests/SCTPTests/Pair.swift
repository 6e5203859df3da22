import Base
import TestSupport

@testable import SCTP

func at(_ milliseconds: Int) -> Instant { Instant(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds) }
func stream(_ number: UInt16) -> StreamID { StreamID(rawValue: number) }

/// Passes `bytes` to `body` as a span.
func withSpan<Result>(_ bytes: [UInt8], _ body: (RawSpan) -> Result) -> Result { body(unsafe bytes.span.bytes) }

/// One end: an association, what it delivered, and what its owner does.
final class Node {
    var association: Association
    var messages: [IncomingMessage] = []
    var events: [AssociationEvent] = []
    var drops: [SCTPDropReason] = []
    /// Whether messages are left in the window.
    var isPaused = false
    var dataBudget = Int.max

    init(_ settings: AssociationSettings, _ generator: inout SeededGenerator) {
        association = Association(settings, using: &generator)
    }

    func receive(_ packet: [UInt8], at now: Instant) {
        do { try association.receive(unsafe packet.span.bytes, at: now) } catch { drops.append(error) }
        take()
    }

    func take() {
        while !isPaused, let event = association.nextEvent() {
            if case .message(let message) = event { messages.append(message) } else { events.append(event) }
        }
    }

    func nextPacket(at now: Instant) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0xEE, count: 1_200)
        var elements = buffer.mutableSpan
        var span = unsafe elements.mutableBytes
        guard let packet = association.nextPacket(into: &span, dataBudget: dataBudget, at: now) else { return nil }
        return Array(buffer.prefix(packet.byteCount))
    }

    /// - Returns: whether it was queued.
    @discardableResult
    func send(
        _ bytes: [UInt8],
        on number: UInt16 = 0,
        _ policy: SendPolicy = SendPolicy(),
        at now: Instant
    ) -> Bool {
        do { try association.send(bytes, as: .binary, on: stream(number), policy: policy, at: now) } catch {
            return false
        }
        return true
    }

    /// Why a message is not queued.
    func refusal(_ count: Int, on number: UInt16 = 0, at now: Instant) -> SendError? {
        do {
            try association.send([UInt8](repeating: 1, count: count), as: .binary, on: stream(number), at: now)
            return nil
        } catch { return error }
    }
}

/// What a direction of the link does to packets.
struct LinkConditions: Sendable {
    var lossPercent = 0.0
    var duplicatePercent = 0.0
    var reorderPercent = 0.0
    var delay = Interval.milliseconds(10)
    /// Bits a second; `nil` for no limit.
    var rate: Int?
}

/// Two associations with a link between them, in virtual time.
final class Pair {
    struct Flight {
        let arrival: Instant
        let target: Int
        let bytes: [UInt8]
    }

    var now = at(0)
    let nodes: [Node]
    var conditions: LinkConditions
    var generator: SeededGenerator
    var flights: [Flight] = []
    /// Loses what it returns `true` for: source and packet.
    var loses: ((Int, [UInt8]) -> Bool)?
    var sentPackets = [0, 0]
    var events = 0
    private var busyUntil = [at(0), at(0)]

    var left: Node { nodes[0] }
    var right: Node { nodes[1] }

    init(
        seed: UInt64 = 1,
        _ conditions: LinkConditions = LinkConditions(),
        left: AssociationSettings = AssociationSettings(),
        right: AssociationSettings = AssociationSettings()
    ) {
        generator = SeededGenerator(seed: seed)
        self.conditions = conditions
        nodes = [Node(left, &generator), Node(right, &generator)]
    }

    /// Both connected.
    static func connected(
        seed: UInt64 = 1,
        _ conditions: LinkConditions = LinkConditions(),
        left: AssociationSettings = AssociationSettings(),
        right: AssociationSettings = AssociationSettings()
    ) -> Pair {
        let pair = Pair(seed: seed, LinkConditions(), left: left, right: right)
        pair.left.association.connect(at: pair.now)
        pair.run(for: .milliseconds(200))
        pair.conditions = conditions
        return pair
    }

    private func chance(_ percent: Double) -> Bool {
        percent > 0 && Double.random(in: 0..<100, using: &generator) < percent
    }

    func flush() {
        for index in 0..<2 {
            nodes[index].take()
            while let packet = nodes[index].nextPacket(at: now) { transmit(packet, from: index) }
        }
    }

    private func transmit(_ packet: [UInt8], from source: Int) {
        sentPackets[source] += 1
        if loses?(source, packet) == true || chance(conditions.lossPercent) { return }
        var leaves = now
        if let rate = conditions.rate {
            leaves = max(now, busyUntil[source]) + .nanoseconds((packet.count + 70) * 8 * 1_000_000 / (rate / 1_000))
            busyUntil[source] = leaves
        }
        let copies = chance(conditions.duplicatePercent) ? 2 : 1
        for _ in 0..<copies {
            let extra = chance(conditions.reorderPercent) ? conditions.delay : .zero
            add(Flight(arrival: leaves + conditions.delay + extra, target: 1 - source, bytes: packet))
        }
    }

    private func add(_ flight: Flight) {
        var index = flights.count
        while index > 0, flights[index - 1].arrival > flight.arrival { index -= 1 }
        flights.insert(flight, at: index)
    }

    /// Runs until `end` or, if that is earlier, until `isDone`.
    func run(for interval: Interval, until isDone: () -> Bool = { false }) {
        let end = now + interval
        flush()
        while !isDone() {
            var next = flights.first?.arrival
            for node in nodes { next = earliest(next, node.association.nextDeadline) }
            guard let next, next <= end else { break }
            now = max(now, next)
            events += 1
            precondition(events < 2_000_000, "a storm of events at \(now)")
            while let flight = flights.first, flight.arrival <= now {
                flights.removeFirst()
                nodes[flight.target].receive(flight.bytes, at: now)
            }
            for node in nodes {
                if let deadline = node.association.nextDeadline, deadline <= now {
                    node.association.handleTimeout(at: now)
                }
            }
            flush()
        }
        if !isDone() { now = end }
    }
}

/// Bytes that tell their number and length.
func payload(_ number: Int, count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: max(count, 4))
    for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
    return bytes
}

func number(of bytes: [UInt8]) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) } }
