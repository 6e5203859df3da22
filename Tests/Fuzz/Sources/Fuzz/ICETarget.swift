import Base
import ICE
import Wire

/// An agent with messages from the peer and from others: the first byte chooses the role, the rest is a script.
func fuzzICE(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    if input.flag() {
        var run = ControllingRun()
        run.play(&input)
    } else {
        var run = LiteRun()
        run.play(&input)
    }
}

/// The paths of the messages: both address families and two sockets.
let samplePaths: [NetworkPath] = (0..<12).map { index in
    let ip =
        index % 3 == 2
        ? IPAddress(high: 0x2001_0DB8 << 32, low: UInt64(index)) : IPAddress(v4: 0xC000_0200 + UInt32(index))
    return NetworkPath(
        socket: SocketIndex(rawValue: UInt16(index % 2)),
        remote: TransportAddress(ip: ip, port: 40_000 + UInt16(index))
    )
}

private let localCredentials = (0..<3).map { Sample.credentials("loc\($0)", "the local password") }
private let remoteCredentials = (0..<3).map { Sample.credentials("rem\($0)", "the remote password") }

/// Up to six attributes with types and values from the input.
private func appendAttributes(_ input: inout FuzzInput, to builder: inout STUNMessageBuilder) {
    for _ in 0..<input.choice(7) {
        switch input.choice(8) {
        case 0: builder.append(.useCandidate)
        case 1: builder.append(.iceControlling, UInt64(input.uint32()))
        case 2: builder.append(.iceControlled, UInt64(input.uint32()))
        case 3: builder.append(.priority, input.uint32())
        case 4: builder.appendXORMappedAddress(input.pick(samplePaths).remote)
        case 5: builder.appendErrorCode(300 + Int(input.uint16()) % 400, reason: "why")
        default: builder.append(STUNAttributeType(rawValue: input.uint16()), input.chunk(max: 800))
        }
    }
}

/// A check that the peer could send.
func makeCheck(
    to local: ICECredentials,
    from remote: ICECredentials,
    id: STUNTransactionID,
    nominating: Bool,
    _ extend: (inout STUNMessageBuilder) -> Void = { _ in }
) -> [UInt8] {
    var builder = STUNMessageBuilder(.request, transactionID: id)
    builder.append(.username, "\(local.usernameFragment):\(remote.usernameFragment)")
    builder.append(.priority, 0x6E7F_1EFF as UInt32)
    if nominating { builder.append(.useCandidate) }
    extend(&builder)
    builder.appendMessageIntegrity(key: Array(local.password.utf8))
    builder.appendFingerprint()
    return builder.bytes
}

private struct LiteRun {
    var now = Instant(nanoseconds: 1_000_000_000)
    var agent: ICELiteAgent
    var current = 0
    let batch = DatagramBatch(capacity: 8)

    init() {
        agent = ICELiteAgent(
            local: localCredentials[0],
            remote: remoteCredentials[0],
            at: now,
            tieBreaker: 5,
            pathSecret: 9
        )
    }

    mutating func play(_ input: inout FuzzInput) {
        while !input.isAtEnd {
            switch input.choice(10) {
            case 0: deliver(input.chunk(max: 700), on: input.pick(samplePaths))
            case 1: now += .milliseconds(Int(input.uint16()))
            case 2:
                current = input.choice(localCredentials.count)
                agent.restart(local: localCredentials[current], remote: remoteCredentials[current], at: now)
            case 3:
                batch.removeAll()
                _ = agent.handleTimeout(at: now, into: batch)
                require(batch.count <= 1, "a timeout sends at most one check")
            case 8: _ = agent.markVerified(input.pick(samplePaths), at: now)
            case 9: agent.requireConsent(at: now)
            default: deliver(makeMessage(&input), on: input.pick(samplePaths))
            }
            check()
        }
    }

    private mutating func makeMessage(_ input: inout FuzzInput) -> [UInt8] {
        let signer = localCredentials[input.choice(localCredentials.count)]
        let flags = input.byte()
        let id = STUNTransactionID(high: 0, low: UInt64(input.byte()))
        var builder = STUNMessageBuilder(
            STUNMessageClass(rawValue: flags & 3) ?? .request,
            method: flags & 4 == 0 ? .binding : STUNMethod(rawValue: input.uint16() & 0xFFF) ?? .binding,
            transactionID: id
        )
        if flags & 8 == 0 {
            let index = localCredentials.firstIndex(of: signer) ?? 0
            builder.append(
                .username,
                "\(signer.usernameFragment):\(remoteCredentials[index].usernameFragment)"
            )
        }
        appendAttributes(&input, to: &builder)
        if flags & 16 == 0 { builder.appendMessageIntegrity(key: Array(signer.password.utf8)) }
        if flags & 32 == 0 { builder.appendFingerprint() }
        return builder.bytes
    }

