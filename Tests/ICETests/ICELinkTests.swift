import Base
import ICE
import TestSupport
import Testing
import Wire

/// A controlling and a lite agent with a lossy, reordering, duplicating link between them, in virtual time.
private struct Link {
    struct Flight {
        let arrival: Instant
        let toServer: Bool
        let path: NetworkPath
        let bytes: [UInt8]
    }
    static let client = credentials(1)
    static let server = credentials(2)
    static let addresses = [path(1), path(2), path(3)]

    var now = at(0)
    var lossPercent = 0
    var duplicatePercent = 0
    /// Paths that lose every packet.
    var dead: Set<NetworkPath> = []
    var generator: SeededGenerator
    var controlling: ICEControllingAgent
    var lite = ICELiteAgent(local: server, remote: client, at: at(0), tieBreaker: 1, pathSecret: 9)
    var flights: [Flight] = []
    var controllingEvents: [ICEEvent] = []
    var liteEvents: [ICEEvent] = []
    let batch = DatagramBatch(capacity: 64)

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        controlling = ICEControllingAgent(
            local: Self.client,
            remote: Self.server,
            candidates: Self.addresses,
            at: at(0),
            tieBreaker: 7,
            using: &generator
        )
    }

    /// Runs event by event until `end`.
    mutating func run(until end: Instant) {
        while true {
            var next = earliest(controlling.nextDeadline, lite.nextDeadline)
            for flight in flights { next = earliest(next, flight.arrival) }
            guard let next, next <= end else { break }
            now = max(now, next)
            deliverArrived()
            if let event = controlling.handleTimeout(at: now, into: batch) { controllingEvents.append(event) }
            launch(toServer: true)
            if let event = lite.handleTimeout(at: now, into: batch) { liteEvents.append(event) }
            launch(toServer: false)
        }
        now = end
    }

    /// The handshake is complete, and the server has media for the client.
    mutating func startMedia() {
        guard let selected = lite.selectedPath else { preconditionFailure("a pair is selected") }
        lite.requireConsent(at: now)
        _ = lite.markVerified(selected, at: now)
    }

    private mutating func deliverArrived() {
        let arrived = flights.filter { $0.arrival <= now }
        flights.removeAll { $0.arrival <= now }
        for flight in arrived {
            guard let message = try? STUNMessageView(unsafe flight.bytes.span.bytes) else { continue }
            if flight.toServer {
                if let event = try? lite.handle(message, path: flight.path, at: now, into: batch) {
                    liteEvents.append(event)
                }
            } else if let event = try? controlling.handle(message, path: flight.path, at: now, into: batch) {
                controllingEvents.append(event)
            }
            launch(toServer: !flight.toServer)
        }
    }

    /// Both sides use the same paths, as if there were no NAT.
    private mutating func launch(toServer: Bool) {
        for sent in batch.take() where !dead.contains(sent.path) {
            let copies = Int.random(in: 0..<100, using: &generator) < duplicatePercent ? 2 : 1
            for _ in 0..<copies where Int.random(in: 0..<100, using: &generator) >= lossPercent {
                let delay = Interval.milliseconds(Int.random(in: 10...120, using: &generator))
                flights.append(
                    Flight(arrival: now + delay, toServer: toServer, path: sent.path, bytes: sent.bytes)
                )
            }
        }
    }
}

