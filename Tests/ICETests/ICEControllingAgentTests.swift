import Base
import ICE
import TestSupport
import Testing
import Wire

/// A controlling agent with what it sends.
private struct ControllingScene {
    static let client = credentials(1)
    static let server = credentials(2)

    var agent: ICEControllingAgent
    let batch = DatagramBatch(capacity: 64)

    init(candidates: [NetworkPath]) {
        var generator = SeededGenerator(seed: 9)
        agent = ICEControllingAgent(
            local: Self.client,
            remote: Self.server,
            candidates: candidates,
            at: at(0),
            tieBreaker: 77,
            using: &generator
        )
    }

    mutating func timeout(_ now: Instant) -> [Sent] {
        _ = agent.handleTimeout(at: now, into: batch)
        return batch.take()
    }

    mutating func deliver(_ bytes: [UInt8], on path: NetworkPath, at now: Instant) -> Outcome {
        do throws(ICEDropReason) {
            guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return .event(nil) }
            return .event(try agent.handle(message, path: path, at: now, into: batch))
        } catch {
            return .dropped(error)
        }
    }

    /// The server's answer to a request.
    static func answer(
        to request: Sent,
        password: String = server.password,
        error: Int? = nil,
        mapped: Bool = true
    ) -> [UInt8] {
        let id = request.transactionID ?? STUNTransactionID(high: 0, low: 0)
        var builder = STUNMessageBuilder(error == nil ? .success : .error, transactionID: id)
        if let error {
            builder.appendErrorCode(error, reason: "")
        } else if mapped {
            builder.appendXORMappedAddress(path(200).remote)
        }
        builder.appendMessageIntegrity(key: Array(password.utf8))
        builder.appendFingerprint()
        return builder.bytes
    }

    /// Answers the first check and the nomination on `candidate`.
    mutating func connect(on candidate: NetworkPath) throws -> Outcome {
        let check = try #require(timeout(at(0)).first { $0.path == candidate })
        _ = deliver(Self.answer(to: check), on: candidate, at: at(0.02))
        let nomination = try #require(batch.take().first)
        return deliver(Self.answer(to: nomination), on: candidate, at: at(0.04))
    }
}

struct ICEControllingAgentTests {
    @Test func `a check carries both username fragments, ICE-CONTROLLING and MESSAGE-INTEGRITY by the peer's password`()
        throws
    {
        var scene = ControllingScene(candidates: [path(1)])
        let sent = scene.timeout(at(0))
        #expect(sent.count == 1)
        let check = try #require(sent.first)
        #expect(check.path == path(1))
        #expect(check.messageClass == .request)
        let (server, client) = (ControllingScene.server, ControllingScene.client)
        #expect(check.username == "\(server.usernameFragment):\(client.usernameFragment)")
        #expect(check.isAuthentic(password: server.password))
        #expect(!check.useCandidate)
    }

    @Test func `checks are paced and retransmitted with the same identifier at doubling delays`() {
        var scene = ControllingScene(candidates: [path(1), path(2)])
        #expect(scene.timeout(at(0)).map(\.path) == [path(1)])
        #expect(scene.agent.nextDeadline == at(0.05))
        let second = scene.timeout(at(0.05))
        #expect(second.map(\.path) == [path(2)])
        var times: [Int] = []
        var identifiers: Set<STUNTransactionID> = []
        while let deadline = scene.agent.nextDeadline, deadline < at(10) {
            for sent in scene.timeout(deadline) where sent.path == path(2) {
                times.append((deadline - at(0.05)).milliseconds)
                if let id = sent.transactionID { identifiers.insert(id) }
            }
        }
        #expect(times == [250, 750, 1750, 3750, 5750, 7750, 9750])
        #expect(identifiers == Set(second.compactMap(\.transactionID)))
    }

