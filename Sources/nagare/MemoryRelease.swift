import EventLoop
import ServiceLifecycle

/// Gives the system memory that a burst left behind, such as messages for clients that read nothing: the C library keeps what
/// is freed, however much it is.
struct MemoryRelease: Service {
    func run() async throws {
        await cancelWhenGracefulShutdown {
            var unused = UnusedMemory()
            while (try? await Task.sleep(for: .seconds(5))) != nil {
                guard let resident = ProcessStat.current()?.residentBytes else { continue }
                let memory = FreeMemory.bytes
                let isDue = unused.sampled(free: memory.free, allocated: memory.allocated, resident: resident)
                guard isDue else { continue }
                FreeMemory.release()
                guard let resident = ProcessStat.current()?.residentBytes else { continue }
                unused.released(allocated: FreeMemory.bytes.allocated, resident: resident)
            }
        }
    }
}
