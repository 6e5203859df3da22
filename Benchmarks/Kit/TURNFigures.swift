internal import Counters
internal import DTLS
internal import MediaTypes
internal import SRTP
internal import Wire

/// What clients over TURN and TCP cost and get.
package enum TURNFigures {
    private static let runs = 15
    private static let clients = 1_000
    private static let memoryClients = 10_000
    private static let turnsPerRun = 8
    /// Of an RTP packet.
    private static let packetBytes = 1_200
    /// TCP's handshake (RFC 9293 §3.5) and that of TLS 1.3 (RFC 8446 §2).
    private static let streamRoundTrips = 2

    package static func all() throws -> [Figure] {
        let packets = try [10, 100].flatMap { viewers in
            try [false, true].flatMap { try relayed(viewers, sends: $0) }
        }
        return [try allocations()] + packets + (try stable())
    }

    /// Figures without the CPU's time.
    static func stable() throws -> [Figure] {
        let video = try [StreamVideo.Link.lossy, .congested].flatMap { try StreamVideo.figures(over: $0) }
        return [try memory(), try join()] + video
    }

    /// Clients that allocate and end their allocations: three requests each.
    private static func allocations() throws -> Figure {
        let load = try TURNLoad(clients: clients)
        let times = try (0..<runs).map { _ in try load.allocate() + load.release() }
        return Figure(
            name: "TURN allocations",
            unit: "a second",
            value: 1e9 / Array(times.dropFirst()).median,
            goal: 20_000,
            isLeast: true
        )
    }

    /// What an allocation with a channel takes, with the credentials for it.
    private static func memory() throws -> Figure {
        func measure(_ count: Int) throws -> Double {
            let before = nagare_heap_bytes()
            let load = try TURNLoad(clients: count)
            _ = try load.allocate()
            try load.bind()
            load.removeClients()
            return withExtendedLifetime(load) { Double(nagare_heap_bytes()) - Double(before) }
        }
        _ = try measure(1)
        let value = (try measure(memoryClients + 1) - measure(1)) / Double(memoryClients)
        return Figure(name: "memory of an allocation", unit: "bytes", value: value, goal: 1_024)
    }

    /// The CPU time of packets to clients with allocations beside that of packets to clients without. Runs alternate.
    private static func relayed(_ subscribers: Int, sends: Bool) throws -> [Figure] {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.payloadBytes = packetBytes - SyntheticPacket.headerBytes
        let direct = try Call(shape)
        shape.isRelayed = true
        let relayed = try Call(shape)
        try direct.warmUp()
        try relayed.warmUp()
        let sink = sends ? nagare_sink_open() : nil
        guard sink != -1 else { throw CallError.broken("no socket on the loopback") }
        let times = try (0..<4 * runs).map { _ in
            let plain = try time(direct, sink)
            return (plain: plain, relayed: try time(relayed, sink))
        }
        let name = "\(subscribers) viewers, \(sends ? "with" : "without") sending"
        return [
            Figure(
                name: "packet over TURN, \(name)",
                unit: "of a direct packet's CPU time",
                value: times.map { $0.relayed / $0.plain }.median,
                goal: 1.15
            ),
            Figure(name: "direct packet, \(name)", unit: "ns", value: times.map(\.plain).median, goal: nil),
            Figure(
                name: "added by TURN, \(name)",
                unit: "ns",
                value: times.map { $0.relayed - $0.plain }.median,
                goal: nil
            ),
        ]
    }

    /// Nanoseconds of a packet.
    private static func time(_ call: Call, _ sink: Int32?) throws -> Double {
        var time = 0.0
        for _ in 0..<turnsPerRun {
            try call.prepareTurn()
            let start = nagare_thread_nanoseconds()
            call.forwardTurn()
            let framed = try call.sendTurn(to: sink)
            time += Double(nagare_thread_nanoseconds() - start)
            guard framed == (call.shape.isRelayed ? call.batch.count : 0) else {
                throw CallError.broken("\(framed) of \(call.batch.count) packets have a channel's header")
            }
            call.finishTurn()
            call.serviceTurn()
            call.discardBatch()
        }
        return time / Double(call.takeForwarded())
    }

    /// The round trips until a client that connects over TURN and TLS can get media. Those of TCP and TLS are known.
    private static func join() throws -> Figure {
        var shape = Call.Shape()
        shape.subscribers = 1
        shape.isRelayed = true
        let trips = try Call(shape).viewers.map(\.joinRoundTrips).max() ?? 0
        return Figure(
            name: "join over TURN/TLS",
            unit: "round trips",
            value: Double(streamRoundTrips + trips),
            goal: 7
        )
    }
}
