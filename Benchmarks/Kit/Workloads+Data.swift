internal import Forwarding

/// Workloads of data channels.
extension Workloads {
    static var data: [Factory] {
        [
            Factory(dataName, unit: "delivery") { try deliveries() },
            Factory(bulkName, unit: "message", runs: 20, isCollected: false) { try bulk() },
        ]
    }

    private static let dataName = "data, 100 B to 10 clients"
    private static let bulkName = "data, 64 KiB, both ends"

    /// A message to every client, with the acknowledgements of earlier ones. The unit is a message at a client.
    private static func deliveries() throws -> Workload {
        let call = try DataCall(clients: 10)
        let commands = call.makeCommands([UInt8](repeating: 5, count: 100))
        // Until the associations' windows and buffers stay as they are.
        for _ in 0..<500 {
            call.perform(commands)
            call.turn()
        }
        var before = call.messagesReceived
        return Workload(
            dataName,
            unitsPerRun: call.clients.count,
            prepare: { before = call.messagesReceived },
            finish: {
                call.turnClients()
                let count = call.messagesReceived - before
                guard count == call.clients.count else { throw CallError.broken("\(count) messages arrived") }
            },
            {
                call.perform(commands)
                call.turnForwarder()
            }
        )
    }

    /// Long messages to one client. The work of the client is the same SCTP and DTLS, and is counted, too.
    private static func bulk() throws -> Workload {
        let messages = 16
        let messageBytes = 65_536
        let call = try DataCall(clients: 1)
        let commands = call.makeCommands([UInt8](repeating: 3, count: messageBytes))
        var fault: (any Error)?
        func send() {
            do {
                let before = call.messagesReceived
                var sent = 0
                try call.run {
                    while sent < messages, call.queuedBytes < 4 * messageBytes {
                        call.perform(commands)
                        sent += 1
                    }
                    return call.messagesReceived - before == messages
                }
            } catch { fault = error }
        }
        for _ in 0..<4 { send() }
        return Workload(
            bulkName,
            unitsPerRun: messages,
            finish: { if let fault { throw fault } },
            { send() }
        )
    }
}
