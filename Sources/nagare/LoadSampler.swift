import Room
import ServiceLifecycle
import Signaling

/// Once a second, advances the rooms' time and the node's drain, and samples the load of the media loops.
struct LoadSampler: Service {
    let rooms: Rooms
    let drain: NodeDrain

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                await rooms.sampleLoads()
                await rooms.tick()
                await drain.tick()
            }
        }
    }
}
