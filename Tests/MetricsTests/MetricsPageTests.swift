import Testing

@testable import Metrics

@Suite struct MetricsPageTests {
    @Test func `the whole page in the Prometheus text format 0.0.4`() {
        var page = MetricsPage()
        page.addGauge("nagare_rooms", help: "ChannelDirectory that exist.", 2)
        page.addCounter(
            "nagare_packets_total",
            help: "Packets.",
            labels: [MetricLabel("kind", "video"), MetricLabel("direction", "out")],
            7
        )
        page.addCounter("nagare_packets_total", help: "Packets.", labels: [MetricLabel("direction", "in")], 3)
        var histogram = Histogram(bounds: [0.001, 0.25, 1])
        for value in [0.0005, 0.125, 0.25, 4] { histogram.observe(value) }
        page.addHistogram("nagare_turn_seconds", help: "Turns.", labels: [MetricLabel("loop", "0")], histogram)
        page.addHistogram("nagare_wait_seconds", help: "Waits.", Histogram(bounds: [2]))
        let expected = """
            # HELP nagare_packets_total Packets.
            # TYPE nagare_packets_total counter
            nagare_packets_total{direction="in"} 3
            nagare_packets_total{direction="out",kind="video"} 7
            # HELP nagare_rooms ChannelDirectory that exist.
            # TYPE nagare_rooms gauge
            nagare_rooms 2
            # HELP nagare_turn_seconds Turns.
            # TYPE nagare_turn_seconds histogram
            nagare_turn_seconds_bucket{loop="0",le="0.001"} 1
            nagare_turn_seconds_bucket{loop="0",le="0.25"} 3
            nagare_turn_seconds_bucket{loop="0",le="1"} 3
            nagare_turn_seconds_bucket{loop="0",le="+Inf"} 4
            nagare_turn_seconds_sum{loop="0"} 4.3755
            nagare_turn_seconds_count{loop="0"} 4
            # HELP nagare_wait_seconds Waits.
            # TYPE nagare_wait_seconds histogram
            nagare_wait_seconds_bucket{le="2"} 0
            nagare_wait_seconds_bucket{le="+Inf"} 0
            nagare_wait_seconds_sum 0
            nagare_wait_seconds_count 0

            """
        #expect(page.text == expected)
    }

    @Test func `an empty page is empty`() {
        #expect(MetricsPage().text == "")
    }

    @Test func `the text does not depend on the order of additions`() {
        let additions: [@Sendable (inout MetricsPage) -> Void] = [
            { $0.addGauge("a", help: "A.", labels: [MetricLabel("x", "1"), MetricLabel("y", "2")], 1) },
            { $0.addGauge("a", help: "A.", labels: [MetricLabel("x", "0")], 2) },
            { $0.addCounter("b_total", help: "B.", 3) },
        ]
        var forward = MetricsPage()
        var backward = MetricsPage()
        for add in additions { add(&forward) }
        for add in additions.reversed() { add(&backward) }
        #expect(forward.text == backward.text)
    }

    @Test func `samples with the same name and labels are summed, in any order of the labels`() {
        var page = MetricsPage()
        var histogram = DurationHistogram(boundsNanoseconds: [1_000_000_000])
        histogram.observe(nanoseconds: 500_000_000)
        for _ in 0..<2 {
            page.addCounter("c_total", help: "C.", 5)
            page.addHistogram("h_seconds", help: "H.", histogram)
            page.addCounter("cpu_seconds_total", help: "CPU.", seconds: 0.25)
        }
        page.addGauge("g", help: "G.", labels: [MetricLabel("x", "1"), MetricLabel("y", "2")], 1.5)
        page.addGauge("g", help: "G.", labels: [MetricLabel("y", "2"), MetricLabel("x", "1")], 1)
        let lines = page.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(
            lines == [
                "c_total 10", "cpu_seconds_total 0.5", "g{x=\"1\",y=\"2\"} 2.5",
                "h_seconds_bucket{le=\"1\"} 2", "h_seconds_bucket{le=\"+Inf\"} 2", "h_seconds_sum 1",
                "h_seconds_count 2",
            ]
        )
    }

    @Test func `backslash, quotation mark and line feed are escaped`() {
        var page = MetricsPage()
        page.addGauge("g", help: "a \\ \"b\"\nc", labels: [MetricLabel("l", "a\\b\"c\nd é")], 1)
        #expect(
            page.text == """
                # HELP g a \\\\ "b"\\nc
                # TYPE g gauge
                g{l="a\\\\b\\"c\\nd é"} 1

                """
        )
    }

    @Test(arguments: [
        (0.0, "0"), (-0.0, "0"), (-3, "-3"), (0.5, "0.5"), (1e-05, "1e-05"),
        (9_007_199_254_740_991, "9007199254740991"),
        (1e300, "1e+300"), (.nan, "NaN"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
    ])
    func `numbers have the syntax of Prometheus`(value: Double, text: String) {
        #expect(MetricsPage.written(value) == text)
    }

    @Test func `a counter of 2⁶⁴ − 1 is exact`() {
        var page = MetricsPage()
        page.addCounter("c_total", help: "C.", UInt64.max)
        #expect(page.text.hasSuffix("\nc_total 18446744073709551615\n"))
    }

    @Test func `an invalid name, or one name with two types, traps`() async {
        await #expect(processExitsWith: .failure) {
            var page = MetricsPage()
            page.addGauge("no-name", help: "", 1)
        }
        await #expect(processExitsWith: .failure) { _ = MetricLabel("le", "1") }
        await #expect(processExitsWith: .failure) { _ = MetricLabel("0a", "1") }
        await #expect(processExitsWith: .failure) {
            var page = MetricsPage()
            page.addGauge("a", help: "", 1)
            page.addCounter("a", help: "", 1)
        }
        await #expect(processExitsWith: .failure) {
            var page = MetricsPage()
            page.addGauge("a", help: "", labels: [MetricLabel("x", "1"), MetricLabel("x", "2")], 1)
        }
    }
}