struct ICELinkTests {
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `two agents select the same pair over a link with 33 % loss, duplication and reordering`(seed: UInt64) throws {
        var link = Link(seed: seed)
        link.lossPercent = 33
        link.duplicatePercent = 20
        link.run(until: at(29))
        let selected = try #require(link.controlling.selectedPath, "seed \(seed)")
        #expect(link.lite.selectedPath == selected, "seed \(seed)")
        #expect(link.controllingEvents == [.pathSelected(selected)], "seed \(seed)")
        #expect(link.liteEvents.last == .pathSelected(selected), "seed \(seed)")
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `consent holds for an hour over a link with 10 % loss`(seed: UInt64) {
        var link = Link(seed: seed)
        link.lossPercent = 10
        link.run(until: at(3600))
        #expect(link.controllingEvents.count == 1, "seed \(seed)")
        #expect(link.liteEvents.count == 1, "seed \(seed)")
        #expect(link.lite.selectedPath != nil, "seed \(seed)")
        #expect(link.lite.selectedPath == link.controlling.selectedPath, "seed \(seed)")
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `media goes on for an hour over a link with 10 % loss, to a client that answers`(seed: UInt64) {
        var link = Link(seed: seed)
        link.run(until: at(5))
        link.startMedia()
        link.lossPercent = 10
        link.run(until: at(3600))
        #expect(link.controllingEvents.count == 1, "seed \(seed)")
        #expect(link.liteEvents.count == 1, "seed \(seed)")
        #expect(link.lite.selectedPath != nil, "seed \(seed)")
        // One in five is lost on one of the two ways, and repeated.
        let (sent, answered) = (link.lite.counters.consentChecksSent, link.lite.counters.consentChecksAnswered)
        #expect((600...1_000).contains(answered), "seed \(seed): \(answered)")
        #expect(sent > answered && sent < answered * 3 / 2, "seed \(seed): \(sent) for \(answered)")
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `a client that restarts and moves under media answers on the way`(seed: UInt64) throws {
        var link = Link(seed: seed)
        link.run(until: at(5))
        link.startMedia()
        link.lossPercent = 5
        for step in 1...10 {
            let number = UInt64(10 * step)
            link.lite.restart(local: credentials(number), remote: credentials(number + 1), at: link.now)
            link.controlling.restart(local: credentials(number + 1), remote: credentials(number), at: link.now)
            link.run(until: link.now + .seconds(20))
            link.controlling.nominate(path(UInt32(100 + step)), at: link.now)
            link.run(until: link.now + .seconds(20))
            #expect(link.lite.selectedPath == path(UInt32(100 + step)), "seed \(seed), step \(step)")
            #expect(link.lite.selectedPath == link.controlling.selectedPath, "seed \(seed), step \(step)")
        }
        #expect(!link.liteEvents.contains(.consentExpired) && !link.liteEvents.contains(.failed), "seed \(seed)")
    }

    @Test func `a dead pair is not selected`() {
        var link = Link(seed: 5)
        link.dead = [Link.addresses[0], Link.addresses[1]]
        link.run(until: at(5))
        #expect(link.controlling.selectedPath == Link.addresses[2])
        #expect(link.lite.selectedPath == Link.addresses[2])
    }

    @Test func `when the link dies, consent expires on both sides thirty seconds after the last message`() {
        var link = Link(seed: 6)
        link.run(until: at(10))
        link.dead = Set(Link.addresses)
        link.run(until: at(41))
        #expect(link.controllingEvents.last == .consentExpired)
        #expect(link.liteEvents.last == .consentExpired)
        #expect(link.lite.selectedPath == nil)
        #expect(link.controlling.selectedPath == nil)
    }

    @Test func `on a dead link both sides fail at the setup timeout, not before`() {
        var link = Link(seed: 7)
        link.dead = Set(Link.addresses)
        link.run(until: at(29.9))
        #expect(link.liteEvents.isEmpty && link.controllingEvents.isEmpty)
        link.run(until: at(30))
        #expect(link.liteEvents == [.failed])
        #expect(link.controllingEvents == [.failed])
    }

    @Test func `the server follows a client that changes its address`() {
        var link = Link(seed: 8)
        link.run(until: at(5))
        let moved = path(77)
        link.controlling.nominate(moved, at: at(5))
        link.run(until: at(6))
        #expect(link.controlling.selectedPath == moved)
        #expect(link.lite.selectedPath == moved)
        link.run(until: at(120))
        #expect(link.lite.selectedPath == moved)
        #expect(link.liteEvents.last == .pathSelected(moved))
    }

    @Test func `a nomination of a dead pair does not change the selected pair`() throws {
        var link = Link(seed: 8)
        link.run(until: at(5))
        let selected = try #require(link.controlling.selectedPath)
        link.dead = [path(77)]
        link.controlling.nominate(path(77), at: at(5))
        link.run(until: at(120))
        #expect(link.controlling.selectedPath == selected)
        #expect(link.lite.selectedPath == selected)
        #expect(link.controlling.isKnown(selected))
        #expect(!link.controlling.isKnown(path(77)))
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `a restart on a lossy link never leaves either side without a pair`(seed: UInt64) throws {
        var link = Link(seed: seed)
        link.lossPercent = 20
        link.duplicatePercent = 20
        link.run(until: at(20))
        let before = try #require(link.lite.selectedPath, "seed \(seed)")
        // The server answers the restart at once; the client learns of it 100 ms later and has lost the old pair.
        link.lite.restart(local: credentials(3), remote: credentials(4), at: link.now)
        link.run(until: at(20.1))
        link.dead = [before]
        link.controlling.restart(local: credentials(4), remote: credentials(3), at: link.now)
        for step in 1...40 {
            link.run(until: at(20.1 + Double(step) * 0.25))
            #expect(link.lite.selectedPath != nil, "seed \(seed)")
            #expect(link.controlling.selectedPath != nil, "seed \(seed)")
        }
        let after = try #require(link.lite.selectedPath, "seed \(seed)")
        #expect(after != before, "seed \(seed)")
        #expect(link.controlling.selectedPath == after, "seed \(seed)")
        #expect(link.lite.isKnown(before) == false, "seed \(seed)")
        link.run(until: at(100))
        #expect(link.lite.selectedPath == after, "seed \(seed)")
    }

    @Test func `an agent with other credentials answers no check`() {
        var link = Link(seed: 9)
        link.lite = ICELiteAgent(
            local: credentials(21),
            remote: credentials(22),
            at: at(0),
            tieBreaker: 1,
            pathSecret: 9
        )
        link.run(until: at(31))
        #expect(link.controllingEvents == [.failed])
        #expect(link.liteEvents == [.failed])
    }
}
