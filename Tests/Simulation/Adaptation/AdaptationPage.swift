import Foundation

/// Runs each case once for all tests that ask for its figures.
actor AdaptationScores {
    static let shared = AdaptationScores()
    private var scores: [String: Task<[String: Double], any Error>] = [:]

    func worst(_ adaptationCase: AdaptationCase) async throws -> [String: Double] {
        let score = scores[adaptationCase.name] ?? Task.detached { try adaptationCase.worst() }
        scores[adaptationCase.name] = score
        return try await score.value
    }
}

/// `Benchmarks/scorecard/server.md`: the figures of all cases.
enum AdaptationPage {
    private static let url = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Benchmarks/scorecard/server.md")

    /// `NAGARE_SCORECARD=update` writes the page.
    static let isUpdateRequested = ProcessInfo.processInfo.environment["NAGARE_SCORECARD"] == "update"

    static func write(_ table: String) throws {
        try (introduction + table).write(to: url, atomically: true, encoding: .utf8)
    }

    static func table(_ cases: [AdaptationCase]) async throws -> String {
        var text = "| case | figures | goals missed |\n| --- | --- | --- |\n"
        for one in cases {
            let worst = try await AdaptationScores.shared.worst(one)
            let figures = one.gates.map { gate in
                let unit = gate.unit.isEmpty ? "" : " \(gate.unit)"
                return "\(gate.name) \(AdaptationGate.text(worst[gate.name] ?? .nan))\(unit)"
            }
            let missed = one.gates.filter { !$0.isGoalMet(worst[$0.name] ?? .nan) }.map { $0.text($0.goal) }
            text += "| **\(one.name)** \(one.setup) | \(figures.joined(separator: ", ")) "
            text += "| \(missed.joined(separator: ", ")) |\n"
        }
        return text
    }

    private static let introduction = """
        # Scorecard of the whole server

        What viewers see and hear on limited links: whole nodes and clients in virtual time, with four seeds each. A figure is
        the worst one of the four. `Tests/Simulation/Adaptation` has the cases; `Benchmarks/scorecard/update` writes this page.

        Unless a row says otherwise: one viewer; audio of 50 kbit/s; simulcast of 150, 500 and 2,500 kbit/s (180p, 360p, 720p)
        with three temporal layers of 40, 20 and 40 %; key frames of six mean frames, 150 ms after their request; an RTT of
        100 ms; a queue of 300 ms with tail drop; transport-wide feedback each 100 ms.

        | figure | |
        | --- | --- |
        | T best, T back, T picture | until the best layers that fit are shown, from the connection or the change on; ∞: never |
        | T picture, T next (Return, Outage) | until any picture shows again, and until the second layer does |
        | T first | from the connection to the first picture |
        | T↓ | until the queue is below 50 ms and stays so for a second |
        | T up, T down | until the target rate follows |
        | Q, Q max | 95th percentile and maximum of the wait in the link's queue |
        | L, A | packets of all kinds, and of audio, that were lost |
        | Z | the part of the time that the picture is frozen (W3C webrtc-stats) |
        | freeze, frozen | the longest time, and the whole time, that the picture is frozen |
        | used | what passed the link, of what it would have carried |
        | N | changes of layers |
        | O | padding and retransmissions of all bytes; in S6 padding of the capacity |
        | layer | the highest or lowest simulcast layer that is shown, 0 is the lowest |


        """
}

extension AdaptationCase {
    static let all =
        starts + [raisedMaximum, screen, swing, between, receiverEstimate, crowd, audio] + dips
        + [audioFirst, uplinkLoss, neighbour] + returns + simpleClients + [outage]

    /// `NAGARE_ADAPTATION_CASE` names the only case of a test run.
    static let tested: [AdaptationCase] = {
        guard let name = ProcessInfo.processInfo.environment["NAGARE_ADAPTATION_CASE"] else { return all }
        return all.filter { $0.name.hasPrefix(name) }
    }()

    /// Those that are run with their faults.
    static let proven: [AdaptationCase] = {
        let names = [
            "S1 0.6 100", "S1 5 100", "S5", "S8", "Dip 1.2", "Return 0.6", "Return 0.8", "Return of 720p", "Outage",
        ]
        return tested.filter { names.contains($0.name) }
    }()
}