    private mutating func deliver(_ bytes: [UInt8], on path: NetworkPath) {
        let before = agent.selectedPath
        batch.removeAll()
        withSpan(bytes) { span in
            let message: STUNMessageView
            do { message = try STUNMessageView(span) } catch { return }
            let isSigned = localCredentials.contains { message.hasValidIntegrity(key: Array($0.password.utf8)) }
            do {
                let event = try agent.handle(message, path: path, at: now, into: batch)
                if case .pathSelected(let selected) = event {
                    require(selected == path && isSigned && message.useCandidate, "only a signed nomination selects")
                }
            } catch {
                require(batch.isEmpty, "a dropped message gets no response")
            }
            require(isSigned || batch.isEmpty, "an unsigned message gets no response")
            require(
                isSigned || agent.selectedPath == before || agent.selectedPath == nil,
                "an unsigned message does not select a pair"
            )
        }
        require(batch.count <= 2, "a message has at most a response and a check")
        for index in 0..<batch.count {
            batch.withDatagram(index) { response, to in
                require(to == path, "a response goes where the request came from")
                do { _ = try STUNMessageView(response) } catch { fatalError("broken: a response reads: \(error)") }
            }
        }
    }

    private func check() {
        require(agent.knownPathCount <= 8, "known pairs are bounded")
        if let path = agent.selectedPath { require(agent.isKnown(path), "the selected pair is known") }
        require(agent.hasEnded || agent.nextDeadline != nil, "an active agent has a deadline")
    }
}

private struct ControllingRun {
    var now = Instant(nanoseconds: 1_000_000_000)
    var agent: ICEControllingAgent
    var current = 0
    /// The newest checks of the agent, which the peer may answer.
    var sent: [(id: STUNTransactionID, path: NetworkPath)] = []
    let batch = DatagramBatch(capacity: 64)

    init() {
        var generator = SeededGenerator(seed: 11)
        agent = ICEControllingAgent(
            local: localCredentials[0],
            remote: remoteCredentials[0],
            candidates: Array(samplePaths.prefix(3)),
            at: now,
            tieBreaker: 5,
            using: &generator
        )
    }

    mutating func play(_ input: inout FuzzInput) {
        while !input.isAtEnd {
            switch input.choice(8) {
            case 0: deliver(input.chunk(max: 700), on: input.pick(samplePaths))
            case 1:
                now += .milliseconds(Int(input.uint16()))
                _ = agent.handleTimeout(at: now, into: batch)
            case 2:
                current = input.choice(localCredentials.count)
                agent.restart(local: localCredentials[current], remote: remoteCredentials[current], at: now)
            case 3: agent.nominate(input.pick(samplePaths), at: now)
            case 4: agent.addCandidate(input.pick(samplePaths), at: now)
            default: respond(&input)
            }
            collect()
            if let path = agent.selectedPath { require(agent.isKnown(path), "the selected pair is known") }
        }
    }

    private mutating func respond(_ input: inout FuzzInput) {
        guard !sent.isEmpty else { return }
        let (id, path) = input.pick(sent)
        let flags = input.byte()
        var builder = STUNMessageBuilder(STUNMessageClass(rawValue: 2 | flags & 1) ?? .success, transactionID: id)
        appendAttributes(&input, to: &builder)
        if flags & 2 == 0 { builder.appendXORMappedAddress(path.remote) }
        if flags & 4 == 0 { builder.appendMessageIntegrity(key: Array(remoteCredentials[current].password.utf8)) }
        if flags & 8 == 0 { builder.appendFingerprint() }
        deliver(builder.bytes, on: flags & 16 == 0 ? path : input.pick(samplePaths))
    }

    private mutating func deliver(_ bytes: [UInt8], on path: NetworkPath) {
        withSpan(bytes) { span in
            let message: STUNMessageView
            do { message = try STUNMessageView(span) } catch { return }
            _ = try? agent.handle(message, path: path, at: now, into: batch)
        }
    }

    /// Reads what the agent sent.
    private mutating func collect() {
        for index in 0..<batch.count {
            let request: (id: STUNTransactionID, path: NetworkPath)? = batch.withDatagram(index) { bytes, path in
                let message: STUNMessageView
                do { message = try STUNMessageView(bytes) } catch { fatalError("broken: a check reads: \(error)") }
                return message.messageClass == .request ? (message.transactionID, path) : nil
            }
            if let request { sent.append(request) }
        }
        if sent.count > 8 { sent.removeFirst(sent.count - 8) }
        batch.removeAll()
    }
}

func seedsICE() -> [(name: String, bytes: [UInt8])] {
    let nomination = SeedWriter.make { seed in
        seed.byte(0)
        for number in 0..<3 {
            seed.byte(4)
            for value in [0, 0, number, 1, 0, number] { seed.byte(value) }
        }
        seed.byte(1)
        seed.uint16(20_000)
        seed.byte(2)
        seed.byte(1)
        for value in [4, 1, 0, 9, 2, 0, 1, 0, 0, 0, 5, 4] { seed.byte(value) }
        seed.byte(3)
    }
    let raw = SeedWriter.make { seed in
        seed.byte(0)
        seed.byte(0)
        seed.chunk(
            makeCheck(
                to: localCredentials[0],
                from: remoteCredentials[0],
                id: STUNTransactionID(high: 1, low: 2),
                nominating: true
            )
        )
        seed.byte(2)
    }
    let answered = SeedWriter.make { seed in
        seed.byte(1)
        seed.byte(1)
        seed.uint16(100)
        for number in 0..<4 {
            for value in [5, number, 0, 0] { seed.byte(value) }
            seed.byte(1)
            seed.uint16(300)
        }
        seed.byte(3)
        seed.byte(2)
    }
    return [("nomination", nomination), ("raw", raw), ("answered", answered)]
}
