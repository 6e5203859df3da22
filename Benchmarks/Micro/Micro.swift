import Benchmark
import Kit

/// Every workload and its floor. They alternate within each iteration, so that other load on the machine slows both.
///
/// Metrics are whole numbers per unit of work: picoseconds, and thousandths of a count.
let benchmarks: @Sendable () -> Void = {
    for factory in Workloads.all + Workloads.large {
        var workload: Workload?
        Benchmark(
            factory.name,
            configuration: .init(
                // The export requires a throughput. It is that of both together and has no meaning here.
                metrics: [
                    .throughput, Metric.time, Metric.floorTime, Metric.ratio, Metric.allocations, Metric.retains,
                    Metric.locks,
                ],
                warmupIterations: 5,
                scalingFactor: .one,
                maxDuration: .seconds(3),
                maxIterations: 400
            ),
            closure: { benchmark in
                guard let workload else { return }
                do {
                    for _ in benchmark.scaledIterations { try measure(workload, for: benchmark) }
                } catch {
                    benchmark.error("\(error)")
                }
            },
            setup: { workload = try factory() },
            teardown: { workload = nil }
        )
    }
}

enum Metric {
    static let time = BenchmarkMetric.custom("ps", useScalingFactor: false)
    static let floorTime = BenchmarkMetric.custom("C: ps", useScalingFactor: false)
    static let ratio = BenchmarkMetric.custom("ratio, thousandths", useScalingFactor: false)
    static let allocations = BenchmarkMetric.custom("allocations, thousandths", useScalingFactor: false)
    static let retains = BenchmarkMetric.custom("retains, thousandths", useScalingFactor: false)
    static let locks = BenchmarkMetric.custom("locks, thousandths", useScalingFactor: false)
}

private func measure(_ workload: Workload, for benchmark: Benchmark) throws {
    let sample = try workload.sample()
    benchmark.measurement(Metric.time, Int(sample.nanoseconds * 1_000))
    if let floor = sample.floorNanoseconds, let ratio = sample.ratio {
        benchmark.measurement(Metric.floorTime, Int(floor * 1_000))
        benchmark.measurement(Metric.ratio, Int(ratio * 1_000))
    }
    benchmark.measurement(Metric.allocations, Int(sample.costs.allocations * 1_000))
    benchmark.measurement(Metric.retains, Int(sample.costs.retains * 1_000))
    benchmark.measurement(Metric.locks, Int(sample.costs.locks * 1_000))
}
