import Dispatch
import Foundation

extension Task where Failure == Never {
    /// Waits for its end. The first SIGINT or SIGTERM cancels it, so that it ends in order. A second one ends the process.
    func valueUntilSignal() async -> Success {
        let sources = [SIGINT, SIGTERM].map { number in
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                if isCancelled { _exit(128 + number) }
                cancel()
            }
            source.activate()
            return source
        }
        defer { for source in sources { source.cancel() } }
        return await value
    }
}
