import Base
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Cluster

/// The listener for links of a process that has no file descriptors left.
@Suite(.timeLimit(.minutes(1))) struct LinkAcceptFailureTests {
    @Test func `without descriptors the listener rests, and nodes link again when there are some`() async {
        await #expect(processExitsWith: .success) {
            let node = try await LinkPeer("a", 1)
            let other = try await LinkPeer("b", 2)
            // It connects without having to be accepted.
            let stranger = try LoopbackClient()
            let limit = try DescriptorLimit.none()
            try stranger.connect(to: node.port)
            let before = processorSeconds()
            try await pause(.seconds(3))
            let used = processorSeconds() - before
            // A listener that does not rest takes a whole processor.
            #expect(used < 0.5, "\(used) s of processor time in 3 s")
            limit.restore()

            other.knows([node])
            var steps = 0
            while !node.isLinked(to: other) || !other.isLinked(to: node), steps < 3_000 {
                try await pause(.milliseconds(10))
                steps += 1
            }
            #expect(node.isLinked(to: other) && other.isLinked(to: node))
            for peer in [node, other] { await peer.links.stop() }
            withExtendedLifetime(stranger) {}
        }
    }
}

/// Until a timer of the event loops fires.
private func pause(_ time: TimeAmount) async throws {
    try await MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: time) {}.futureResult.get()
}
