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

/// `Benchmarks/scorecard/server.md`: the figures of all cases, and pictures of some.
enum AdaptationPage {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Benchmarks/scorecard")

    /// `NAGARE_SCORECARD=update` writes the page.
    static let isUpdateRequested = ProcessInfo.processInfo.environment["NAGARE_SCORECARD"] == "update"

    private static let pictures = ["Return 0.6", "Return 0.8", "Return of 720p", "S8", "Outage"]

    static func write(_ table: String) throws {
        var text = introduction + table + drawn
        for one in AdaptationCase.all where pictures.contains(one.name) {
            text += "### \(one.name): \(one.setup)\n\n![\(one.name)](\(fileName(of: one)))\n\n"
            try AdaptationPlot.svg(one)?
                .write(to: folder.appendingPathComponent(fileName(of: one)), atomically: true, encoding: .utf8)
        }
        try text.write(to: folder.appendingPathComponent("server.md"), atomically: true, encoding: .utf8)
    }

    /// Prints the figures of each seed of the only case of a test run, and draws `NAGARE_ADAPTATION_SEED` of it, or else the first
    /// one, into the file that `NAGARE_ADAPTATION_PICTURE` names.
    static func writePicture() throws {
        let environment = ProcessInfo.processInfo.environment
        guard let path = environment["NAGARE_ADAPTATION_PICTURE"], let one = AdaptationCase.tested.first else { return }
        for seed in AdaptationCase.seeds {
            let figures = try one.run(seed, nil)
            print(
                "seed \(seed):",
                one.gates.map { "\($0.name) \(AdaptationGate.text(figures[$0.name] ?? .nan))" }.joined(separator: ", ")
            )
        }
        let seed = environment["NAGARE_ADAPTATION_SEED"].flatMap(UInt64.init) ?? 1
        try AdaptationPlot.svg(one, seed: seed)?.write(toFile: path, atomically: true, encoding: .utf8)
    }

    /// Whether all pictures are there.
    static var isDrawn: Bool {
        AdaptationCase.all.filter { pictures.contains($0.name) }.allSatisfy {
            FileManager.default.fileExists(atPath: folder.appendingPathComponent(fileName(of: $0)).path)
        }
    }

    private static func fileName(of adaptationCase: AdaptationCase) -> String {
        "server-\(adaptationCase.name.replacing(" ", with: "-").lowercased()).svg"
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

        What viewers see and hear on limited links: whole nodes and clients in virtual time, with twenty seeds each. A figure
        is the worst one of the twenty. `Tests/Simulation/Adaptation` has the cases; `Benchmarks/scorecard/update` writes this page.

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

    private static let drawn = """

        ## Pictures

        Above, the gray area is what the link carries, the thick line what passed it, the thin one the target rate, and orange
        marks are probes. In the middle is the wait in the link's queue, red where it dropped packets. Below is what the viewer
        sees: simulcast layers, each with its temporal layers, red where the picture is frozen. All are runs of seed 1;
        `NAGARE_ADAPTATION_PICTURE=FILE NAGARE_ADAPTATION_CASE=NAME` draws any other case.


        """
}

extension AdaptationCase {
    static let all =
        starts + [raisedMaximum, screen, swing, between, receiverEstimate, crowd, audio] + dips
        + [audioFirst, uplinkLoss, neighbour] + returns + simpleClients + [outage] + losses + paths

    /// `NAGARE_ADAPTATION_CASE` names the only case of a test run.
    static let tested: [AdaptationCase] = {
        guard let name = ProcessInfo.processInfo.environment["NAGARE_ADAPTATION_CASE"] else { return all }
        return all.filter { $0.name.hasPrefix(name) }
    }()

    /// Those that are run with their faults.
    static let proven: [AdaptationCase] = {
        let names = [
            "S1 0.6 100", "S1 5 100", "S5", "S8", "Dip 1.2", "Return 0.6", "Return 0.8", "Return of 720p", "Outage",
            "Bursts 5",
        ]
        return tested.filter { names.contains($0.name) }
    }()
}
