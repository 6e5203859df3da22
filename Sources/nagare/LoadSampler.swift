import Room
import ServiceLifecycle

/// Lets time pass for the rooms, and lets them ask the media loops what they carry, once a second.
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
