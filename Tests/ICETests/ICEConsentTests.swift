import Base
import Testing
import Wire

@testable import ICE

/// A peer that is sent media, in virtual time: its own checks go on, and a closure answers those of the agent.
private struct ConsentScene {
    /// Between two checks of the peer, about as in browsers.
    private static let checkInterval = 2.0
    private static let stepsMax = 20_000

    struct Asked {
        let at: Instant
        let check: Sent
    }

    var lite = LiteScene()
    private(set) var now = at(0)
    /// The pair of the peer's own checks; `nil` for a peer that sends none.
    var home: NetworkPath? = path(1)
    private var nextCheckAt = at(Self.checkInterval)
    private var lastNumber: UInt64 = 1_000
    /// The agent's checks.
    private(set) var checks: [Asked] = []
    private(set) var events: [ICEEvent] = []
    /// What the agent said of the answers.
    private(set) var outcomes: [Outcome] = []

    /// - Parameter requiresConsent: the peer is sent media from the beginning.
    init(requiresConsent: Bool = true) {
        if requiresConsent { lite.agent.requireConsent(at: now) }
        _ = lite.check(1, on: path(1), at: now, nominates: true)
        _ = lite.agent.markVerified(path(1), at: now)
        lite.batch.removeAll()
    }

    var selectedPath: NetworkPath? { lite.agent.selectedPath }
    /// The identifiers of the agent's checks, a retransmission once.
    var identifiers: Set<STUNTransactionID> { Set(checks.compactMap(\.check.transactionID)) }
    /// The times between the agent's checks.
    var intervals: [Interval] { zip(checks, checks.dropFirst()).map { $1.at - $0.at } }

    /// Runs until `end`, from one deadline to the next. Every check of the agent is handed to `answer`, whose response
    /// arrives at once.
    mutating func run(until end: Instant, _ answer: (Sent) -> (bytes: [UInt8], path: NetworkPath)? = { _ in nil }) {
        for _ in 0..<Self.stepsMax {
            guard let next = earliest(lite.agent.nextDeadline, home == nil ? nil : nextCheckAt), next <= end else {
                now = end
                return
            }
            now = max(now, next)
            if let home, nextCheckAt <= now {
                lastNumber += 1
                note(lite.check(lastNumber, on: home, at: now))
                nextCheckAt = now + .seconds(Self.checkInterval)
            }
            if let event = lite.agent.handleTimeout(at: now, into: lite.batch) { events.append(event) }
            deliver(answer)
        }
        Issue.record("a deadline does not move on")
    }

    /// Runs with a client that answers.
    mutating func runAnswering(until end: Instant) { run(until: end) { ($0.response(), $0.path) } }

    private mutating func deliver(_ answer: (Sent) -> (bytes: [UInt8], path: NetworkPath)?) {
        for sent in lite.batch.take() where sent.messageClass == .request {
            checks.append(Asked(at: now, check: sent))
            guard let response = answer(sent) else { continue }
            let outcome = lite.deliver(response.bytes, on: response.path, at: now)
            outcomes.append(outcome)
            note(outcome)
        }
    }

    private mutating func note(_ outcome: Outcome) {
        if case .event(let event?) = outcome { events.append(event) }
    }

    /// Delivers a response by itself.
    mutating func deliver(_ bytes: [UInt8], on path: NetworkPath) -> Outcome { lite.deliver(bytes, on: path, at: now) }

    /// The peer nominates a pair and answers the check that follows `delay` later.
    mutating func move(to target: NetworkPath, answeringAfter delay: Interval) throws {
        lastNumber += 1
        let nominated = lite.check(lastNumber, on: target, at: now, nominates: true)
        #expect(nominated == .event(nil))
        let sent = lite.batch.take()
        let check = try #require(sent.first { $0.messageClass == .request })
        now += delay
        let answered = lite.deliver(check.response(), on: target, at: now)
        #expect(answered == .event(.pathSelected(target)))
        home = target
    }
}

