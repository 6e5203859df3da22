import ICE
import Testing
import Wire

struct ICELiteAgentTests {
    @Test func `a check gets a response with XOR-MAPPED-ADDRESS, MESSAGE-INTEGRITY and FINGERPRINT`() throws {
        var scene = LiteScene()
        #expect(scene.check(1, on: path(1), at: at(0)) == .event(nil))
        let sent = scene.batch.take()
        let response = try #require(sent.first)
        #expect(sent.count == 1)
        #expect(response.path == path(1))
        #expect(response.messageClass == .success)
        #expect(response.transactionID == STUNTransactionID(high: 0, low: 1))
        #expect(response.xorMappedAddress == path(1).remote)
        #expect(response.isAuthentic(password: LiteScene.server.password))
        #expect(scene.agent.isKnown(path(1)))
        #expect(!scene.agent.isKnown(path(2)))
        #expect(scene.agent.selectedPath == nil)
    }

    @Test func `a check with USE-CANDIDATE selects its pair and reports it once`() {
        var scene = LiteScene()
        #expect(scene.check(1, on: path(1), at: at(0), nominates: true) == .event(.pathSelected(path(1))))
        #expect(scene.check(2, on: path(1), at: at(1), nominates: true) == .event(nil))
        #expect(scene.check(3, on: path(1), at: at(1)) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
    }

