import Testing
import Wire

@testable import CongestionControl

/// Which paths get marked packets.
struct ECNPathTests {
    private func path(_ fields: [ECNCodepoint?]) -> ECNPath {
        var path = ECNPath(isOn: true)
        for (index, field) in fields.enumerated() {
            path.add(PacketResult(sequence: Int64(index), sentAt: 0, arrivedAt: 1, bytes: 1_000, ecn: field))
        }
        return path
    }

    @Test func `a path that carries the marks is confirmed`() {
        #expect(path([]).state == .testing)
        #expect(path([.capable1]).state == .testing)
        #expect(path(Array(repeating: .capable1, count: 16)).state == .confirmed)
        #expect(path(Array(repeating: .congestionExperienced, count: 16)).state == .confirmed)
        // The first packets left before marking began.
        let late = Array(repeating: ECNCodepoint.notCapable, count: 7) + Array(repeating: .capable1, count: 9)
        #expect(path(late).state == .confirmed)
    }

    @Test(arguments: [ECNCodepoint.notCapable, .capable0])
    func `a path that changes the field gets no marks, also when it begins later`(field: ECNCodepoint) {
        #expect(path(Array(repeating: field, count: 16)).state == .failed)
        let later = path(Array(repeating: .capable1, count: 160) + Array(repeating: field, count: 25))
        #expect(later.state == .failed)
        #expect(!later.isMarking)
        #expect(path(Array(repeating: field, count: 16) + Array(repeating: .capable1, count: 160)).state == .failed)
    }

    @Test func `reports that do not tell change nothing`() {
        #expect(path(Array(repeating: nil, count: 100)).state == .testing)
        var off = ECNPath(isOn: false)
        off.add(PacketResult(sequence: 0, sentAt: 0, arrivedAt: 1, bytes: 1_000, ecn: .capable1))
        #expect(off.state == .off && !off.isMarking)
    }

    @Test func `another path is tested anew`() {
        var settings = SendController.Settings()
        settings.usesECN = true
        var controller = SendController(settings, at: 0)
        #expect(controller.decision.marksPackets)
        let packets = (0..<16).map {
            PacketResult(sequence: $0, sentAt: 1_000 * $0, arrivedAt: 1_000 * $0, bytes: 1_000, ecn: .notCapable)
        }
        controller.received(FeedbackReport(arrivedAt: 20_000, packets: ContiguousArray(packets)))
        #expect(!controller.decision.marksPackets)
        controller.pathChanged(at: 30_000)
        #expect(controller.decision.marksPackets)
        #expect(!SendController(at: 0).decision.marksPackets)
    }
}