/// Consent by answers (RFC 7675): a peer's checks can come from anywhere, with a false source, so they alone do not keep
/// media flowing to where the peer was once.
struct ICEConsentTests {
    @Test func `sending stops after thirty seconds without an answer, although the peer's own checks go on`() {
        var scene = ConsentScene()
        scene.run(until: at(29.999))
        #expect(scene.selectedPath == path(1))
        scene.run(until: at(30))
        #expect(scene.selectedPath == nil)
        #expect(scene.events.isEmpty && !scene.lite.agent.hasEnded)
        #expect(scene.lite.agent.lastHeardAt == nil)
        // The last check before that came at 28 s, and no later one gives the peer more time to answer.
        #expect(scene.lite.agent.nextDeadline == at(58))
        scene.run(until: at(57.9))
        #expect(!scene.lite.agent.hasEnded && scene.selectedPath == nil)
        scene.run(until: at(600))
        #expect(scene.events == [.failed])
        #expect(scene.lite.agent.hasEnded)
    }

    @Test func `a peer that answers is asked every four to six seconds, each time anew, and goes on`() {
        var scene = ConsentScene()
        scene.runAnswering(until: at(3_600))
        #expect(scene.selectedPath == path(1))
        #expect(scene.events.isEmpty)
        #expect((600...900).contains(scene.checks.count))
        #expect(scene.identifiers.count == scene.checks.count)
        #expect(scene.intervals.allSatisfy { $0 >= .seconds(4) && $0 <= .seconds(6) })
        // Randomized: neither all alike nor two groups.
        #expect(Set(scene.intervals.map { $0.nanoseconds / 100_000_000 }).count > 15)
        #expect(scene.checks.allSatisfy { $0.check.path == path(1) })
        #expect(scene.lite.agent.counters.consentChecksSent == scene.checks.count)
        #expect(scene.lite.agent.counters.consentChecksAnswered == scene.checks.count)
        #expect(scene.lite.agent.counters.checksSent == 0 && scene.lite.agent.counters.checksAnswered == 0)
    }

    @Test func `two agents ask at different times`() {
        let starts = (0..<8 as Range<UInt64>).map { tieBreaker in
            var scene = ConsentScene()
            scene.lite.agent = ICELiteAgent(
                local: LiteScene.server,
                remote: LiteScene.client,
                at: at(0),
                tieBreaker: tieBreaker,
                pathSecret: 9
            )
            scene.lite.agent.requireConsent(at: at(0))
            _ = scene.lite.check(1, on: path(1), at: at(0), nominates: true)
            _ = scene.lite.agent.markVerified(path(1), at: at(0))
            return scene.lite.agent.nextDeadline
        }
        #expect(Set(starts).count == starts.count)
    }

    @Test func `a check is a request with the peer's credentials and ours, in the controlled role`() throws {
        var scene = ConsentScene()
        scene.run(until: at(6))
        let check = try #require(scene.checks.first?.check)
        #expect(check.isAuthentic(password: LiteScene.client.password))
        #expect(check.username == "\(LiteScene.client.usernameFragment):\(LiteScene.server.usernameFragment)")
        #expect(!check.useCandidate)
        let bytes = check.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        let (controlled, controlling) = (message.iceControlled, message.iceControlling)
        let unknown = message.unknownAttributeCount
        #expect(controlled != nil && controlling == nil && unknown == 0)
    }

    @Test func `an unanswered check is followed by others each second, with other identifiers`() {
        var scene = ConsentScene()
        scene.run(until: at(29.9))
        #expect((23...26).contains(scene.checks.count))
        #expect(scene.intervals.allSatisfy { $0 == .seconds(1) })
        #expect(scene.identifiers.count == scene.checks.count)
    }

