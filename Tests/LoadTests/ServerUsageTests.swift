import Testing

@testable import Load

@Suite struct ServerUsageTests {
    @Test func `a Prometheus page's samples are summed over their labels`() {
        let metrics = ServerMetrics(
            """
            # HELP process_cpu_seconds_total Processor time used, in seconds.
            # TYPE process_cpu_seconds_total counter
            process_cpu_seconds_total 12.5
            process_resident_memory_bytes 5.24288e+07
            nagare_packets_sent_total{loop="0",protocol="rtp"} 1000
            nagare_packets_sent_total{loop="0",protocol="rtcp"} 7
            nagare_packets_sent_total{loop="1",protocol="rtp"} 500 1700000000000
            nagare_retransmissions_sent_total{loop="0"} 3
            nagare_datagrams_dropped_total{reason="a } b"} 1
            nagare_datagrams_dropped_total{reason="size"} 2

            nagare_packets_sent_total_more{protocol="rtp"} 9
            """
        )
        #expect(metrics.cpuSeconds == 12.5)
        #expect(metrics.residentBytes == 52_428_800)
        #expect(metrics.packetsSent == 1_500)
        #expect(metrics.retransmissionsSent == 3)
        #expect(metrics.datagramsDropped == 3)
    }

    @Test(arguments: [
        "", "\n\n", "process_cpu_seconds_total", "process_cpu_seconds_total ", "process_cpu_seconds_total x",
        "process_cpu_seconds_total NaN", "process_cpu_seconds_total +Inf", "process_cpu_seconds_total{",
        "process_cpu_seconds_total{a=\"b\"}", "nagare_packets_sent_total 5", "\u{0}}{ \u{FFFD}",
    ])
    func `what is no sample of interest counts for nothing`(text: String) {
        #expect(ServerMetrics(text) == ServerMetrics(""))
    }

    @Test func `the usage of this process can be read, and that of no process cannot`() throws {
        let usage = try #require(ProcessUsage.read(nil))
        #expect(usage.residentBytes > 0)
        #expect(usage.cpuSeconds(since: usage) == 0)
        #expect(ProcessUsage.read(0) == nil)
    }

    private func usage(_ threads: [Int: (UInt64, UInt64)], ticked: Double) -> ProcessUsage {
        ProcessUsage(
            tickedSeconds: ticked,
            threads: threads.mapValues { .init(runNanoseconds: $0.0, waitNanoseconds: $0.1) },
            residentBytes: 1
        )
    }

    @Test func `CPU time is the sum of the threads in nanoseconds, with ticks for ended threads`() {
        let before = usage([1: (1_000, 10), 2: (5_000, 0)], ticked: 1)
        let grown = usage([1: (3_000, 40), 2: (5_500, 5), 3: (700, 2)], ticked: 1.01)
        #expect(grown.cpuSeconds(since: before) == 3_200e-9)
        #expect(grown.waitSeconds(since: before) == 37e-9)
        let ended = usage([1: (3_000, 40)], ticked: 1.5)
        #expect(ended.cpuSeconds(since: before) == 0.5)
        // A thread that took over another's number has not run less than nothing.
        let renumbered = usage([1: (400, 0), 2: (5_000, 0)], ticked: 1)
        #expect(renumbered.cpuSeconds(since: before) == 400e-9)
        #expect(renumbered.waitSeconds(since: before) == 0)
        let unknown = usage([:], ticked: 3)
        #expect(unknown.cpuSeconds(since: usage([:], ticked: 1)) == 2)
        #expect(unknown.waitSeconds(since: before) == nil)
    }

    @Test(arguments: [("12 34 5\n", true), ("12 34", true), ("12", false), ("", false), ("a b c", false)])
    func `the first two numbers of schedstat are parsed`(text: String, isRead: Bool) {
        let time = ProcessUsage.ThreadTime(schedstat: text)
        #expect(time == (isRead ? .init(runNanoseconds: 12, waitNanoseconds: 34) : nil))
    }

    @Test func `memory is divided by subscribers, and packets are the server's count if known`()
        throws
    {
        var before = ServerUsage(metrics: ServerMetrics("process_resident_memory_bytes 1000000\n"))
        let start = ServerUsage(metrics: ServerMetrics("process_cpu_seconds_total 1\n"))
        var end = ServerUsage(
            metrics: ServerMetrics("process_cpu_seconds_total 3\nprocess_resident_memory_bytes 3000000\n")
        )
        func report() -> LoadReport.Server? {
            LoadReport.Server(from: start, to: end, before: before, subscribers: 10, packets: 1_000, seconds: 4)
        }
        let server = try #require(report())
        #expect(server.cpuSeconds == 2)
        #expect(server.cores == 0.5)
        #expect(server.cpuMicrosecondsPerPacket == 2_000)
        #expect(server.residentBytes == 3_000_000)
        #expect(server.residentBytesPerSubscriber == 200_000)
        #expect(server.packetsForwarded == nil)
        before.metrics = nil
        #expect(report()?.residentBytesPerSubscriber == nil)
        end.metrics = nil
        #expect(report() == nil)
    }
}
