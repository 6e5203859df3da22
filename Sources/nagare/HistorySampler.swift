import EventLoop
import History
import Room
import ServiceLifecycle
import Signaling

/// Once a second, samples the media of the connections that are due, and saves those that last.
struct HistorySampler: Service {
    let history: ConnectionHistory
    let rooms: Rooms
    let clients: ClientStatistics

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                history.save(unixNanoseconds: rooms.unixNanoseconds, at: EventLoop.now())
                for connection in history.due(at: EventLoop.now()) {
                    guard let statistics = await rooms.statistics(of: connection) else { continue }
                    history.sampled(
                        connection,
                        statistics,
                        playback: clients.playback(of: connection),
                        unixNanoseconds: rooms.unixNanoseconds,
                        at: EventLoop.now()
                    )
                }
            }
        }
    }
}