    @Test func `one answer in twenty-five seconds is enough`() {
        var scene = ConsentScene()
        for round in 1...20 {
            let end = at(25 * Double(round))
            scene.run(until: end)
            #expect(scene.selectedPath == path(1), "round \(round)")
            var isAnswered = false
            scene.run(until: end + .seconds(2)) { sent in
                if isAnswered { return nil }
                isAnswered = true
                return (sent.response(), sent.path)
            }
        }
        #expect(scene.events.isEmpty)
    }

    private static let worthless: [(String, Outcome, @Sendable (Sent) -> (bytes: [UInt8], path: NetworkPath)?)] = [
        (
            "a guessed identifier", .dropped(.unknownTransaction),
            { sent in
                let id = sent.transactionID ?? STUNTransactionID(high: 0, low: 0)
                return (sent.response(id: STUNTransactionID(high: id.high, low: id.low ^ 1)), sent.path)
            }
        ),
        (
            "the identifier of a check of the peer's own", .dropped(.unknownTransaction),
            { ($0.response(id: STUNTransactionID(high: 0, low: 1_001)), $0.path) }
        ),
        ("another address", .dropped(.unknownTransaction), { ($0.response(), path(2)) }),
        ("another port", .dropped(.unknownTransaction), { ($0.response(), path(1, port: 5_001)) }),
        ("another socket", .dropped(.unknownTransaction), { ($0.response(), path(1, socket: 1)) }),
        ("no integrity", .dropped(.missingIntegrity), { ($0.response(hasIntegrity: false), $0.path) }),
        ("the server's password", .dropped(.wrongIntegrity), { ($0.response(from: LiteScene.server), $0.path) }),
        ("another client's password", .dropped(.wrongIntegrity), { ($0.response(from: credentials(9)), $0.path) }),
        ("an error", .dropped(.unknownTransaction), { ($0.response(messageClass: .error), $0.path) }),
        ("an indication", .event(nil), { ($0.response(messageClass: .indication), $0.path) }),
    ]

    @Test(arguments: worthless.indices)
    func `a response that does not show that the peer received the check counts for nothing`(row: Int) {
        let (name, outcome, respond) = Self.worthless[row]
        var scene = ConsentScene()
        scene.run(until: at(30), respond)
        #expect(scene.selectedPath == nil, "\(name)")
        #expect(scene.outcomes.count > 20 && scene.outcomes.allSatisfy { $0 == outcome }, "\(name)")
        #expect(scene.lite.agent.counters.consentChecksAnswered == 0, "\(name)")
        #expect(scene.lite.agent.counters.checksAnswered == 0, "\(name)")
    }

    @Test func `an answer counts once, and what was known of earlier checks is worth nothing later`() throws {
        var scene = ConsentScene()
        scene.runAnswering(until: at(20))
        let last = try #require(scene.checks.last)
        let earlier = scene.checks.map { $0.check.response() }
        #expect(scene.deliver(last.check.response(), on: path(1)) == .dropped(.unknownTransaction))
        scene.run(until: last.at + .seconds(29.999)) { sent in (earlier[0], sent.path) }
        #expect(scene.selectedPath == path(1))
        for response in earlier {
            #expect(scene.deliver(response, on: path(1)) == .dropped(.unknownTransaction))
        }
        scene.run(until: last.at + .seconds(30))
        #expect(scene.selectedPath == nil)
    }

    @Test func `consent counts from the check that was answered, so one that was kept back adds nothing`() throws {
        var scene = ConsentScene()
        scene.run(until: at(6))
        let first = try #require(scene.checks.first)
        scene.run(until: first.at + .seconds(14))
        #expect(scene.deliver(first.check.response(), on: path(1)) == .event(nil))
        scene.run(until: first.at + .seconds(29.999))
        #expect(scene.selectedPath == path(1))
        scene.run(until: first.at + .seconds(30))
        #expect(scene.selectedPath == nil)
    }

