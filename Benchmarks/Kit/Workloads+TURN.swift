/// Workloads of clients behind the forwarder's TURN server.
extension Workloads {
    static var turn: [Factory] {
        TURNLoad.Request.allCases.map { request in
            Factory(name(request), unit: "request") { try requests(request) }
        } + [Factory(relayedName, unit: "packet") { try relayedFanOut() }]
    }

    private static func name(_ request: TURNLoad.Request) -> String { "TURN, \(request.rawValue)" }
    private static let relayedName = "TURN, fan-out 10"

    /// Requests of many clients, one each, in a turn. The requests before and behind it are not measured.
    private static func requests(_ measured: TURNLoad.Request) throws -> Workload {
        let load = try TURNLoad(clients: TURNLoad.clientsPerTurn)
        let all = TURNLoad.Request.allCases
        func run(_ requests: some Sequence<TURNLoad.Request>) throws {
            for request in requests {
                load.prepare(request)
                load.answer()
                try load.finish(request)
            }
        }
        for _ in 0..<4 { try run(all) }
        return Workload(
            name(measured),
            unitsPerRun: TURNLoad.clientsPerTurn,
            prepare: {
                try run(all.prefix { $0 != measured })
                load.prepare(measured)
            },
            finish: {
                try load.finish(measured)
                try run(all.drop { $0 != measured }.dropFirst())
            },
            { load.answer() }
        )
    }

    /// Forwards one publisher's packets to clients with channels, and puts the channels' headers before them.
    private static func relayedFanOut() throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = 10
        shape.isRelayed = true
        let call = try Call(shape)
        try call.warmUp()
        let expected = shape.packetsPerTurn * shape.subscribers
        var framed = 0
        return Workload(
            relayedName,
            unitsPerRun: expected,
            prepare: { try call.prepareTurn() },
            finish: {
                guard framed >= expected else { throw CallError.broken("\(framed) of \(expected) packets are framed") }
                call.finishTurn()
                call.serviceTurn()
                call.discardBatch()
            },
            {
                call.forwardTurn()
                framed = (try? call.sendTurn(to: nil)) ?? 0
            }
        )
    }
}
