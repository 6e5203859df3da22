import Base
import TURN
import Wire

/// A TURN server with the requests of two clients, with right and wrong credentials, and with any other bytes.
func fuzzTURN(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    var run = TURNRun()
    while !input.isAtEnd { run.step(&input) }
    run.finish()
}

private let mediaAddresses = (0..<3).map {
    TransportAddress(ip: IPAddress(v4: 0xC000_0201 + UInt32($0 / 2)), port: 40_000 + UInt16($0))
}

private struct TURNRun {
    var server: TURNServer
    var now = Instant(nanoseconds: 1_000_000_000)
    let batch = DatagramBatch(capacity: 8)
    let credentials: [TURNCredentials]
    /// The nonce that each client got last.
    var nonces = ["", ""]
    /// Who owns each relayed address.
    var owners: [TransportAddress: TURNSessionID] = [:]

    init() {
        var generator = SeededGenerator(seed: 1)
        let configuration = TURNConfiguration(addresses: [mediaAddresses[0].ip], reservedPorts: [40_000])
        server = TURNServer(configuration, using: &generator)
        credentials = (0..<2).map { TURNCredentials(username: "user\($0)", using: &generator) }
        for index in 0..<2 {
            server.addSession(
                TURNSessionID(rawValue: UInt64(index)),
                credentials: credentials[index],
                peers: mediaAddresses,
                at: now
            )
        }
    }

    mutating func step(_ input: inout FuzzInput) {
        let client = input.choice(2)
        let path = samplePaths[input.flag() ? client : 2 + input.choice(4)]
        switch input.choice(8) {
        case 0: send(input.chunk(max: 700), from: path, client)
        case 1:
            now += .seconds(Int(input.uint16()) % 700)
            while let event = server.handleTimeout(at: now) { note(event) }
        case 2:
            var data: [UInt8] = []
            data.append(bigEndian: 0x3FFE + UInt16(input.choice(6)))
            data.append(bigEndian: input.flag() ? 5 : input.uint16())
            send(data + [1, 2, 3, 4, 5], from: path, client)
        case 3: send(message(&input, .indication, client), from: path, client)
        case 4: if let event = server.closeStream(path, at: now) { note(event) }
        default: send(message(&input, .request, client), from: path, client)
        }
    }

    private func message(_ input: inout FuzzInput, _ messageClass: STUNMessageClass, _ client: Int) -> [UInt8] {
        let methods: [STUNMethod] = [.allocate, .refresh, .createPermission, .channelBind, .send, .data]
        var builder = STUNMessageBuilder(
            messageClass,
            method: input.pick(methods),
            transactionID: STUNTransactionID(high: 1, low: UInt64(input.byte()))
        )
        for _ in 0..<input.choice(6) {
            switch input.choice(7) {
            case 0: builder.append(.requestedTransport, 17 << 24 as UInt32)
            case 1: builder.append(.lifetime, input.flag() ? 0 : input.uint32())
            case 2: builder.append(.channelNumber, (0x3FFE + UInt32(input.choice(6))) << 16)
            case 3: builder.appendXORAddress(.xorPeerAddress, input.pick(mediaAddresses))
            case 4: builder.appendXORAddress(.xorPeerAddress, input.pick(samplePaths).remote)
            case 5: builder.append(.data, input.chunk(max: 40))
            default: builder.append(STUNAttributeType(rawValue: input.uint16()), input.chunk(max: 40))
            }
        }
        guard messageClass == .request, input.choice(4) != 0 else { return builder.bytes }
        let user = input.choice(8) == 0 ? 1 - client : client
        builder.append(.username, credentials[user].username)
        builder.append(.realm, "nagare")
        builder.append(.nonce, nonces[client])
        builder.appendMessageIntegrity(key: key(of: user))
        if input.flag() { builder.appendFingerprint() }
        return builder.bytes
    }

    private func key(of user: Int) -> [UInt8] { credentials[user].key(realm: "nagare") }