    @Test func `answers that overtake each other take no time away`() throws {
        var scene = ConsentScene()
        scene.run(until: at(6))
        let first = try #require(scene.checks.first)
        scene.run(until: at(15))
        let last = try #require(scene.checks.last)
        #expect(last.at - first.at > .seconds(8))
        for check in [last.check, first.check] { #expect(scene.deliver(check.response(), on: path(1)) == .event(nil)) }
        scene.run(until: last.at + .seconds(29.999))
        #expect(scene.selectedPath == path(1))
        scene.run(until: last.at + .seconds(30))
        #expect(scene.selectedPath == nil)
    }

    @Test func `an answer that is older than consent counts for nothing`() throws {
        var scene = ConsentScene()
        var first: Sent?
        scene.run(until: at(6)) { sent in
            first = first ?? sent
            return nil
        }
        let kept = try #require(first)
        scene.runAnswering(until: at(40))
        #expect(scene.deliver(kept.response(), on: path(1)) == .dropped(.unknownTransaction))
        #expect(scene.selectedPath == path(1))
    }

    @Test func `without the peer's own checks consent ends thirty seconds after the last, whatever it answers`() {
        var scene = ConsentScene()
        scene.home = nil
        scene.runAnswering(until: at(29.999))
        #expect(scene.selectedPath == path(1))
        scene.runAnswering(until: at(40))
        #expect(scene.selectedPath == nil)
        #expect(scene.events == [.consentExpired])
    }

    @Test func `a peer that answers again after sending stopped is sent to again`() {
        var scene = ConsentScene()
        scene.run(until: at(41))
        #expect(scene.selectedPath == nil)
        // No timer sends checks any more: each check of the peer gets one of ours.
        #expect(scene.checks.filter { $0.at > at(30) }.map { $0.at } == [at(32), at(34), at(36), at(38), at(40)])
        scene.runAnswering(until: at(43))
        #expect(scene.events == [.pathSelected(path(1))])
        #expect(scene.selectedPath == path(1))
        scene.runAnswering(until: at(200))
        #expect(scene.selectedPath == path(1))
        scene.run(until: at(231))
        #expect(scene.selectedPath == nil)
    }

    @Test func `an answer to a check from before sending stopped is enough to go on, while it is fresh`() throws {
        var scene = ConsentScene()
        scene.run(until: at(31))
        let last = try #require(scene.checks.last { $0.at < at(30) })
        #expect(scene.deliver(last.check.response(), on: path(1)) == .event(.pathSelected(path(1))))
        scene.run(until: last.at + .seconds(29.999))
        #expect(scene.selectedPath == path(1))
        scene.run(until: last.at + .seconds(30))
        #expect(scene.selectedPath == nil)
    }

    // MARK: - Another pair

    @Test func `on another pair consent begins anew, with the check that verified it`() throws {
        var scene = ConsentScene()
        scene.runAnswering(until: at(20))
        try scene.move(to: path(2), answeringAfter: .seconds(1))
        #expect(scene.selectedPath == path(2))
        scene.run(until: at(49.999))
        #expect(scene.selectedPath == path(2))
        #expect(scene.checks.suffix(10).allSatisfy { $0.check.path == path(2) })
        scene.run(until: at(50))
        #expect(scene.selectedPath == nil)
    }

    @Test func `answers from the pair before do not count for the pair that is selected`() throws {
        var scene = ConsentScene()
        scene.run(until: at(10))
        let old = scene.checks.map(\.check)
        #expect(old.count > 3)
        try scene.move(to: path(2), answeringAfter: .milliseconds(50))
        for check in old { #expect(scene.deliver(check.response(), on: path(2)) == .dropped(.unknownTransaction)) }
        for check in old { #expect(scene.deliver(check.response(), on: path(1)) == .event(nil)) }
        #expect(scene.selectedPath == path(2))
        scene.run(until: at(40))
        #expect(scene.selectedPath == nil)
    }

    @Test func `nominations of other pairs, which are not verified, keep no consent alive`() {
        var scene = ConsentScene()
        for second in 1...29 {
            scene.run(until: at(Double(second)))
            _ = scene.lite.check(UInt64(second) + 1, on: path(UInt32(2 + second % 2)), at: scene.now, nominates: true)
        }
        #expect(scene.selectedPath == path(1))
        scene.run(until: at(30))
        #expect(scene.selectedPath == nil)
        // Back to the pair that was proven once.
        _ = scene.lite.check(500, on: path(1), at: at(31), nominates: true)
        scene.run(until: at(32))
        #expect(scene.selectedPath == nil)
    }

    // MARK: - ICE restarts

    @Test func `restarts give no more time to answer`() {
        var scene = ConsentScene()
        for second in 1...29 {
            scene.run(until: at(Double(second)))
            #expect(scene.selectedPath == path(1))
            scene.lite.agent.restart(
                local: credentials(100 + UInt64(second)),
                remote: credentials(200 + UInt64(second)),
                at: scene.now
            )
        }
        scene.run(until: at(30))
        #expect(scene.selectedPath == nil)
        scene.run(until: at(60))
        #expect(scene.lite.agent.hasEnded)
    }

    @Test func `during a restart the pair is asked at once, with its own credentials, and its answers count`() throws {
        var scene = ConsentScene()
        scene.runAnswering(until: at(6))
        let before = scene.checks.count
        scene.lite.restart(at: scene.now)
        #expect(scene.lite.agent.nextDeadline == at(6))
        scene.runAnswering(until: at(100))
        #expect(scene.selectedPath == path(1))
        #expect(scene.checks[before].at == at(6))
        for check in scene.checks.map(\.check) {
            #expect(check.isAuthentic(password: LiteScene.client.password))
            #expect(check.username == "\(LiteScene.client.usernameFragment):\(LiteScene.server.usernameFragment)")
        }
        // With the new credentials the same pair is another matter: they are asked for from now on.
        #expect(
            scene.lite.restartedCheck(9_000, on: path(1), at: scene.now, nominates: true)
                == .event(.pathSelected(path(1)))
        )
        scene.home = nil
        scene.run(until: at(110)) { ($0.response(from: LiteScene.clientRestarted), $0.path) }
        let last = try #require(scene.checks.last?.check)
        #expect(last.isAuthentic(password: LiteScene.clientRestarted.password))
        #expect(scene.outcomes.last == .event(nil))
    }

    @Test func `a check from before a restart cannot be answered after it`() throws {
        var scene = ConsentScene()
        scene.run(until: at(10))
        let old = scene.checks.map(\.check)
        scene.lite.restart(at: scene.now)
        for check in old {
            for client in [LiteScene.client, LiteScene.clientRestarted] {
                let outcome = scene.deliver(check.response(from: client), on: path(1))
                #expect(outcome == .dropped(.unknownTransaction))
            }
        }
    }

    // MARK: - Peers that need not answer

    @Test func `a peer that is sent nothing but answers and reports is not asked`() {
        var scene = ConsentScene(requiresConsent: false)
        scene.run(until: at(3_600))
        #expect(scene.selectedPath == path(1))
        #expect(scene.checks.isEmpty && scene.events.isEmpty)
        #expect(scene.lite.agent.counters == ICECounters())
    }

    @Test func `a peer that is sent media later is asked at once, and has thirty seconds, once`() {
        var scene = ConsentScene(requiresConsent: false)
        scene.run(until: at(100))
        scene.lite.agent.requireConsent(at: scene.now)
        #expect(scene.lite.agent.nextDeadline == at(100))
        for second in 101...129 {
            scene.run(until: at(Double(second)))
            #expect(scene.selectedPath == path(1))
            scene.lite.agent.requireConsent(at: scene.now)
        }
        #expect(scene.checks.first?.at == at(100))
        scene.run(until: at(130))
        #expect(scene.selectedPath == nil)
    }

    @Test func `no check is sent before the handshake proved a pair`() {
        var lite = LiteScene()
        lite.agent.requireConsent(at: at(0))
        for second in 0...60 {
            _ = lite.check(UInt64(second), on: path(1), at: at(Double(second)), nominates: true)
            #expect(lite.agent.handleTimeout(at: at(Double(second))) == nil)
        }
        #expect(lite.batch.take().allSatisfy { $0.messageClass == .success })
        #expect(lite.agent.counters.consentChecksSent == 0)
    }

    @Test func `after a handshake that proved no pair, consent begins with the check that does`() throws {
        var lite = LiteScene()
        lite.agent.requireConsent(at: at(0))
        _ = lite.check(1, on: path(1), at: at(0), nominates: true)
        lite.batch.removeAll()
        lite.agent.requireVerification(at: at(5), into: lite.batch)
        let check = try #require(lite.batch.take().first)
        #expect(lite.deliver(check.response(), on: path(1), at: at(6)) == .event(.pathSelected(path(1))))
        for second in 7...34 {
            _ = lite.check(UInt64(second), on: path(1), at: at(Double(second)))
            #expect(lite.agent.handleTimeout(at: at(Double(second)), into: lite.batch) == nil)
            lite.batch.removeAll()
            #expect(lite.agent.selectedPath == path(1))
        }
        _ = lite.agent.handleTimeout(at: at(35), into: lite.batch)
        #expect(lite.agent.selectedPath == nil)
    }
}

/// The register of an agent's own checks.
struct ICEPathChecksTests {
    private static let key: [UInt8] = [1, 2, 3]

    @Test func `a check is known on its own pair, until consent would be over`() throws {
        var checks = ICEPathChecks(secret: 9)
        let id = checks.start(over: path(1), key: Self.key, at: at(0))
        #expect(checks.check(id, over: path(2), at: at(1)) == nil)
        let found = try #require(checks.check(id, over: path(1), at: at(29.999)))
        #expect(found.sentAt == at(0) && found.key == Self.key)
        #expect(checks.check(id, over: path(1), at: at(30)) == nil)
        checks.remove(id)
        #expect(checks.check(id, over: path(1), at: at(1)) == nil)
    }

    @Test func `at most sixteen checks can be answered, the newest`() {
        var checks = ICEPathChecks(secret: 9)
        let ids = (0..<40).map { _ in checks.start(over: path(1), key: Self.key, at: at(0)) }
        #expect(Set(ids).count == 40)
        #expect(checks.outstanding.map(\.id) == Array(ids.suffix(16)))
    }

    @Test func `a check to verify a pair is the same for half a second, and on each pair another`() {
        var checks = ICEPathChecks(secret: 9)
        let first = checks.verify(path(1), key: Self.key, at: at(0))
        #expect(checks.verify(path(1), key: Self.key, at: at(0.499)) == first)
        #expect(checks.verify(path(2), key: Self.key, at: at(0.1)) != first)
        let second = checks.verify(path(1), key: Self.key, at: at(0.5))
        #expect(second != first)
        #expect(checks.verify(path(1), key: Self.key, at: at(0.999)) == second)
        #expect(checks.outstanding.count == 3)
    }

    @Test func `a check to verify a pair is not repeated with the credentials of an ICE restart`() throws {
        var checks = ICEPathChecks(secret: 9)
        let first = checks.start(over: path(1), key: Self.key, at: at(0))
        let second = checks.verify(path(1), key: [4], at: at(0.1))
        #expect(second != first)
        let found = try #require(checks.check(second, over: path(1), at: at(0.2)))
        #expect(found.key == [4])
    }

    @Test func `a check for consent is never the same`() {
        var checks = ICEPathChecks(secret: 9)
        let first = checks.start(over: path(1), key: Self.key, at: at(0))
        #expect(checks.start(over: path(1), key: Self.key, at: at(0)) != first)
    }

    @Test func `nobody can tell the next identifier without the secret`() {
        let runs = ([1, 2, 3] as [UInt64]).map { secret in
            var checks = ICEPathChecks(secret: secret)
            return (0..<10).map { _ in checks.start(over: path(1), key: Self.key, at: at(0)) }
        }
        #expect(Set(runs.joined()).count == 30)
    }
}
