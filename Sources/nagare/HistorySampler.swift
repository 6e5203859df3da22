import EventLoop
import History
import Room
import ServiceLifecycle
import Web

/// Once a second, samples the media of the connections that are due, and saves those that last. Once a minute, deletes what
/// is too old.
struct HistorySampler: Service {
    let history: ConnectionHistory
    let directory: ChannelDirectory
    let clients: ClientStatistics

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var second = 0
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                second = (second + 1) % 60
                if second == 0 { history.expire() }
                history.save(unixNanoseconds: directory.unixNanoseconds, at: EventLoop.now())
                for connection in history.due(at: EventLoop.now()) {
                    guard let statistics = await directory.statistics(of: connection) else { continue }
                    history.sampled(
                        connection,
                        statistics,
                        playback: clients.playback(of: connection),
                        unixNanoseconds: directory.unixNanoseconds,
                        at: EventLoop.now()
                    )
                }
            }
        }
    }
}
