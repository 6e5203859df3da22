import Room
import ServiceLifecycle

/// Once a second, advances the rooms' time and samples the load of the media loops.
struct LoadSampler: Service {
    let rooms: Rooms

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                await rooms.sampleLoads()
                await rooms.tick()
            }
        }
    }
}