    private mutating func send(_ bytes: [UInt8], from path: NetworkPath, _ client: Int) {
        batch.removeAll()
        withSpan(bytes) { span in
            do throws(TURNDropReason) {
                let event = try server.handle(span, from: path, at: now, into: batch)
                if let event { note(event, messageBytes: bytes.count) }
            } catch {
                require(batch.isEmpty, "what is dropped has no response")
            }
        }
        require(batch.count <= 1, "a message has one response")
        for index in 0..<batch.count { batch.withDatagram(index) { check($0, $1, to: bytes, from: path, client) } }
    }

    private mutating func check(
        _ response: RawSpan,
        _ destination: NetworkPath,
        to request: [UInt8],
        from path: NetworkPath,
        _ client: Int
    ) {
        require(destination == path, "a response goes to who asked")
        let message: STUNMessageView
        do { message = try STUNMessageView(response) } catch { fatalError("broken: a response reads: \(error)") }
        if let nonce = message.nonce {
            require(response.byteCount <= max(request.count, 60), "an unauthenticated response is small")
            nonces[client] = nonce
        }
        require(message.messageClass != .success || message.hasIntegrity, "a success is signed")
    }

    private mutating func note(_ event: TURNEvent, messageBytes: Int = 0) {
        switch event {
        case .allocated(let session, let relayed, _):
            require(owners.updateValue(session, forKey: relayed) == nil, "a relayed address has one owner")
        case .ended(let session, let relayed, _):
            require(owners.removeValue(forKey: relayed) == session, "the owner's allocation ends")
        case .relayed(let session, let path, let payload):
            require(owners[path.remote] == session, "a datagram goes to the owner's session")
            require(path.local.index < mediaAddresses.count, "a datagram goes to a media address")
            require(!payload.isEmpty && payload.upperBound <= messageBytes, "the payload is in the message")
            deliver(over: path)
        }
    }

    /// What was relayed can be answered.
    private mutating func deliver(over path: NetworkPath) {
        var slot = [UInt8](repeating: 1, count: 128)
        do throws(TURNDropReason) {
            var route = try server.route(over: path, at: now)
            unsafe slot.withUnsafeMutableBytes { buffer in
                var span = unsafe buffer.mutableBytes
                require(route.frame(48..<77, in: &span) != nil, "there is room")
            }
        } catch {
            fatalError("broken: a permission is for both directions: \(error)")
        }
    }

    mutating func finish() {
        require(server.allocationCount <= 8, "four allocations for each of two sessions")
        for index in 0..<2 { server.removeSession(TURNSessionID(rawValue: UInt64(index)), at: now) }
        require(server.allocationCount == 0 && server.sessionCount == 0, "nothing outlives its session")
    }
}

func seedsTURN() -> [(name: String, bytes: [UInt8])] {
    /// A request of client 0 from its own address, signed.
    func request(_ writer: inout SeedWriter, method: Int, _ attributes: [[UInt8]], isSigned: Bool = true) {
        for byte in [0, 1, 5, method, 7, attributes.count] { writer.byte(byte) }
        for attribute in attributes { for byte in attribute { writer.byte(byte) } }
        writer.byte(isSigned ? 1 : 0)
        guard isSigned else { return }
        writer.byte(1)
        writer.byte(0)
    }
    let session = SeedWriter.make { writer in
        request(&writer, method: 0, [[0]], isSigned: false)
        request(&writer, method: 0, [[0]])
        request(&writer, method: 2, [[3, 0]])
        request(&writer, method: 3, [[2, 2], [3, 0]])
        // ChannelData, Refresh, and the end.
        for byte in [0, 1, 2, 2, 1] { writer.byte(byte) }
        request(&writer, method: 1, [[1, 0, 0, 0, 2, 88]])
        request(&writer, method: 1, [[1, 1]])
    }
    let raw = SeedWriter.make { writer in
        for byte in [0, 1, 0] { writer.byte(byte) }
        writer.chunk([0x40, 0, 0, 2, 1, 2])
    }
    return [("session", session), ("raw", raw)]
}
