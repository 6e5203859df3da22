import Base
import TURN
import TestSupport
import Testing
import Wire

struct TURNAuthenticationTests {
    @Test func `a client without credentials is challenged, and nothing is kept for it`() throws {
        var scene = TURNScene()
        let client = scene.addSession(1)
        let outcome = scene.send(TURNClient.bareAllocate(), from: client.path)
        let response = try #require(outcome.response)
        #expect(response.code == 401)
        #expect(response.realm == "nagare")
        #expect(response.nonce?.utf8.count == 16)
        #expect(response.bytes.count == 60, "at most 32 bytes more than the request")
        #expect(outcome.destinations == [client.path])
        #expect(scene.server.allocationCount == 0 && scene.server.nextDeadline == nil)
        #expect(scene.server.counters.challenges == 1)
    }

    @Test func `the credentials of a session make an allocation`() throws {
        var scene = TURNScene()
        var client = scene.addSession(1)
        let outcome = client.allocate(in: &scene)
        let response = try #require(outcome.response)
        #expect(response.code == nil)
        #expect(response.isSigned(client))
        #expect(response.lifetime == 600)
        #expect(response.mapped == client.path.remote)
        let relayed = try #require(response.relayed)
        #expect(relayed.ip == TURNScene.mediaV4.ip)
        #expect(relayed.port >= 1_024 && !TURNScene.reservedPorts.contains(relayed.port))
        #expect(outcome.event == .allocated(TURNSessionID(rawValue: 1), relayed: relayed, client: client.path))
    }

    /// A request with one thing wrong, and the response.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let name: String
        let code: Int?
        let change: @Sendable (inout TURNClient, inout TURNScene) -> [UInt8]
        var testDescription: String { name }

        static func edited(
            _ name: String,
            _ code: Int?,
            _ edit: @escaping @Sendable (inout TURNClient, inout TURNScene) -> Void
        ) -> Refusal {
            Refusal(name: name, code: code) { client, scene in
                edit(&client, &scene)
                return client.request(.allocate, 5) { $0.append(.requestedTransport, 17 << 24 as UInt32) }
            }
        }

