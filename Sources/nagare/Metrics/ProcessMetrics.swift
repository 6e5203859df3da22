import EventLoop
import Foundation
import Glibc
import Metrics

/// The process metrics of Prometheus' client libraries, and what of the memory is allocated.
struct ProcessMetrics: Equatable {
    var cpuSeconds: Double
    var residentBytes: Int
    /// Bytes that are allocated and not freed. The C library keeps some of what is freed, so the resident memory does not tell.
    var allocatedBytes: Int
    var virtualBytes: Int
    var openFileDescriptors: Int
    var fileDescriptorsMax: Int
    /// Seconds since 1970.
    var startTime: Double

    /// The current values from `/proc`; `nil` when it is unreadable.
    static func current() -> Self? {
        guard let stat = ProcessStat.current(),
            let machine = try? String(contentsOfFile: "/proc/stat", encoding: .utf8),
            let bootTime = machine.split(separator: "\n").first(where: { $0.hasPrefix("btime ") })
                .flatMap({ Double($0.dropFirst(6)) })
        else { return nil }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        var limit = rlimit()
        let known = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        // The listing itself uses one descriptor.
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count - 1) ?? 0
        return Self(
            cpuSeconds: Double(stat.cpuTicks) / ticks,
            residentBytes: stat.residentBytes,
            allocatedBytes: FreeMemory.bytes.allocated,
            virtualBytes: stat.virtualBytes,
            openFileDescriptors: descriptors,
            fileDescriptorsMax: known ? Int(clamping: limit.rlim_cur) : 0,
            startTime: bootTime + Double(stat.startTicks) / ticks
        )
    }

    func add(to page: inout MetricsPage) {
        page.addCounter("process_cpu_seconds_total", help: "Processor time used, in seconds.", seconds: cpuSeconds)
        page.addGauge("process_resident_memory_bytes", help: "Memory in use, in bytes.", residentBytes)
        page.addGauge("nagare_allocated_bytes", help: "Memory allocated and not freed, in bytes.", allocatedBytes)
        page.addGauge("process_virtual_memory_bytes", help: "Address space in use, in bytes.", virtualBytes)
        page.addGauge("process_open_fds", help: "File descriptors open.", openFileDescriptors)
        page.addGauge("process_max_fds", help: "The limit on open file descriptors.", fileDescriptorsMax)
        page.addGauge("process_start_time_seconds", help: "When the process started, in seconds since 1970.", startTime)
    }
}

/// The fields of `/proc/self/stat` that are used (proc(5)).
struct ProcessStat: Equatable {
    let cpuTicks: Int
    let startTicks: Int
    let virtualBytes: Int
    let residentPages: Int

    var residentBytes: Int { residentPages * Int(sysconf(Int32(_SC_PAGESIZE))) }

    /// The current values; `nil` when they are unreadable.
    static func current() -> Self? {
        (try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8)).flatMap(Self.init)
    }

    init?(_ text: String) {
        // The second field is the program's name in parentheses and may hold anything, spaces and parentheses too.
        guard let name = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: name)...].split(whereSeparator: \.isWhitespace)
        // proc(5) numbers the fields from 1; the first one after the name is number 3.
        let field = { (number: Int) in number - 3 < fields.count ? Int(fields[number - 3]) : nil }
        guard let user = field(14), let system = field(15), let start = field(22), let virtual = field(23),
            let resident = field(24)
        else { return nil }
        cpuTicks = user + system
        startTicks = start
        virtualBytes = virtual
        residentPages = resident
    }
}
