import Foundation
import Glibc

/// The CPU time and memory of a process on this machine, from /proc.
struct ProcessUsage: Sendable {
    struct ThreadTime: Sendable, Equatable {
        var runNanoseconds: UInt64
        /// Ready to run, but without a core.
        var waitNanoseconds: UInt64
    }

    /// User and system time of all threads, including ended ones, with the resolution of a kernel tick, usually 10 ms.
    var tickedSeconds: Double
    /// The threads' times in nanoseconds (proc(5), schedstat); empty on kernels without schedstat.
    var threads: [Int: ThreadTime]
    var residentBytes: Int

    /// - Parameter pid: `nil` for this process.
    /// - Returns: `nil` when there is no such process.
    static func read(_ pid: Int?) -> Self? {
        let folder = "/proc/\(pid.map { String($0) } ?? "self")"
        guard let stat = contents("\(folder)/stat"), let close = stat.lastIndex(of: ")") else { return nil }
        // The fields from the third on. The second, the program's name, may have spaces and parentheses.
        let fields = stat[stat.index(after: close)...].split(separator: " ")
        guard fields.count > 21, let user = Double(fields[11]), let system = Double(fields[12]),
            let pages = Int(fields[21])
        else { return nil }
        let ticks = Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        let pageBytes = max(sysconf(Int32(_SC_PAGESIZE)), 1)
        var threads: [Int: ThreadTime] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/task")) ?? [] {
            guard let id = Int(name), let text = contents("\(folder)/task/\(name)/schedstat") else { continue }
            threads[id] = ThreadTime(schedstat: text)
        }
        return Self(
            tickedSeconds: (user + system) / ticks,
            threads: threads,
            residentBytes: pages * pageBytes
        )
    }

    /// CPU time since `earlier`.
    func cpuSeconds(since earlier: Self) -> Double {
        let ticked = max(tickedSeconds - earlier.tickedSeconds, 0)
        guard !threads.isEmpty else { return ticked }
        var nanoseconds: UInt64 = 0
        for (id, thread) in threads {
            let before = earlier.threads[id]?.runNanoseconds ?? 0
            nanoseconds &+= thread.runNanoseconds >= before ? thread.runNanoseconds - before : thread.runNanoseconds
        }
        let exact = Double(nanoseconds) / 1e9
        // Only the ticks include threads that have ended.
        let hasEnded = earlier.threads.keys.contains { threads[$0] == nil }
        return hasEnded ? max(exact, ticked) : exact
    }

    /// The total time that threads were ready but without a core since `earlier`; `nil` on kernels without schedstat.
    func waitSeconds(since earlier: Self) -> Double? {
        guard !threads.isEmpty else { return nil }
        var nanoseconds: UInt64 = 0
        for (id, thread) in threads {
            let before = earlier.threads[id]?.waitNanoseconds ?? 0
            nanoseconds &+= thread.waitNanoseconds >= before ? thread.waitNanoseconds - before : 0
        }
        return Double(nanoseconds) / 1e9
    }

    private static func contents(_ path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}

extension ProcessUsage.ThreadTime {
    /// Time on a core, time ready but without one, both in nanoseconds, and the number of times it ran.
    init?(schedstat text: String) {
        let fields = text.split(whereSeparator: \.isWhitespace)
        guard fields.count >= 2, let run = UInt64(fields[0]), let wait = UInt64(fields[1]) else { return nil }
        self.init(runNanoseconds: run, waitNanoseconds: wait)
    }
}
