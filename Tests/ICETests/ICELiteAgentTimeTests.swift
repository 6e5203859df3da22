import Base
import ICE
import Testing
import Wire

struct ICELiteAgentTimeTests {
    // MARK: - Setup and consent

    @Test func `without a check the agent fails once, after thirty seconds`() {
        var scene = LiteScene()
        #expect(scene.agent.nextDeadline == at(30))
        #expect(scene.agent.handleTimeout(at: at(29.999)) == nil)
        #expect(scene.agent.handleTimeout(at: at(30)) == .failed)
        #expect(scene.agent.handleTimeout(at: at(31)) == nil)
        #expect(scene.agent.nextDeadline == nil)
        #expect(scene.check(1, on: path(1), at: at(32), nominates: true) == .dropped(.ended))
        #expect(scene.batch.isEmpty)
    }

    @Test func `an unauthenticated check does not extend the setup timeout`() {
        var scene = LiteScene()
        var check = Check(1, to: LiteScene.server, from: LiteScene.client)
        check.password = "another password, long enough"
        _ = scene.deliver(check.bytes, on: path(1), at: at(20))
        #expect(scene.agent.handleTimeout(at: at(30)) == .failed)
    }

    @Test func `consent lasts thirty seconds from the last request on the selected pair`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(1), nominates: true)
        _ = scene.check(2, on: path(1), at: at(20))
        #expect(scene.agent.nextDeadline == at(50))
        #expect(scene.agent.handleTimeout(at: at(49.9)) == nil)
        #expect(scene.agent.handleTimeout(at: at(50)) == .consentExpired)
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.agent.hasEnded)
        #expect(scene.check(3, on: path(1), at: at(51)) == .dropped(.ended))
    }

    @Test func `requests on another pair do not extend consent on the selected one`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        _ = scene.check(2, on: path(2), at: at(29))
        #expect(scene.agent.handleTimeout(at: at(30)) == .consentExpired)
    }

    @Test func `a request after consent expired does not renew it`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.batch.removeAll()
        #expect(scene.check(2, on: path(1), at: at(30.5), nominates: true) == .event(.consentExpired))
        #expect(scene.batch.isEmpty)
        #expect(scene.agent.selectedPath == nil)
    }

    // MARK: - Restart

    @Test func `the old pair stays until a check with the new credentials nominates`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(10))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.check(2, on: path(1), at: at(11)) == .event(nil))
        #expect(scene.agent.nextDeadline == at(41))
        #expect(scene.restartedCheck(3, on: path(2), at: at(12)) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.restartedCheck(4, on: path(2), at: at(13), nominates: true) == .event(.pathSelected(path(2))))
        #expect(scene.agent.selectedPath == path(2))
        #expect(!scene.agent.isKnown(path(1)))
        #expect(scene.agent.isKnown(path(2)))
    }

    @Test func `a response is signed with the password of the request's credentials`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(10))
        scene.batch.removeAll()
        _ = scene.check(2, on: path(1), at: at(11))
        _ = scene.restartedCheck(3, on: path(2), at: at(11))
        let sent = scene.batch.take()
        #expect(sent.map { $0.isAuthentic(password: LiteScene.server.password) } == [true, false])
        #expect(sent.map { $0.isAuthentic(password: LiteScene.serverRestarted.password) } == [false, true])
    }

    @Test func `the old credentials cannot nominate during a restart and are rejected after it`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(10))
        #expect(scene.check(2, on: path(3), at: at(11), nominates: true) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
        _ = scene.restartedCheck(3, on: path(2), at: at(12), nominates: true)
        #expect(scene.check(4, on: path(1), at: at(13), nominates: true) == .dropped(.wrongUsername))
        #expect(scene.agent.selectedPath == path(2))
    }

    @Test func `a restart that nominates the same pair again is reported`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(10))
        #expect(scene.restartedCheck(2, on: path(1), at: at(11), nominates: true) == .event(.pathSelected(path(1))))
        #expect(scene.agent.nextDeadline == at(41))
    }

    @Test func `when consent for the old pair expires during a restart, the restart still has thirty seconds`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(25))
        #expect(scene.agent.handleTimeout(at: at(30)) == nil)
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.check(2, on: path(1), at: at(31)) == .dropped(.wrongUsername))
        #expect(scene.restartedCheck(3, on: path(2), at: at(54), nominates: true) == .event(.pathSelected(path(2))))
    }

    @Test func `an unanswered restart ends at the setup timeout`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(25))
        _ = scene.agent.handleTimeout(at: at(30))
        #expect(scene.agent.nextDeadline == at(55))
        #expect(scene.agent.handleTimeout(at: at(55)) == .failed)
    }

    @Test func `an unanswered restart does not affect a live old pair`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(1))
        for second in 2...100 {
            #expect(scene.check(UInt64(second), on: path(1), at: at(Double(second))) == .event(nil))
            #expect(scene.agent.handleTimeout(at: at(Double(second))) == nil)
        }
        #expect(scene.agent.selectedPath == path(1))
    }

    @Test func `a second restart before the first completes replaces the first and keeps the selected pair`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.restart(at: at(1))
        scene.agent.restart(local: credentials(5), remote: credentials(6), at: at(2))
        #expect(scene.restartedCheck(2, on: path(2), at: at(3), nominates: true) == .dropped(.wrongUsername))
        #expect(scene.check(3, on: path(1), at: at(4)) == .event(nil))
        let newest = Check(4, to: credentials(5), from: credentials(6), nominates: true)
        #expect(scene.deliver(newest.bytes, on: path(2), at: at(5)) == .event(.pathSelected(path(2))))
    }

    @Test func `a restart with the current credentials changes nothing`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.agent.restart(local: LiteScene.server, remote: LiteScene.client, at: at(10))
        #expect(scene.agent.nextDeadline == at(30))
        #expect(scene.check(2, on: path(2), at: at(11), nominates: true) == .event(.pathSelected(path(2))))
    }

    @Test func `a restart starts an agent again whose consent expired`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        _ = scene.agent.handleTimeout(at: at(30))
        scene.restart(at: at(40))
        #expect(scene.agent.nextDeadline == at(70))
        #expect(!scene.agent.isKnown(path(1)))
        #expect(scene.restartedCheck(2, on: path(1), at: at(41), nominates: true) == .event(.pathSelected(path(1))))
    }
}