    @Test func `the pair nominated last is selected, and a check without a nomination changes nothing`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        #expect(scene.check(2, on: path(2), at: at(1)) == .event(nil))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.check(3, on: path(2), at: at(2), nominates: true) == .event(.pathSelected(path(2))))
        #expect(scene.agent.selectedPath == path(2))
        #expect(scene.agent.isKnown(path(1)))
    }

    @Test func `the same address through another socket is another pair`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1, socket: 0), at: at(0), nominates: true)
        #expect(!scene.agent.isKnown(path(1, socket: 1)))
    }

    private static let refusals: [(String, ICEDropReason, @Sendable (inout Check) -> Void)] = [
        ("no fingerprint", .fingerprint, { $0.hasFingerprint = false }),
        ("no user name", .missingUsername, { $0.hasUsername = false }),
        ("another peer's user name", .wrongUsername, { $0.username = "abcd:efgh" }),
        (
            "the halves of the user name swapped", .wrongUsername,
            {
                $0.username = "\(LiteScene.client.usernameFragment):\(LiteScene.server.usernameFragment)"
            }
        ),
        ("our half of the user name alone", .wrongUsername, { $0.username = LiteScene.server.usernameFragment }),
        (
            "a user name with more behind it", .wrongUsername,
            {
                $0.username = "\(LiteScene.server.usernameFragment):\(LiteScene.client.usernameFragment)x"
            }
        ),
        ("no integrity", .missingIntegrity, { $0.hasIntegrity = false }),
        ("the wrong password", .wrongIntegrity, { $0.password = LiteScene.client.password }),
        ("an empty password", .wrongIntegrity, { $0.password = "" }),
        (
            "unknown attributes but no integrity", .missingIntegrity,
            {
                $0.hasIntegrity = false
                $0.extra = [STUNAttributeType(rawValue: 0x7000)]
            }
        ),
        (
            "the controlled role but the wrong password", .wrongIntegrity,
            {
                $0.controlled = 5
                $0.password = LiteScene.client.password
            }
        ),
        ("another method", .unsupportedMethod, { $0.method = STUNMethod(rawValue: 3)! }),
        ("a success response", .unknownTransaction, { $0.messageClass = .success }),
        ("an error response", .unknownTransaction, { $0.messageClass = .error }),
    ]

    @Test(arguments: refusals.indices)
    func `an unauthenticated message is dropped with its reason and gets no response`(row: Int) {
        let (name, reason, spoil) = Self.refusals[row]
        var scene = LiteScene()
        var check = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true)
        spoil(&check)
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .dropped(reason), "\(name)")
        #expect(scene.batch.isEmpty, "\(name)")
        #expect(!scene.agent.isKnown(path(1)), "\(name)")
        #expect(scene.agent.selectedPath == nil, "\(name)")
        #expect(scene.agent.nextDeadline == at(30), "\(name)")
    }

    @Test func `a nominating check with any one byte changed gets no response and changes nothing`() {
        let good = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true).bytes
        var scene = LiteScene()
        for offset in good.indices {
            for bit in 0..<8 {
                var changed = good
                changed[offset] ^= 1 << UInt8(bit)
                _ = scene.deliver(changed, on: path(1), at: at(0))
                if !scene.batch.isEmpty || scene.agent.isKnown(path(1)) {
                    Issue.record("bit \(bit) of byte \(offset)")
                    return
                }
            }
        }
        #expect(scene.deliver(good, on: path(1), at: at(0)) == .event(.pathSelected(path(1))))
    }

    @Test func `an indication is only counted`() {
        var scene = LiteScene()
        var check = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true)
        check.messageClass = .indication
        #expect(scene.deliver(check.bytes, on: path(1), at: at(5)) == .event(nil))
        #expect(scene.agent.counters.indications == 1)
        #expect(scene.batch.isEmpty)
        #expect(!scene.agent.isKnown(path(1)))
        #expect(scene.agent.nextDeadline == at(30))
    }

    @Test(arguments: [0, 1, 2, UInt64.max])
    func `a peer in the controlled role gets a signed 487 and validates nothing`(tieBreaker: UInt64) throws {
        var scene = LiteScene()
        var check = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true)
        check.controlled = tieBreaker
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .event(nil))
        let response = try #require(scene.batch.take().first)
        #expect(response.messageClass == .error)
        #expect(response.errorCode == 487)
        #expect(response.isAuthentic(password: LiteScene.server.password))
        #expect(scene.agent.counters.roleConflicts == 1)
        #expect(!scene.agent.isKnown(path(1)))
        #expect(scene.agent.selectedPath == nil)
    }

    @Test func `an unknown comprehension-required attribute gets a signed 420 that lists it`() throws {
        var scene = LiteScene()
        var check = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true)
        check.extra = [.init(rawValue: 0x7001), .init(rawValue: 0xC001), .init(rawValue: 0x7002)]
        #expect(scene.deliver(check.bytes, on: path(1), at: at(0)) == .event(nil))
        let response = try #require(scene.batch.take().first)
        #expect(response.errorCode == 420)
        #expect(response.unknownAttributes.map(\.rawValue) == [0x7001, 0x7002])
        #expect(response.isAuthentic(password: LiteScene.server.password))
        #expect(scene.agent.selectedPath == nil)
    }

    @Test func `a retransmission is answered again and changes nothing`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        _ = scene.check(2, on: path(2), at: at(1), nominates: true)
        scene.batch.removeAll()
        #expect(scene.check(1, on: path(1), at: at(2), nominates: true) == .event(nil))
        #expect(scene.batch.take().map(\.messageClass) == [.success])
        #expect(scene.agent.selectedPath == path(2))
        #expect(scene.agent.nextDeadline == at(31))
        #expect(scene.agent.counters.retransmissions == 1)
    }

    @Test func `a copy of a check from another address gets no response and does not change the selected pair`() {
        var scene = LiteScene()
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        scene.batch.removeAll()
        #expect(scene.check(1, on: path(66), at: at(1), nominates: true) == .dropped(.replayed))
        #expect(scene.batch.isEmpty)
        #expect(!scene.agent.isKnown(path(66)))
        #expect(scene.agent.selectedPath == path(1))
        #expect(scene.agent.nextDeadline == at(30))
    }

    @Test func `at most eight pairs are kept: the least recently used is evicted, the selected one never`() {
        var scene = LiteScene()
        _ = scene.check(0, on: path(0), at: at(0), nominates: true)
        for host in 1...7 { _ = scene.check(UInt64(host), on: path(UInt32(host)), at: at(0)) }
        #expect(scene.agent.knownPathCount == 8)
        _ = scene.check(100, on: path(1), at: at(1))
        _ = scene.check(101, on: path(8), at: at(1))
        #expect(!scene.agent.isKnown(path(2)))
        #expect((0...8).filter { scene.agent.isKnown(path(UInt32($0))) } == [0, 1, 3, 4, 5, 6, 7, 8])
        for id in 200..<1200 { _ = scene.check(UInt64(id), on: path(1, port: UInt16(id)), at: at(2)) }
        #expect(scene.agent.knownPathCount == 8)
        #expect(scene.agent.isKnown(path(0)))
        #expect(scene.agent.counters.pathsEvicted == 1001)
    }

    @Test func `a full batch loses the response but not the check`() {
        var agent = ICELiteAgent(
            local: LiteScene.server,
            remote: LiteScene.client,
            at: at(0),
            tieBreaker: 1,
            pathSecret: 9
        )
        let batch = DatagramBatch(capacity: 1)
        batch.append(to: path(9)) { _ in 1 }
        let bytes = Check(1, to: LiteScene.server, from: LiteScene.client, nominates: true).bytes
        if let message = try? STUNMessageView(unsafe bytes.span.bytes) {
            _ = try? agent.handle(message, path: path(1), at: at(0), into: batch)
        }
        #expect(agent.selectedPath == path(1))
        #expect(batch.overflowed == 1)
    }
}
