internal import SRTP
internal import Wire

/// The forwarding path in pieces.
package enum Workloads {
    /// A workload that can be made; making one may take hundreds of handshakes.
    package struct Recipe {
        package let name: String
        /// What one unit is, as in the tables.
        package let unit: String
        /// Enough for a median that holds still.
        package let runs: Int
        /// Whether its instructions are counted: not where setting it up would take callgrind too long.
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

    /// All that the thresholds are about.
    package static var all: [Recipe] { parts + calls }

    private static var parts: [Recipe] {
        let unprotects = suites.map { profile, backend in
            // What libsrtp2 does inside is not ours to count.
            Recipe(unprotectName(profile, backend), isCollected: backend != .libsrtp2) {
                try unprotect(profile, backend)
            }
        }
        return unprotects + [
            Recipe("parse") { parse() },
            Recipe("feedback, transport-wide") { transportFeedback() },
            Recipe("feedback, NACK") { lossDetection() },
            Recipe("feedback, report", unit: "report") { report() },
            Recipe("ring") { ring() },
        ]
    }

    private static var calls: [Recipe] {
        let forwarding = suites.flatMap { profile, backend in
            [0, 1, 10, 100].map { subscribers in
                Recipe(
                    fanOutName(subscribers, profile, backend),
                    isCollected: subscribers <= 10 && backend != .libsrtp2
                ) {
                    try fanOut(subscribers, profile, backend)
                }
            }
        }
        let requests = suites.map { profile, backend in
            Recipe(retransmissionName(profile, backend), isCollected: backend == .preferred) {
                try retransmission(16, profile, backend)
            }
        }
        return forwarding + requests + [
            Recipe("other loop, fan-out 1") { try handOver(1) },
            Recipe("other loop, fan-out 10") { try handOver(10) },
            Recipe(timersName(100), unit: "peer and second", runs: 20, isCollected: false) { try timers(100) },
        ]
    }

    /// What takes so long to set up that only the whole suite has it.
    package static var large: [Recipe] {
        suites.map { profile, backend in
            Recipe(fanOutName(1_000, profile, backend), isCollected: false) { try fanOut(1_000, profile, backend) }
        } + [Recipe(timersName(1_000), unit: "peer and second", runs: 20, isCollected: false) { try timers(1_000) }]
    }

    /// Every backend that is here with every profile.
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
