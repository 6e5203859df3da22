import EventLoop
import History
import Room
import ServiceLifecycle
import Web
import Webhooks

/// Tells of the sessions that an earlier run of the node left behind. Once a second, samples the media of the connections that are due, and saves those that last. Once a minute, deletes what
/// is too old.
struct HistorySampler: Service {
    let history: ConnectionHistory
    let directory: ChannelDirectory
    let clients: ClientStatistics
    /// Learns of sessions that vanished; `nil` in a cluster, where a session may go on at other nodes.
    let webhooks: Webhooks?

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // A slow disk delays no sample.
            async let writing: Void = write()
            await tellVanished()
            await sample()
            await writing
        }
    }

    private func tellVanished() async {
        guard let webhooks else { return }
        for (session, seenAt) in await history.takeVanishedSessions() {
            await webhooks.vanished(session, unixNanoseconds: seenAt)
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
