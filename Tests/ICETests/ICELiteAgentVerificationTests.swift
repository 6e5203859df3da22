import Base
import ICE
import Testing
import Wire

/// Changes of the selected pair once one was verified, and the end of consent.
struct ICELiteAgentVerificationTests {
    /// An agent whose first pair was nominated and verified at the start.
    private func makeScene() -> LiteScene {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        #expect(scene.agent.markVerified(path(1), at: at(0)) == nil)
        return scene
    }

    @Test func `a nominated pair is selected when it is verified, not before`() {
        var scene = makeScene()
        #expect(scene.check(2, on: path(2), at: at(1), nominates: true) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.agent.counters.unverifiedNominations == 1)
        #expect(scene.agent.markVerified(path(1), at: at(1)) == nil)
        #expect(scene.agent.markVerified(path(2), at: at(2)) == .pathSelected(path(2)))
        #expect(scene.agent.selectedPath == path(2))
        #expect(scene.agent.nextDeadline == at(31), "consent counts from the check, not from the verification")
    }

    /// The check that the agent sent, and the response of a client with these credentials.
    private func answer(
        to sent: [Sent],
        password: String = LiteScene.client.password,
        alteringID: Bool = false
    ) throws -> [UInt8] {
        let check = try #require(sent.first { $0.messageClass == .request })
        #expect(check.isAuthentic(password: LiteScene.client.password))
        #expect(check.username == "\(LiteScene.client.usernameFragment):\(LiteScene.server.usernameFragment)")
        var id = try #require(check.transactionID)
        if alteringID { id = STUNTransactionID(high: id.high, low: id.low ^ 1) }
        var response = STUNMessageBuilder(.success, transactionID: id)
        response.appendXORMappedAddress(check.path.remote)
        response.appendMessageIntegrity(key: Array(password.utf8))
        response.appendFingerprint()
        return response.bytes
    }

    @Test func `a check that nominates an unverified pair triggers a check, whose response verifies the pair`()
        throws
    {
        var scene = makeScene()
        scene.batch.removeAll()
        let request = Check(2, to: LiteScene.server, from: LiteScene.client, nominates: true).bytes
        #expect(scene.deliver(request, on: path(2), at: at(1)) == .event(nil))
        let sent = scene.batch.take()
        #expect(sent.map(\.path) == [path(2), path(2)])
        #expect(sent.reduce(0) { $0 + $1.bytes.count } <= 2 * request.count)
        let response = try answer(to: sent)
        #expect(scene.deliver(response, on: path(2), at: at(1.1)) == .event(.pathSelected(path(2))))
        #expect(scene.agent.selectedPath == path(2))
        #expect(scene.agent.counters.checksSent == 1 && scene.agent.counters.checksAnswered == 1)
        // The pair is verified: no further checks are sent.
        _ = scene.check(3, on: path(2), at: at(2), nominates: true)
        #expect(scene.batch.take().map(\.messageClass) == [.success])
    }

    @Test func `a lost check of a nominated pair is repeated at the peer's next check`() throws {
        var scene = makeScene()
        _ = scene.check(2, on: path(2), at: at(1), nominates: true)
        scene.batch.removeAll()
        _ = scene.check(3, on: path(2), at: at(5), nominates: false)
        let response = try answer(to: scene.batch.take())
        #expect(scene.deliver(response, on: path(2), at: at(5.1)) == .event(.pathSelected(path(2))))
        // A pair that was never nominated is answered and not checked.
        _ = scene.check(4, on: path(3), at: at(6), nominates: false)
        #expect(scene.batch.take().map(\.messageClass) == [.success])
    }

    @Test func `no other response verifies a pair`() throws {
        var scene = makeScene()
        scene.batch.removeAll()
        _ = scene.check(2, on: path(2), at: at(1), nominates: true)
        let sent = scene.batch.take()
        let elsewhere = try answer(to: sent)
        #expect(scene.deliver(elsewhere, on: path(3), at: at(1)) == .dropped(.unknownTransaction))
        let guessed = try answer(to: sent, alteringID: true)
        #expect(scene.deliver(guessed, on: path(2), at: at(1)) == .dropped(.unknownTransaction))
        let forged = try answer(to: sent, password: "x")
        #expect(scene.deliver(forged, on: path(2), at: at(1)) == .dropped(.wrongIntegrity))
        let check = try #require(sent.first { $0.messageClass == .request }?.transactionID)
        var unsigned = STUNMessageBuilder(.success, transactionID: check)
        unsigned.appendXORMappedAddress(path(2).remote)
        unsigned.appendFingerprint()
        #expect(scene.deliver(unsigned.bytes, on: path(2), at: at(1)) == .dropped(.missingIntegrity))
        #expect(scene.agent.selectedPath == path(1))
        // Each pair has its own identifier, so a client cannot answer for a pair where it receives nothing.
        _ = scene.check(3, on: path(3), at: at(2), nominates: true)
        let other = scene.batch.take().first { $0.messageClass == .request }?.transactionID
        #expect(other != nil && other != sent.first { $0.messageClass == .request }?.transactionID)
    }

    @Test func `after a handshake that verified no pair, nothing is sent until one is verified`() throws {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        #expect(scene.agent.selectedPath == path(1))
        scene.batch.removeAll()
        scene.agent.requireVerification(at: at(0), into: scene.batch)
        #expect(scene.agent.selectedPath == nil)
        let response = try answer(to: scene.batch.take())
        #expect(scene.deliver(response, on: path(1), at: at(0.1)) == .event(.pathSelected(path(1))))
        #expect(scene.agent.nextDeadline == at(30), "consent counts from the peer's check")
    }

