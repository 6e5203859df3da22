import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Signaling

/// The HTTP listener of a process that has no file descriptors left.
@Suite(.timeLimit(.minutes(1))) struct AcceptFailureTests {
    @Test func `without descriptors the listener rests, and serves again when there are some`() async {
        await #expect(processExitsWith: .success) {
            try await withLiveServer { _, port, _ in
                let waiting = try LoopbackClient()
                let limit = try DescriptorLimit.none()
                try waiting.connect(to: port)
                let before = processorSeconds()
                try await MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: .seconds(3)) {}.futureResult
                    .get()
                let used = processorSeconds() - before
                // A listener that does not rest takes a whole processor.
                #expect(used < 0.5, "\(used) s of processor time in 3 s")
                limit.restore()

                let answer = try await LiveTests.get("/nagare.js", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200"))
                withExtendedLifetime(waiting) {}
            }
        }
    }
}
