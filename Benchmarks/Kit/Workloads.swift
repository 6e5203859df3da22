internal import SRTP
internal import Wire

/// The workloads of the benchmarks: pieces of the forwarding path.
package enum Workloads {
    /// Makes a workload, which may take hundreds of handshakes.
    package struct Factory {
        package let name: String
        /// The name of a unit in the tables.
        package let unit: String
        /// The number of runs that gives a stable median.
        package let runs: Int
        /// Whether callgrind counts its instructions. False if the setup would take too long under callgrind.
        package let isCollected: Bool
        fileprivate let make: () throws -> Workload

        init(
            _ name: String,
            unit: String = "packet",
            runs: Int = 50,
            isCollected: Bool = true,
            _ make: @escaping () throws -> Workload
        ) {
            self.name = name
            self.unit = unit
            self.runs = runs
            self.isCollected = isCollected
            self.make = make
        }

        package func callAsFunction() throws -> Workload {
            let workload = try make()
            precondition(workload.name == name)
            return workload
        }
    }

    /// The workloads that have thresholds.
    package static var all: [Factory] { parts + calls + estimation + data + turn }

    private static var parts: [Factory] {
        let unprotects = suites.map { profile, backend in
            // The cost of libsrtp2 itself is not checked.
            Factory(unprotectName(profile, backend), isCollected: backend != .libsrtp2) {
                try unprotect(profile, backend)
            }
        }
        return unprotects + [
            Factory("parse") { parse() },
            Factory("feedback, transport-wide") { transportFeedback() },
            Factory("feedback, NACK") { lossDetection() },
            Factory("feedback, report", unit: "report") { report() },
            Factory("ring") { ring() },
            Factory("SDP, offer", unit: "offer") { offer() },
        ]
    }

    private static var calls: [Factory] {
        let forwarding = suites.flatMap { profile, backend in
            [0, 1, 10, 100].map { subscribers in
                Factory(
                    fanOutName(subscribers, profile, backend),
                    isCollected: subscribers <= 10 && backend != .libsrtp2
                ) {
                    try fanOut(subscribers, profile, backend)
                }
            }
        }
        let requests = suites.map { profile, backend in
            Factory(retransmissionName(profile, backend), isCollected: backend == .preferred) {
                try retransmission(16, profile, backend)
            }
        }
        return forwarding + requests + [
            Factory("other loop, fan-out 1") { try crossLoopFanOut(1) },
            Factory("other loop, fan-out 10") { try crossLoopFanOut(10) },
            Factory("other node, fan-out 1") { try crossNodeFanOut(1) },
            Factory("other node, fan-out 10") { try crossNodeFanOut(10) },
            Factory(timersName(100), unit: "peer and second", runs: 20, isCollected: false) { try timers(100) },
        ]
    }

    /// Workloads that take long to set up. Only the microbenchmarks run them.
    package static var large: [Factory] {
        suites.map { profile, backend in
            Factory(fanOutName(1_000, profile, backend), isCollected: false) { try fanOut(1_000, profile, backend) }
        } + [Factory(timersName(1_000), unit: "peer and second", runs: 20, isCollected: false) { try timers(1_000) }]
    }

    /// Every available backend with every profile.
    static var suites: [(SRTPProfile, SRTPBackend)] {
        SRTPBackend.available.flatMap { backend in
            [SRTPProfile.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1].map { ($0, backend) }
        }
    }

    static func name(_ profile: SRTPProfile) -> String {
        switch profile {
        case .aeadAES128GCM: "gcm-128"
        case .aeadAES256GCM: "gcm-256"
        case .aes128CMHMACSHA1: "cm-sha1-80"
        }
    }
}
