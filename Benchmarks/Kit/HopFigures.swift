/// What the hop between two nodes carries.
enum HopFigures {
    private static let turns = 30
    private static let packetBytes = 1_200

    /// Figures without the CPU's time.
    static func stable() throws -> [Figure] {
        var shape = Call.Shape()
        shape.subscribers = 10
        shape.crossesNodes = true
        shape.payloadBytes = packetBytes - SyntheticPacket.headerBytes
        let call = try Call(shape)
        try call.warmUp()
        var sum = (datagrams: 0, bytes: 0)
        for _ in 0..<turns {
            try call.prepareTurn()
            let waiting = call.forwardToNode()
            sum.datagrams += waiting.datagrams
            sum.bytes += waiting.bytes
            // The viewers' node takes them.
            call.inbox.removeAll()
            call.forwardTurn()
            call.finishTurn()
            call.serviceTurn()
            call.discardBatch()
        }
        let packets = Double(turns * shape.packetsPerTurn)
        return [
            Figure(
                name: "hop, datagrams a packet to 10 viewers",
                unit: "datagrams",
                value: Double(sum.datagrams) / packets,
                goal: nil
            ),
            Figure(
                name: "hop, bytes added to a packet of 1,200 B",
                unit: "bytes",
                value: Double(sum.bytes) / packets - Double(packetBytes),
                goal: nil
            ),
        ]
    }
}
