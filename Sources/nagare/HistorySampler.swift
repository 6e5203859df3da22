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
            // A slow disk delays no sample.
            async let writing: Void = write()
            await sample()
            await writing
        }
    }

    private func write() async {
        var second = 0
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            second = (second + 1) % 60
            if second == 0 { await history.expire() }
            await history.save(unixNanoseconds: directory.unixNanoseconds, at: EventLoop.now())
        }
    }

    private func sample() async {
        while (try? await Task.sleep(for: .seconds(1))) != nil {
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