    @Test func `a pair that is verified without a nomination or a check is not selected`() {
        var scene = makeScene()
        _ = scene.check(2, on: path(2), at: at(1))
        #expect(scene.agent.markVerified(path(2), at: at(1)) == nil)
        #expect(scene.agent.markVerified(path(3), at: at(1)) == nil)
        #expect(scene.agent.selectedPath == path(1))
    }

    @Test func `the first verified pair is selected, whichever was nominated`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        _ = scene.check(2, on: path(2), at: at(0))
        #expect(scene.agent.markVerified(path(2), at: at(1)) == .pathSelected(path(2)))
        #expect(scene.agent.markVerified(path(1), at: at(2)) == .pathSelected(path(1)))
    }

    @Test func `a handshake over a pair that is not known any more leaves no unverified pair selected`() throws {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.batch.removeAll()
        // The client's checks over other pairs made the agent forget the pair of the handshake.
        #expect(scene.agent.markVerified(path(2), at: at(1)) == nil)
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.check(2, on: path(1), at: at(2), nominates: true) == .event(nil))
        #expect(scene.agent.selectedPath == nil)
        let response = try answer(to: scene.batch.take())
        #expect(scene.deliver(response, on: path(1), at: at(2.1)) == .event(.pathSelected(path(1))))
    }

    @Test func `a pair is verified over a long path, however fast its client nominates it`() throws {
        var scene = makeScene()
        scene.batch.removeAll()
        var waiting: [(at: Double, response: [UInt8])] = []
        for tick in 1...60 {
            let now = Double(tick) / 20
            _ = scene.check(UInt64(tick) + 1, on: path(2), at: at(now), nominates: true)
            waiting.append((now + 2, try answer(to: scene.batch.take())))
            guard let first = waiting.first, first.at <= now else { continue }
            #expect(scene.deliver(first.response, on: path(2), at: at(now)) == .event(.pathSelected(path(2))))
            return
        }
        Issue.record("the pair was not verified")
    }

    @Test func `a pair that is verified before any nomination is selected while it has consent`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0))
        #expect(scene.agent.markVerified(path(1), at: at(1)) == .pathSelected(path(1)))
        // Checks on another pair do not extend this pair's consent.
        for second in 2...29 { _ = scene.check(UInt64(second), on: path(2), at: at(Double(second))) }
        #expect(scene.agent.handleTimeout(at: at(29.9)) == nil)
        #expect(scene.agent.handleTimeout(at: at(30)) == .consentExpired)
        #expect(scene.agent.selectedPath == nil)
    }

    @Test
    func `when consent expires, a nominated pair has thirty seconds to be verified, and checks do not extend them`() {
        var scene = makeScene()
        for second in 1...59 {
            _ = scene.check(UInt64(second) + 1, on: path(2), at: at(Double(second)), nominates: true)
            #expect(scene.agent.handleTimeout(at: at(Double(second))) == nil)
            #expect(scene.agent.selectedPath == (second < 30 ? path(1) : nil))
        }
        #expect(scene.agent.handleTimeout(at: at(60)) == .failed)
    }

    @Test func `a pair that is verified after the old one's consent expired is selected`() {
        var scene = makeScene()
        _ = scene.check(2, on: path(2), at: at(29), nominates: true)
        _ = scene.agent.handleTimeout(at: at(30))
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.check(3, on: path(2), at: at(40), nominates: true) == .event(nil))
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.agent.markVerified(path(2), at: at(41)) == .pathSelected(path(2)))
        #expect(scene.agent.nextDeadline == at(70))
    }

    @Test func `restarts extend neither consent nor the setup timeout`() {
        var scene = makeScene()
        for second in 1...60 {
            #expect(scene.agent.handleTimeout(at: at(Double(second))) == (second == 59 ? .failed : nil))
            #expect(scene.agent.selectedPath == (second < 30 ? path(1) : nil))
            guard second < 59 else { continue }
            scene.agent.restart(
                local: credentials(100 + UInt64(second)),
                remote: credentials(200 + UInt64(second)),
                at: at(Double(second))
            )
        }
        #expect(scene.agent.hasEnded)
    }

    @Test func `a restart that nominates another pair waits for its verification, and the old pair stays selected`() {
        var scene = makeScene()
        scene.restart(at: at(5))
        #expect(scene.restartedCheck(2, on: path(2), at: at(6), nominates: true) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.check(3, on: path(1), at: at(20)) == .event(nil))
        #expect(scene.agent.handleTimeout(at: at(35)) == nil)
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.restartedCheck(4, on: path(2), at: at(36)) == .event(nil))
        #expect(scene.agent.markVerified(path(2), at: at(36)) == .pathSelected(path(2)))
        #expect(!scene.agent.isKnown(path(1)))
        #expect(scene.check(5, on: path(1), at: at(37)) == .dropped(.wrongUsername))
    }

    @Test func `a replayed check changes nothing, however late, from the same or another address`() {
        var scene = makeScene()
        // The requests that are remembered in full, and all that are remembered.
        let (exact, count) = (64, 64 + 512)
        for number in 2...count {
            _ = scene.check(UInt64(number), on: path(1), at: at(Double(number) / 1_000), nominates: true)
        }
        let deadline = scene.agent.nextDeadline
        scene.batch.removeAll()
        let counters = scene.agent.counters
        for number in 1...count {
            for host in [1, 2] as [UInt32] where number <= count - exact || host == 2 {
                let outcome = scene.check(UInt64(number), on: path(host), at: at(20), nominates: true)
                #expect(outcome == .dropped(.replayed))
            }
        }
        #expect(scene.agent.nextDeadline == deadline)
        #expect(scene.agent.selectedPath == path(1))
        #expect(!scene.agent.isKnown(path(2)))
        #expect(scene.batch.isEmpty)
        #expect(scene.agent.counters == counters)
    }
}