        static let all: [Refusal] = [
            edited("nothing is wrong", 0) { _, _ in },
            edited("the nonce is no Base64", 438) { client, _ in client.nonce = "???????????????." },
            edited("the nonce is short", 438) { client, _ in client.nonce = String(client.nonce.dropLast(4)) },
            edited("the nonce is forged", 438) { client, _ in
                client.nonce = client.nonce.dropLast() + (client.nonce.hasSuffix("A") ? "B" : "A")
            },
            edited("the time of the nonce is forged", 438) { client, _ in
                client.nonce = client.nonce.prefix(5) + "w" + client.nonce.dropFirst(6)
            },
            edited("the nonce is of another client", 438) { client, _ in
                let remote = TransportAddress(ip: client.path.remote.ip, port: 1)
                client.path = NetworkPath(local: client.path.local, remote: remote)
            },
            edited("the nonce is of another socket", 438) { client, _ in
                client.path = NetworkPath(local: LocalEndpoint(.udp, index: 1), remote: client.path.remote)
            },
            edited("the nonce is 600 s old", 0) { client, scene in
                scene.now += .seconds(600)
                let fresh = scene.addSession(77)
                let nonce = client.nonce
                client = TURNClient(fresh.credentials, path: client.path)
                client.nonce = nonce
            },
            edited("the nonce is 601 s old", 438) { _, scene in scene.now += .seconds(601) },
            edited("the nonce is of the future", 438) { _, scene in scene.now = scene.now - .seconds(2) },
            edited("the user is unknown", 401) { client, _ in
                let credentials = TURNCredentials(username: "nobody00", password: client.credentials.password)
                let nonce = client.nonce
                client = TURNClient(credentials, path: client.path)
                client.nonce = nonce
            },
            edited("the password is wrong", 401) { client, _ in
                let credentials = TURNCredentials(username: client.credentials.username, password: "guess")
                let nonce = client.nonce
                client = TURNClient(credentials, path: client.path)
                client.nonce = nonce
            },
            edited("the realm is another", 401) { client, _ in client.realm = "coturn" },
            edited("the session has ended", 401) { _, scene in
                scene.server.removeSession(TURNSessionID(rawValue: 1), at: scene.now)
            },
            Refusal(name: "the integrity is missing", code: 400) { client, _ in
                var builder = STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 1, low: 1))
                builder.append(.username, client.credentials.username)
                builder.append(.realm, client.realm)
                builder.append(.nonce, client.nonce)
                return builder.bytes
            },
            Refusal(name: "the user name is missing", code: 400) { client, _ in
                var builder = STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 1, low: 1))
                builder.append(.realm, client.realm)
                builder.append(.nonce, client.nonce)
                builder.appendMessageIntegrity(key: client.key)
                return builder.bytes
            },
            Refusal(name: "a byte after signing is changed", code: 401) { client, _ in
                var bytes = client.request(.allocate, 5) { $0.append(.requestedTransport, 17 << 24 as UInt32) }
                bytes[24] = 6
                return bytes
            },
            Refusal(name: "the method is unknown", code: 400) { client, _ in
                client.request(STUNMethod(rawValue: 10) ?? .binding, 5)
            },
            Refusal(name: "the fingerprint is wrong", code: nil) { client, _ in
                client.request(.allocate, 5) + [0x80, 0x28, 0, 4, 1, 2, 3, 4]
            },
        ]
    }

    @Test(arguments: Refusal.all)
    func `a request that does not authenticate is refused`(refusal: Refusal) {
        var scene = TURNScene()
        var client = scene.addSession(1)
        client.challenge(in: &scene)
        var bytes = refusal.change(&client, &scene)
        // The message is as long as its header says.
        bytes.store(bigEndian: UInt16(bytes.count - 20), at: 2)
        let outcome = scene.send(bytes, from: client.path)
        #expect(outcome.code == refusal.code)
        #expect(scene.server.allocationCount == (refusal.code == 0 ? 1 : 0))
        if let response = outcome.response, let code = refusal.code, code > 0 {
            #expect(response.bytes.count <= bytes.count)
            #expect((response.nonce != nil) == (code != 400))
        }
    }

    @Test func `credentials are for a first allocation within 300 s, and then until the session ends`() {
        var scene = TURNScene()
        var late = scene.addSession(1)
        var early = scene.allocated(2)
        scene.now += .seconds(300)
        #expect(late.allocate(in: &scene).code == 401)
        early.path = NetworkPath(
            local: early.path.local,
            remote: TransportAddress(ip: early.path.remote.ip, port: 50_001)
        )
        early.nonce = ""
        #expect(early.allocate(in: &scene).code == 0)
        let clients = scene.server.removeSession(TURNSessionID(rawValue: 2), at: scene.now)
        #expect(clients.count == 2)
        #expect(scene.server.allocationCount == 0 && scene.server.nextDeadline == nil)
        #expect(early.refresh(in: &scene, lifetime: 600).code == 401, "stolen credentials end with the session")
    }

    @Test func `another user's allocation is not touched`() {
        var scene = TURNScene()
        let owner = scene.allocated(1)
        var thief = scene.addSession(2)
        thief.path = owner.path
        #expect(thief.allocate(in: &scene).code == 437)
        #expect(thief.refresh(in: &scene, lifetime: 0).code == 441)
        #expect(thief.permit([TURNScene.mediaV4], in: &scene).code == 441)
        #expect(thief.bind(0x4000, to: TURNScene.mediaV4, in: &scene).code == 441)
        #expect(scene.server.allocationCount == 1)
    }

    /// Random requests over UDP without valid credentials: the response is never larger, but for the first 401.
    @Test func `a spoofed request gains nothing`() {
        var scene = TURNScene { $0.challengesPerSecond = 1_000_000 }
        let types: [STUNAttributeType] = [
            .username, .realm, .nonce, .messageIntegrity, .requestedTransport, .lifetime, .software, .fingerprint,
            .xorPeerAddress, .init(rawValue: 0x7777),
        ]
        let methods = [1, 3, 4, 6, 7, 8, 9, 10, 0xFF].compactMap { STUNMethod(rawValue: $0) }
        var generator = SeededGenerator(seed: 3)
        var answered = 0
        var worst = 0
        for _ in 0..<3_000 {
            let id = STUNTransactionID(using: &generator)
            let messageClass: STUNMessageClass =
                UInt8.random(in: 0..<8, using: &generator) == 0 ? .indication : .request
            var builder = STUNMessageBuilder(
                messageClass,
                method: methods[Int.random(in: methods.indices, using: &generator)],
                transactionID: id
            )
            for _ in 0..<Int.random(in: 0...5, using: &generator) {
                let type = types[Int.random(in: types.indices, using: &generator)]
                let count = [0, 4, 8, 20][Int.random(in: 0..<4, using: &generator)]
                builder.append(type, [UInt8](repeating: 0x41, count: count))
            }
            scene.now += .milliseconds(1)
            let outcome = scene.send(builder.bytes, from: scene.addressOfVictim)
            guard let response = outcome.responses.first else { continue }
            answered += 1
            if outcome.code == 401, outcome.response?.nonce != nil, builder.bytes.count < response.count {
                #expect(builder.bytes.count >= 28 && response.count == 60)
                worst = max(worst, response.count - builder.bytes.count)
            } else {
                #expect(response.count <= builder.bytes.count)
            }
        }
        #expect(answered > 100 && worst <= 32)
        #expect(scene.server.allocationCount == 0)
    }

    @Test func `a flood of one source gets few responses, others are answered`() {
        var scene = TURNScene()
        let victim = scene.addressOfVictim
        for _ in 0..<1_000 {
            _ = scene.send(TURNClient.bareAllocate(), from: victim)
            scene.now += .milliseconds(1)
        }
        #expect((40...51).contains(scene.server.counters.challenges), "a burst of 40 and 10 in the second")
        #expect(scene.server.counters.drops(.rateLimited) == 1_000 - scene.server.counters.challenges)
        var client = scene.addSession(1)
        #expect(client.allocate(in: &scene).code == 0)
    }

    @Test func `a stream is not limited, because its source is not spoofed`() {
        var scene = TURNScene()
        let client = scene.addSession(1, over: .tcp)
        for _ in 0..<100 { #expect(scene.send(TURNClient.bareAllocate(), from: client.path).code == 401) }
    }

    @Test func `time-limited credentials for an external server are coturn's`() {
        // printf 1700000000:alice | openssl dgst -sha1 -hmac secret -binary | base64
        let credentials = TURNCredentials(external: "alice", expiry: 1_700_000_000, secret: Array("secret".utf8))
        #expect(credentials.username == "1700000000:alice")
        #expect(credentials.password == "d8soP47RbdIKLDUOpnJPVQyq5Ts=")
        #expect(!"\(credentials)".contains(credentials.password))
        #expect(!String(reflecting: credentials).contains(credentials.password))
    }
}

extension TURNScene {
    var addressOfVictim: NetworkPath {
        NetworkPath(
            local: .udp(SocketIndex(rawValue: 0)),
            remote: TransportAddress(ip: IPAddress(v4: 0x0808_0808), port: 53)
        )
    }
}
