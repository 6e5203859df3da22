import Operators
import Room
import ServiceLifecycle

/// Once a second, advances the rooms' time and the node's drain, and samples the load of the media loops.
struct LoadSampler: Service {
    let directory: ChannelDirectory
    let drain: NodeDrain

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                await directory.sampleLoads()
                await directory.tick()
                await drain.tick()
            }
        }
    }
}
