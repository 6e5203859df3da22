import Base
import TLS
import TestSupport

/// A server's connection with a client that follows the protocol, and a script that delivers, cuts, drops, repeats, modifies
/// and forges what the client sends: before the handshake, within it and after it.
func fuzzTLS(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let run = TLSRun(minorMax: input.flag() ? 2 : 3)
    while !input.isAtEnd { run.step(&input) }
    run.finish()
}

private final class TLSRun {
    private static let certificate: TLSCertificate = {
        let (chain, key) = (Array(TestCertificate.chain.utf8), Array(TestCertificate.key.utf8))
        guard let certificate = try? TLSCertificate(chain: chain, key: key) else { fatalError("no certificate") }
        return certificate
    }()

    private let server: TLSStream
    private let client: TLSStream
    /// Bytes of the client that are not delivered yet.
    private var waiting: [UInt8] = []
    private var sent: [UInt8] = []
    private var delivered = 0
    /// What of the server's output has not reached the client.
    private var returning: [UInt8] = []
    private static let waitingBytesMax = 1 << 20

    init(minorMax: Int32) {
        guard let server = try? TLSStream(Self.certificate),
            let client = try? TLSStream.client(name: "localhost", minorMax: minorMax)
        else { fatalError("no connection") }
        self.server = server
        self.client = client
        waiting = client.takeOutput()
    }

    func step(_ input: inout FuzzInput) {
        switch input.choice(13) {
        case 0, 1: exchange()
        case 2: deliver(takeWaiting(1 + Int(input.uint16())))
        case 3: for byte in takeWaiting(1 + input.choice(64)) { deliver([byte]) }
        case 4: _ = takeWaiting(1 + input.choice(64))
        case 5: deliver(Array(waiting.prefix(1 + Int(input.uint16()))))
        case 6:
            guard !waiting.isEmpty else { return }
            for _ in 0...input.choice(4) {
                let place = Int(input.uint16()) % waiting.count
                waiting[place] ^= input.byte()
            }
        case 7: deliver(input.chunk())
        case 8: deliver(record(&input, input.chunk()))
        case 9: deliver(record(&input, message(&input)))
        case 10: sendFromClient(input.chunk())
        case 11: sendFromServer([UInt8](repeating: 7, count: 1 + Int(input.uint16()) % TLSStream.recordBytesMax))
        default: takeReturning()
        }
    }

    /// Completes what the script began, and sends once more.
    func finish() {
        exchange()
        exchange()
        sendFromClient([1, 2, 3])
        exchange()
        if server.status == .open { sendFromServer([4]) }
    }

    private func exchange() {
        deliver(takeWaiting(.max))
        takeReturning()
    }

    private func takeWaiting(_ count: Int) -> [UInt8] {
        let taken = Array(waiting.prefix(count))
        waiting.removeFirst(taken.count)
        return taken
    }

    private func deliver(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let before = server.status
        let hadOutput = server.hasOutput
        withSpan(bytes) { span in
            server.receive(span) { data in
                let data = data.array()
                require(!data.isEmpty && delivered + data.count <= sent.count, "data is the client's")
                require(data[...] == sent[delivered..<delivered + data.count], "data is authentic and in order")
                delivered += data.count
            }
        }
        if before == .failed || before == .closed {
            require(server.status == before && server.hasOutput == hadOutput, "an ended connection stays so")
        }
        if before == .open { require(server.status != .handshaking, "a connection opens once") }
        takeOutput()
    }

    private func takeOutput() {
        let output = server.takeOutput()
        require(output.count <= TLSStream.outputBytesMax, "the output is bounded")
        returning += output
        require(!server.hasOutput, "output is taken once")
        if returning.count > Self.waitingBytesMax { returning = [] }
    }

    private func takeReturning() {
        let bytes = returning
        returning = []
        withSpan(bytes) { span in client.receive(span) { _ in } }
        waiting += client.takeOutput()
    }

    private func sendFromClient(_ data: [UInt8]) {
        guard !data.isEmpty, client.status == .open, waiting.count < Self.waitingBytesMax else { return }
        if withSpan(data, client.send) { sent += data }
        waiting += client.takeOutput()
    }

    private func sendFromServer(_ data: [UInt8]) {
        let isOpen = server.status == .open
        let isSent = withSpan(data, server.send)
        require(isSent == isOpen, "an open connection sends, and no other one")
        takeOutput()
    }

    /// A record with `fragment`, whose length may be another one.
    private func record(_ input: inout FuzzInput, _ fragment: [UInt8]) -> [UInt8] {
        var record: [UInt8] = [20 + UInt8(input.choice(5)), 3, UInt8(input.choice(5))]
        record.append(bigEndian: input.flag() ? input.uint16() : UInt16(fragment.count))
        return record + fragment
    }

    /// A handshake message, or the first part of one.
    private func message(_ input: inout FuzzInput) -> [UInt8] {
        let kind = input.pick([0, 1, 2, 4, 5, 8, 11, 12, 13, 14, 15, 16, 20, 22, 24, 254] as [UInt8])
        let missing = input.flag() ? input.uint16() : 0
        let body = input.chunk()
        var message: [UInt8] = [kind, 0]
        message.append(bigEndian: UInt16(truncatingIfNeeded: body.count + Int(missing)))
        return message + body
    }
}

/// Scripts: handshakes with both versions, whole and in pieces, data in both directions, and forged records.
func seedsTLS() -> [(name: String, bytes: [UInt8])] {
    func script(minorMax: Int, _ body: (inout SeedWriter) -> Void) -> [UInt8] {
        SeedWriter.make { seed in
            seed.byte(minorMax == 2 ? 1 : 0)
            body(&seed)
        }
    }
    func exchangeData(_ seed: inout SeedWriter) {
        for _ in 0..<3 { seed.byte(0) }
        seed.byte(10)
        seed.chunk([1, 2, 3, 4])
        seed.byte(11)
        seed.uint16(2_000)
        seed.byte(0)
    }
    let whole = [2, 3].map { minor in script(minorMax: minor) { exchangeData(&$0) } }
    let pieces = script(minorMax: 3) { seed in
        for _ in 0..<8 {
            seed.byte(3)
            seed.byte(60)
        }
        exchangeData(&seed)
    }
    let changed = script(minorMax: 3) { seed in
        exchangeData(&seed)
        seed.byte(10)
        seed.chunk([5, 6, 7])
        seed.byte(6)
        seed.byte(0)
        seed.uint16(9)
        seed.byte(1)
    }
    let forged = script(minorMax: 2) { seed in
        for kind in [2, 1] {
            seed.byte(9)
            seed.byte(2)
            seed.byte(3)
            seed.byte(0)
            seed.byte(kind)
            seed.byte(0)
            seed.chunk([UInt8](repeating: 3, count: 60))
        }
    }
    let alert = script(minorMax: 3) { seed in
        exchangeData(&seed)
        seed.byte(8)
        seed.byte(1)
        seed.byte(3)
        seed.byte(0)
        seed.chunk([2, 40])
    }
    return [
        ("version-2", whole[0]), ("version-3", whole[1]), ("pieces", pieces), ("changed", changed),
        ("forged", forged), ("alert", alert),
    ]
}
