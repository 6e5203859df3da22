internal import Counters

/// A figure of data channels beside its goal.
package struct DataFigure: Codable, Sendable {
    package let name: String
    package let unit: String
    package let value: Double
    package let goal: Double
    /// Whether the goal is the least that is wanted; otherwise the most.
    package let isLeast: Bool
    /// The value with the CPU time of both ends in place of the node's; `nil` where time is virtual.
    package let bothEnds: Double?

    /// 1 and more when the goal is reached.
    package var ratio: Double { isLeast ? value / goal : goal / value }
}

/// What data channels cost.
package enum DataFigures {
    private static let runs = 5
    private static let receivers = 100
    private static let smallBytes = 100
    private static let bulkMessage = [UInt8](repeating: 3, count: 65_536)
    private static let bulkBytes = 64 << 20
    private static let lossSeeds: [UInt64] = [1, 2, 3, 4, 5]
    private static let lossSeconds = 60

    package static func all() throws -> [DataFigure] {
        [try deliveries(), try bulk(), try memory(), try loss(percent: 1)]
    }

    /// A small message to many clients, each of which acknowledges.
    private static func deliveries() throws -> DataFigure {
        let call = try DataCall(clients: receivers)
        let message = [UInt8](repeating: 5, count: smallBytes)
        let perRun = 100
        func run() throws -> DataCall.Times {
            call.resetTimes()
            let before = call.messagesReceived
            for _ in 0..<perRun {
                call.send(message)
                call.turn()
            }
            try call.run { call.messagesReceived - before == perRun * receivers }
            return call.times
        }
        _ = try run()
        let times = try (0..<runs).map { _ in try run() }
        let count = Double(perRun * receivers)
        return DataFigure(
            name: "100 B to \(receivers) clients",
            unit: "deliveries/s",
            value: count / times.map(\.node).median * 1e9,
            goal: 200_000,
            isLeast: true,
            bothEnds: count / times.map { $0.node + $0.clients }.median * 1e9
        )
    }

    /// Long messages to one client, as fast as its acknowledgements permit.
    private static func bulk() throws -> DataFigure {
        let call = try DataCall(clients: 1)
        func run(_ bytes: Int) throws -> DataCall.Times {
            call.resetTimes()
            let before = call.bytesReceived
            try call.run {
                while call.queuedBytes < 4 * bulkMessage.count { call.send(bulkMessage) }
                return call.bytesReceived - before >= bytes
            }
            return call.times
        }
        _ = try run(bulkBytes / 4)
        let times = try (0..<runs).map { _ in try run(bulkBytes) }
        let bits = Double(bulkBytes) * 8
        return DataFigure(
            name: "bulk to one client",
            unit: "Gbit/s",
            value: bits / times.map(\.node).median,
            goal: 2,
            isLeast: true,
            bothEnds: bits / times.map { $0.node + $0.clients }.median
        )
    }

    /// What a client's association takes beyond a client without data channels.
    private static func memory() throws -> DataFigure {
        func measure(_ hasData: Bool) throws -> Double {
            let before = nagare_heap_bytes()
            let call = try DataCall(clients: receivers, hasData: hasData)
            call.removeClients()
            return withExtendedLifetime(call) { Double(nagare_heap_bytes()) - Double(before) }
        }
        // The first call makes tables of libraries, too.
        _ = try measure(true)
        let value = (try measure(true) - measure(false)) / Double(receivers)
        return DataFigure(
            name: "memory of an idle association",
            unit: "bytes",
            value: value,
            goal: 4_096,
            isLeast: false,
            bothEnds: nil
        )
    }

    private static func loss(percent: Int) throws -> DataFigure {
        let rates = try lossSeeds.map { seed in
            let association = LossyAssociation(lossPercent: percent, seed: seed)
            return try association.megabits(seconds: lossSeconds)
        }
        return DataFigure(
            name: "one channel, 60 ms, \(percent) % loss",
            unit: "Mbit/s",
            value: rates.median,
            goal: 3,
            isLeast: true,
            bothEnds: nil
        )
    }
}
