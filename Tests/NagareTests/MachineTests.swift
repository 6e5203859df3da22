import Metrics
import Testing
import Wire

@testable import nagare

@Suite struct MachineTests {
    @Test func `a program name with parentheses and spaces is parsed`() throws {
        let fields = (3...52).map { String($0) }.joined(separator: " ")
        let stat = try #require(ProcessStat("1234 (a b) S) \(fields)\n"))
        #expect(stat.cpuTicks == 14 + 15)
        #expect(stat.startTicks == 22)
        #expect(stat.virtualBytes == 23)
        #expect(stat.residentPages == 24)
    }

    @Test(arguments: ["", "1 (x", "1 (x) S 4 5", "1 (x) \(String(repeating: "y ", count: 60))"])
    func `an invalid stat line is refused`(text: String) {
        #expect(ProcessStat(text) == nil)
    }

    @Test func `the process metrics are plausible`() throws {
        let metrics = try #require(ProcessMetrics.current())
        #expect(metrics.residentBytes > 1_000_000)
        #expect(metrics.allocatedBytes > 100_000 && metrics.allocatedBytes < metrics.virtualBytes)
        #expect(metrics.openFileDescriptors >= 3)
        #expect(metrics.fileDescriptorsMax >= metrics.openFileDescriptors)
        #expect(metrics.startTime > 1_600_000_000)
        var page = MetricsPage()
        metrics.add(to: &page)
        #expect(page.text.contains("\nprocess_resident_memory_bytes \(metrics.residentBytes)\n"))
        #expect(page.text.contains("\nnagare_allocated_bytes \(metrics.allocatedBytes)\n"))
    }
}
