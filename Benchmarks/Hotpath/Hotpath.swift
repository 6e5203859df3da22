import Kit

@main
enum Hotpath {
    static func main() async throws {
        let faults = await SelfTest.run()
        for fault in faults { print("The counters are blind: \(fault).") }
        for (profile, backend) in Workloads.suites {
            for n in [10] {
                let w = try Workloads.fanOut(subscribers: n, profile, backend)
                try w.collect(runs: 4); let c = try w.count(runs: 5)
                let t = try w.time(runs: 50)
                print(w.name, c.named.map { "\($0.name) \($0.value)" }.joined(separator: ", "), t.nanoseconds, t.ratio ?? 0)
            }
        }
    }
}
