import Base
import ChannelTypes
import Testing

@testable import Operators

@Suite struct DrainModelTests {
    private let start = Instant(nanoseconds: 5)
    private func after(_ seconds: Int) -> Instant { start + .seconds(seconds) }

    @Test func `an operators' drain refuses new channels, then newcomers, and ends clients at the deadline`() throws {
        var model = DrainModel()
        let request = DrainRequest(by: .operators, deadline: .seconds(60), admission: .seconds(10))
        #expect(try model.start(request, at: start) == [.refuse(.newChannels)])
        #expect(model.tick(clients: 3, at: after(1)) == [.progress(clients: 3, remaining: .seconds(59))])
        #expect(model.tick(clients: 3, at: after(9)) == [])
        #expect(model.tick(clients: 2, at: after(10)) == [.refuse(.newcomers)])
        #expect(model.tick(clients: 2, at: after(11)) == [.progress(clients: 2, remaining: .seconds(49))])
        #expect(model.tick(clients: 1, at: after(60)) == [.progress(clients: 1, remaining: .zero), .endClients])
        #expect(model.report(clients: 1, hasStarted: true, at: after(60)).phase == .closing)
        #expect(model.tick(clients: 0, at: after(61)) == [.emptied])
        #expect(model.tick(clients: 0, at: after(62)) == [])
        #expect(model.state(hasStarted: true) == .draining)
    }

    @Test func `a drain that is taken back admits newcomers and does nothing at its deadline`() throws {
        var model = DrainModel()
        #expect(try model.cancel() == [])
        _ = try model.start(DrainRequest(by: .operators, deadline: .seconds(60)), at: start)
        #expect(try model.cancel() == [.refuse(.none)])
        #expect(model.tick(clients: 3, at: after(60)) == [])
        #expect(model.report(clients: 3, hasStarted: true, at: after(60)) == DrainReport(state: .ready, clients: 3))
    }

    @Test func `a second request changes the times and keeps the start`() throws {
        var model = DrainModel()
        _ = try model.start(DrainRequest(by: .operators, deadline: .seconds(60)), at: start)
        let request = DrainRequest(by: .operators, deadline: .seconds(100), admission: .zero)
        #expect(try model.start(request, at: after(20)) == [.refuse(.newcomers)])
        #expect(model.tick(clients: 1, at: after(60)) == [.progress(clients: 1, remaining: .seconds(60))])
        let report = model.report(clients: 1, hasStarted: true, at: after(60))
        #expect(report.elapsed == .seconds(60) && report.remaining == .seconds(60) && report.phase == .newcomers)
    }

    @Test func `newcomers are admitted until the deadline at the latest`() throws {
        var model = DrainModel()
        let request = DrainRequest(by: .operators, deadline: .seconds(5), admission: .seconds(50))
        _ = try model.start(request, at: start)
        let outputs = model.tick(clients: 1, at: after(5))
        #expect(outputs == [.refuse(.newcomers), .progress(clients: 1, remaining: .zero), .endClients])
    }

    @Test func `the drain of a shutdown cannot be taken back and ends no clients itself`() throws {
        var model = DrainModel()
        _ = try model.start(DrainRequest(by: .operators), at: start)
        let request = DrainRequest(by: .shutdown, deadline: .seconds(60), admission: .zero)
        #expect(try model.start(request, at: start) == [.refuse(.newcomers)])
        #expect(throws: DrainFailure.stopping) { try model.cancel() }
        #expect(throws: DrainFailure.stopping) { try model.start(DrainRequest(by: .operators), at: after(1)) }
        #expect(model.report(clients: 1, hasStarted: true, at: after(1)).isOfShutdown)
        #expect(model.tick(clients: 1, at: after(60)) == [.progress(clients: 1, remaining: .zero)])
    }

    @Test func `a shutdown is final`() throws {
        var model = DrainModel()
        #expect(model.state(hasStarted: false) == .starting && model.state(hasStarted: true) == .ready)
        _ = try model.start(DrainRequest(by: .operators, deadline: .zero), at: start)
        model.stop()
        #expect(model.state(hasStarted: true) == .stopping && model.tick(clients: 1, at: after(1)) == [])
        #expect(throws: DrainFailure.stopping) { try model.cancel() }
        #expect(throws: DrainFailure.stopping) { try model.start(DrainRequest(by: .shutdown), at: start) }
    }
}