    @Test func `the first pair that succeeds is nominated, and the response to the nomination selects it`() throws {
        var scene = ControllingScene(candidates: [path(1), path(2)])
        _ = scene.timeout(at(0))
        let check = try #require(scene.timeout(at(0.05)).first)
        #expect(scene.deliver(ControllingScene.answer(to: check), on: path(2), at: at(0.1)) == .event(nil))
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.agent.mappedAddress == path(200).remote)
        let nomination = try #require(scene.batch.take().first)
        #expect(nomination.path == path(2))
        #expect(nomination.useCandidate)
        #expect(nomination.transactionID != check.transactionID)
        let answer = ControllingScene.answer(to: nomination)
        #expect(scene.deliver(answer, on: path(2), at: at(0.15)) == .event(.pathSelected(path(2))))
        #expect(scene.agent.selectedPath == path(2))
        #expect(scene.deliver(answer, on: path(2), at: at(0.16)) == .dropped(.unknownTransaction))
        #expect(scene.timeout(at(1)).isEmpty)
    }

    @Test func `a wrong response is dropped with its reason, and the right one still counts`() throws {
        var scene = ControllingScene(candidates: [path(1)])
        let check = try #require(scene.timeout(at(0)).first)
        let good = ControllingScene.answer(to: check)
        #expect(scene.deliver(good, on: path(2), at: at(0.1)) == .dropped(.wrongPath))
        let forged = ControllingScene.answer(to: check, password: ControllingScene.client.password)
        #expect(scene.deliver(forged, on: path(1), at: at(0.1)) == .dropped(.wrongIntegrity))
        let forgedError = ControllingScene.answer(to: check, password: "", error: 487)
        #expect(scene.deliver(forgedError, on: path(1), at: at(0.1)) == .dropped(.wrongIntegrity))
        let incomplete = ControllingScene.answer(to: check, mapped: false)
        #expect(scene.deliver(incomplete, on: path(1), at: at(0.1)) == .dropped(.missingAddress))
        let other = Sent(
            path: path(1),
            bytes: STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 1)).bytes
        )
        let unasked = ControllingScene.answer(to: other)
        #expect(scene.deliver(unasked, on: path(1), at: at(0.1)) == .dropped(.unknownTransaction))
        #expect(scene.batch.isEmpty)
        #expect(scene.deliver(good, on: path(1), at: at(0.1)) == .event(nil))
        #expect(scene.batch.take().map(\.useCandidate) == [true])
    }

    @Test func `a response with any one byte changed is dropped`() throws {
        var scene = ControllingScene(candidates: [path(1)])
        let check = try #require(scene.timeout(at(0)).first)
        let good = ControllingScene.answer(to: check)
        for offset in good.indices {
            for bit in 0..<8 {
                var changed = good
                changed[offset] ^= 1 << UInt8(bit)
                _ = scene.deliver(changed, on: path(1), at: at(0.1))
                if !scene.batch.isEmpty { Issue.record("bit \(bit) of byte \(offset)") }
            }
        }
        #expect(scene.agent.mappedAddress == nil)
    }

    @Test func `a check is retried after an authenticated error`() throws {
        var scene = ControllingScene(candidates: [path(1)])
        let check = try #require(scene.timeout(at(0)).first)
        let refusal = ControllingScene.answer(to: check, error: 487)
        #expect(scene.deliver(refusal, on: path(1), at: at(0.1)) == .event(nil))
        #expect(scene.agent.counters.errorResponses == 1)
        #expect(scene.timeout(at(2.09)).isEmpty)
        let second = try #require(scene.timeout(at(2.1)).first)
        #expect(second.transactionID != check.transactionID)
    }

    @Test func `after an unanswered nomination another valid pair is nominated`() throws {
        var scene = ControllingScene(candidates: [path(1), path(2)])
        let first = try #require(scene.timeout(at(0)).first)
        let second = try #require(scene.timeout(at(0.05)).first)
        _ = scene.deliver(ControllingScene.answer(to: first), on: path(1), at: at(0.1))
        _ = scene.deliver(ControllingScene.answer(to: second), on: path(2), at: at(0.1))
        #expect(scene.batch.take().map(\.path) == [path(1)])
        var event: ICEEvent?
        while event == nil, let deadline = scene.agent.nextDeadline, deadline < at(20) {
            for sent in scene.timeout(deadline) where sent.path == path(2) {
                guard
                    case .event(let result) = scene.deliver(
                        ControllingScene.answer(to: sent),
                        on: path(2),
                        at: deadline
                    )
                else { continue }
                event = result
            }
        }
        #expect(event == .pathSelected(path(2)))
    }

    @Test
    func `consent checks are sent every 5 s ± 20 %, every second without a response, and consent lasts 30 s`()
        throws
    {
        var scene = ControllingScene(candidates: [path(1)])
        #expect(try scene.connect(on: path(1)) == .event(.pathSelected(path(1))))
        var last = at(0.04)
        for _ in 0..<20 {
            let deadline = try #require(scene.agent.nextDeadline)
            #expect((4000...6000).contains((deadline - last).milliseconds))
            let request = try #require(scene.timeout(deadline).first)
            #expect(!request.useCandidate)
            let answer = ControllingScene.answer(to: request)
            #expect(scene.deliver(answer, on: path(1), at: deadline) == .event(nil))
            #expect(scene.deliver(answer, on: path(1), at: deadline) == .dropped(.unknownTransaction))
            last = deadline
        }
        var event: ICEEvent?
        var asked = 0
        while event == nil, let deadline = scene.agent.nextDeadline {
            event = scene.agent.handleTimeout(at: deadline, into: scene.batch)
            asked += scene.batch.take().count
            if event != nil { #expect(deadline == last + .seconds(30)) }
        }
        #expect(event == .consentExpired)
        #expect((24...26).contains(asked))
        #expect(scene.agent.selectedPath == nil)
        #expect(scene.agent.nextDeadline == nil)
    }

    @Test func `without pairs or without responses the agent fails after thirty seconds`() {
        for candidates in [[], [path(1)], (0..<40).map { path($0) }] {
            var scene = ControllingScene(candidates: candidates)
            var event: ICEEvent?
            var last = at(0)
            var targets: Set<NetworkPath> = []
            while event == nil, let deadline = scene.agent.nextDeadline {
                event = scene.agent.handleTimeout(at: deadline, into: scene.batch)
                targets.formUnion(scene.batch.take().map(\.path))
                last = deadline
            }
            #expect(event == .failed)
            #expect(last == at(30))
            #expect(targets.count == min(candidates.count, ICEControllingAgent.pathsMax))
        }
    }

    @Test func `a full peer's authenticated request is answered, and one with the same role gets a 487`() throws {
        var scene = ControllingScene(candidates: [path(1)])
        var check = Check(1, to: ControllingScene.client, from: ControllingScene.server)
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .event(nil))
        #expect(scene.batch.take().map(\.errorCode) == [487])
        check.controlled = 5
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .event(nil))
        let response = try #require(scene.batch.take().first)
        #expect(response.messageClass == .success)
        #expect(response.isAuthentic(password: ControllingScene.client.password))
        check.password = ControllingScene.server.password
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .dropped(.wrongIntegrity))
        #expect(scene.batch.isEmpty)
    }
}
