import Glibc

/// What a process of this machine has used, by /proc.
struct ProcessUsage: Sendable {
    /// User and system time of all threads.
    var cpuSeconds: Double
    var residentBytes: Int

    /// - Parameter pid: `nil` for this process.
    /// - Returns: `nil` when there is no such process.
    static func read(_ pid: Int?) -> Self? {
        let name = pid.map { String($0) } ?? "self"
        guard let stat = contents("/proc/\(name)/stat"), let close = stat.lastIndex(of: ")") else { return nil }
        // The fields from the third on; the second, the program's name, may hold anything.
        let fields = stat[stat.index(after: close)...].split(separator: " ")
        guard fields.count > 21, let user = Double(fields[11]), let system = Double(fields[12]),
            let pages = Int(fields[21])
        else { return nil }
        let ticks = Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        let pageBytes = max(sysconf(Int32(_SC_PAGESIZE)), 1)
        return Self(cpuSeconds: (user + system) / ticks, residentBytes: pages * pageBytes)
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
