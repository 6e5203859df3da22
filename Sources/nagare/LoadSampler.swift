import Room
import ServiceLifecycle

/// Lets the rooms ask the media loops once a second what they carry.
struct LoadSampler: Service {
    let rooms: Rooms

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil { await rooms.sampleLoads() }
        }
    }
}
