import Testing

@testable import ICE

@Suite struct ICEPhaseTests {
    private static let generation = ICEGeneration(local: LiteScene.server, remote: LiteScene.client)

    @Test func `an authenticated check with the current credentials extends the setup, and nothing else does`() {
        var phase = ICEPhase.connecting(deadline: at(30))
        phase.heard(on: path(1), isCurrent: false, at: at(10))
        phase.heard(on: path(1), isCurrent: true, extendsSetup: false, at: at(10))
        #expect(phase.nextDeadline == at(30))
        phase.heard(on: path(1), isCurrent: true, at: at(20))
        #expect(phase.nextDeadline == at(50))
        let events = [at(49), at(50)].map { phase.expire(at: $0) }
        #expect(events == [nil, .failed])
    }

    @Test func `during a restart only the selected pair renews its own consent`() {
        var phase = ICEPhase.connected(path(1), consentDeadline: at(30))
        phase.restart(from: Self.generation, at: at(1))
        phase.heard(on: path(2), isCurrent: true, at: at(20))
        #expect(phase.selectedPath == path(1) && phase.nextDeadline == at(30))
        phase.heard(on: path(1), isCurrent: false, at: at(25))
        #expect(phase.nextDeadline == at(55))
    }
}
