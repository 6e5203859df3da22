import Counters
import DTLS
import Glibc
import Kit

/// An object whose retains are counted.
final class Probe {
    var value = 0
    var others: [Probe] = []
}

nonisolated(unsafe) private var kept: [Probe] = []
nonisolated(unsafe) private var mutex = unsafe pthread_mutex_t()

@inline(never)
private func keep(_ probe: Probe) { unsafe kept.append(probe) }

/// The optimiser does not know this closure, so it must keep the exclusivity check of its argument.
nonisolated(unsafe) private var action: (inout Int) -> Void = { $0 += 1 }

actor OtherActor {
    func visit() {}
}

/// Tests that each counter counts a known event. A broken counter would report 0, which the thresholds accept.
enum SelfTest {
    /// The failed expectations. Empty when every counter works.
    static func run() async -> [String] {
        var faults: [String] = []
        func expect(_ what: String, _ condition: Bool) { if !condition { faults.append(what) } }

        // Growing the array later would add allocations.
        unsafe kept.reserveCapacity(1_000)
        let probe = Probe()
        let idle = Costs.of {}
        if CommandLine.arguments.count > 1_000 { unsafe action = { $0 = probe.others.count } }
        expect("nothing counts as nothing", idle.named.allSatisfy { $0.value == 0 })

        let objects = Costs.of { for _ in 0..<10 { keep(Probe()) } }
        expect("10 objects are 10 allocations, not \(objects.allocations)", objects.allocations == 10)
        expect("10 objects are 10 objects, not \(objects.objects)", objects.objects == 10)
        let retains = Costs.of { for _ in 0..<10 { keep(probe) } }
        expect("10 references are 10 retains, not \(retains.retains)", retains.retains == 10)
        expect("10 references are no allocation, not \(retains.allocations)", retains.allocations == 0)
        let releases = Costs.of { for _ in 0..<10 { unsafe kept.removeLast() } }
        expect("10 references less are 10 releases, not \(releases.releases)", releases.releases >= 10)

        let raw = Costs.of {
            let memory = UnsafeMutableRawPointer.allocate(byteCount: 4_096, alignment: 64)
            unsafe memory.storeBytes(of: 1, as: Int.self)
            unsafe memory.deallocate()
        }
        expect("aligned memory is an allocation, not \(raw.allocations)", raw.allocations == 1)
        let text = Costs.of { unsafe discard(strdup("the C library's own allocation")) }
        expect("an allocation within libc is an allocation, not \(text.allocations)", text.allocations == 1)
        let string = Costs.of { discard(String(repeating: "a", count: probe.value + 100)) }
        expect("an allocation within the standard library is an allocation", string.allocations >= 1)

        let locked = Costs.of {
            unsafe pthread_mutex_lock(&mutex)
            unsafe pthread_mutex_unlock(&mutex)
        }
        expect("a mutex is a lock, not \(locked.locks)", locked.locks == 1)
        let openSSL = Costs.of { _ = try? DTLSCertificate.generate() }
        expect("OpenSSL locks and allocates", openSSL.locks > 0 && openSSL.allocations > 0)

        let accesses = Costs.of { unsafe action(&probe.value) }
        expect("an access that may overlap is checked, not \(accesses.accesses)", accesses.accesses >= 1)
        let actor = OtherActor()
        var task: Task<Void, Never>?
        let made = Costs.of { task = Task { await actor.visit() } }
        expect("a task is a hop", made.hops >= 1)
        // Events of the task on other threads must not be counted below.
        await task?.value
        let before = nagare_counts_now()
        await actor.visit()
        expect("an await on an actor is a hop", nagare_counts_now().hops > before.hops)
        return faults
    }

    @inline(never)
    private static func discard(_ pointer: UnsafeMutablePointer<CChar>?) { unsafe free(pointer) }
    @inline(never)
    private static func discard(_ string: String) { withExtendedLifetime(string) {} }
}
