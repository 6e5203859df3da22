import Ayame
import Logging
import Operators
import Room
import RoomTestSupport
import Synchronization
import Testing

@testable import nagare

/// Signals that arrive before the node serves.
@Suite struct SignalTargetTests {
    private final class Seen: Sendable {
        let steps = Mutex<[String]>([])
        func note(_ step: String) { steps.withLock { $0.append(step) } }
    }

    private static func serve(_ target: SignalTarget) async -> [String] {
        let seen = Seen()
        let drain = NodeDrain(
            directory: ChannelDirectory(planes: [FakeMediaPlane()]),
            relayCalls: AyameCalls(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        await target.set(
            SignalTarget.Actions(
                drain: drain,
                shutDown: { seen.note("shut down") },
                abandon: {},
                reload: { seen.note("reload") }
            )
        )
        return seen.steps.withLock { $0 }
    }

    @Test func `a node that got no signal only serves`() async { #expect(await Self.serve(SignalTarget()) == []) }

    @Test func `reloads that were asked for early happen once`() async {
        let target = SignalTarget()
        await target.reload()
        await target.reload()
        #expect(await Self.serve(target) == ["reload"])
    }

    @Test func `an early signal to end is obeyed, and makes a reload pointless`() async {
        let target = SignalTarget()
        await target.reload()
        #expect(await target.begin {})
        #expect(await Self.serve(target) == ["shut down"])
    }
}
