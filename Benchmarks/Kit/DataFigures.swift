internal import Counters

/// What data channels cost.
package enum DataFigures {
    private static let runs = 5
    private static let receivers = 100
    private static let smallBytes = 100
    private static let bulkMessage = [UInt8](repeating: 3, count: 65_536)
    private static let bulkBytes = 64 << 20
    private static let idleTurns = 1_500
    private static let lossSeeds: [UInt64] = [1, 2, 3, 4, 5]
    private static let lossSeconds = 60

    package static func all() throws -> [Figure] {
        [try deliveries(), try bulk()] + (try stable())
    }

    /// Figures without the CPU's time.
    static func stable() throws -> [Figure] {
        [try memory(), try loss(percent: 1)]
    }

    /// A small message to many clients, each of which acknowledges.
    private static func deliveries() throws -> Figure {
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
        return Figure(
            name: "100 B to \(receivers) clients",
            unit: "deliveries/s",
            value: count / times.map(\.node).median * 1e9,
            goal: 200_000,
            isLeast: true,
            bothEnds: count / times.map { $0.node + $0.clients }.median * 1e9
        )
    }

    /// Long messages to one client, as fast as its acknowledgements permit.
    private static func bulk() throws -> Figure {
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
        return Figure(
            name: "bulk to one client",
            unit: "Gbit/s",
            value: bits / times.map(\.node).median,
            goal: 7.5,
            isLeast: true,
            bothEnds: bits / times.map { $0.node + $0.clients }.median
        )
    }

    /// What a client's association takes beyond a client without data channels.
    private static func memory() throws -> Figure {
        func measure(_ hasData: Bool) throws -> Double {
            let before = nagare_heap_bytes()
            let call = try DataCall(clients: receivers, hasData: hasData)
            // A connection without data for a second has no record buffers.
            for _ in 0..<idleTurns { call.turn() }
            call.removeClients()
            return withExtendedLifetime(call) { Double(nagare_heap_bytes()) - Double(before) }
        }
        // The first call makes tables of libraries, too.
        _ = try measure(true)
        let value = (try measure(true) - measure(false)) / Double(receivers)
        return Figure(
            name: "memory of an idle association",
            unit: "bytes",
            value: value,
            goal: 4_096,
            isLeast: false
        )
    }

    private static func loss(percent: Int) throws -> Figure {
        let rates = try lossSeeds.map { seed in
            let association = LossyAssociation(lossPercent: percent, seed: seed)
            return try association.megabits(seconds: lossSeconds)
        }
        return Figure(
            name: "one channel, 60 ms, \(percent) % loss",
            unit: "Mbit/s",
            value: rates.median,
            goal: 3,
            isLeast: true
        )
    }
}
