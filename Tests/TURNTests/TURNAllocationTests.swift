import Base
import TestSupport
import Testing
import Wire

@testable import TURN

struct TURNAllocationTests {
    /// An Allocate request with these attributes, and the response's code.
    @Test(
        arguments: [
            ("no transport", [], 400),
            ("TCP", [(STUNAttributeType.requestedTransport, [6, 0, 0, 0])], 442),
            ("UDP", [(.requestedTransport, [17, 0, 0, 0])], 0),
            ("a transport of two bytes", [(.requestedTransport, [17, 0])], 400),
            ("IPv4", [(.requestedTransport, [17, 0, 0, 0]), (.requestedAddressFamily, [1, 0, 0, 0])], 0),
            ("IPv6", [(.requestedTransport, [17, 0, 0, 0]), (.requestedAddressFamily, [2, 0, 0, 0])], 0),
            ("no such family", [(.requestedTransport, [17, 0, 0, 0]), (.requestedAddressFamily, [3, 0, 0, 0])], 440),
            ("an even port", [(.requestedTransport, [17, 0, 0, 0]), (.evenPort, [0])], 0),
            ("an even port and the next one", [(.requestedTransport, [17, 0, 0, 0]), (.evenPort, [0x80])], 508),
            ("an even port of two bytes", [(.requestedTransport, [17, 0, 0, 0]), (.evenPort, [0, 0])], 400),
            (
                "a reserved port",
                [(.requestedTransport, [17, 0, 0, 0]), (.reservationToken, [1, 2, 3, 4, 5, 6, 7, 8])], 508
            ),
            ("no fragments", [(.requestedTransport, [17, 0, 0, 0]), (.dontFragment, [])], 420),
            ("an unknown attribute", [(.requestedTransport, [17, 0, 0, 0]), (.init(rawValue: 0x7F01), [1])], 420),
            ("an unknown optional one", [(.requestedTransport, [17, 0, 0, 0]), (.init(rawValue: 0xFF05), [1])], 0),
            (
                "another family too",
                [(.requestedTransport, [17, 0, 0, 0]), (.init(rawValue: 0x8000), [2, 0, 0, 0])], 0
            ),
            ("a lifetime of five bytes", [(.requestedTransport, [17, 0, 0, 0]), (.lifetime, [0, 0, 0, 0, 0])], 400),
        ] as [(String, [(STUNAttributeType, [UInt8])], Int)]
    )
    func `an Allocate request gets its code`(
        name: String,
        attributes: [(STUNAttributeType, [UInt8])],
        code: Int
    ) throws {
        var scene = TURNScene()
        var client = scene.addSession(1)
        let outcome = client.perform(.allocate, in: &scene) { request in
            for (type, value) in attributes { request.append(type, value) }
        }
        #expect(outcome.code == code)
        #expect(try #require(outcome.response).isSigned(client))
        #expect(scene.server.allocationCount == (code == 0 ? 1 : 0))
        #expect(scene.server.counters.refused == (code == 0 ? 0 : 1))
    }

    @Test(
        arguments: [
            ([TURNScene.mediaV4.ip], nil, true, 0), ([TURNScene.mediaV6.ip], nil, false, 0),
            ([TURNScene.mediaV6.ip, TURNScene.mediaV4.ip], nil, true, 0), ([TURNScene.mediaV4.ip], 2, true, 440),
            ([TURNScene.mediaV6.ip], 1, true, 440), ([TURNScene.mediaV4.ip, TURNScene.mediaV6.ip], 2, false, 0),
            ([], nil, true, 440),
        ] as [([IPAddress], UInt8?, Bool, Int)]
    )
    func `the family of a relayed address is the client's choice among the node's`(
        addresses: [IPAddress],
        family: UInt8?,
        isV4: Bool,
        code: Int
    ) {
        var scene = TURNScene { $0.addresses = addresses }
        var client = scene.addSession(1)
        let outcome = client.perform(.allocate, in: &scene) { request in
            request.append(.requestedTransport, 17 << 24 as UInt32)
            if let family { request.append(.requestedAddressFamily, [family, 0, 0, 0]) }
        }
        #expect(outcome.code == code)
        if code == 0 { #expect(outcome.response?.relayed?.ip.isV4 == isV4) }
    }

    @Test(
        arguments: [(nil, 600), (0, 600), (1, 600), (600, 600), (1_800, 1_800), (3_600, 3_600), (.max, 3_600)]
            as [(UInt32?, Int)]
    )
    func `an allocation lives as long as granted, to the second`(requested: UInt32?, seconds: Int) throws {
        var scene = TURNScene()
        var client = scene.addSession(1)
        let outcome = client.allocate(in: &scene, lifetime: requested)
        #expect(outcome.response?.lifetime == UInt32(seconds))
        let relayed = try #require(outcome.response?.relayed)
        #expect(scene.server.nextDeadline == scene.now + .seconds(seconds))
        scene.now += .seconds(seconds) - .nanoseconds(1)
        #expect(scene.timeouts().isEmpty)
        scene.now += .nanoseconds(1)
        #expect(scene.timeouts() == [.ended(TURNSessionID(rawValue: 1), relayed: relayed, client: client.path)])
        #expect(scene.server.nextDeadline == nil && scene.server.allocationCount == 0)
        #expect(scene.server.counters.allocationsExpired == 1)
        #expect(client.refresh(in: &scene, lifetime: 600).code == 437)
    }

    @Test func `Refresh prolongs, shortens and ends an allocation`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        scene.now += .seconds(540)
        let first = client.refresh(in: &scene, lifetime: 600)
        #expect(first.code == 0 && first.response?.lifetime == 600)
        scene.now += .seconds(599)
        #expect(scene.timeouts().isEmpty)
        #expect(client.refresh(in: &scene, lifetime: 9_999).response?.lifetime == 3_600)
        #expect(client.refresh(in: &scene, lifetime: 10).response?.lifetime == 600)
        #expect(scene.server.nextDeadline == scene.now + .seconds(600))
        let last = client.refresh(in: &scene, lifetime: 0)
        #expect(last.response?.lifetime == 0)
        guard case .ended = last.event else {
            Issue.record("the end is told")
            return
        }
        #expect(scene.server.allocationCount == 0 && scene.server.nextDeadline == nil)
        #expect(client.refresh(in: &scene, lifetime: 0).code == 437)
    }

    @Test func `Refresh with another family is a mismatch`() {
        var scene = TURNScene()
        var client = scene.allocated(1)
        for (family, code) in [(1 as UInt8, 0), (2, 443)] {
            let outcome = client.perform(.refresh, in: &scene) {
                $0.append(.requestedAddressFamily, [family, 0, 0, 0])
            }
            #expect(outcome.code == code)
        }
    }

    @Test func `an allocation that has expired is replaced before its timeout, and its end is told`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        scene.now += .seconds(600)
        #expect(client.allocate(in: &scene).code == 0)
        #expect(scene.server.nextDeadline.map { $0 < scene.now } == true)
        #expect(scene.timeouts().count == 1)
        #expect(scene.server.allocationCount == 1)
    }

    @Test func `a repeated Allocate gets the same response, another one a mismatch`() {
        var scene = TURNScene()
        var client = scene.addSession(1)
        client.challenge(in: &scene)
        let bytes = client.request(.allocate, 5) { $0.append(.requestedTransport, 17 << 24 as UInt32) }
        let first = scene.send(bytes, from: client.path)
        scene.now += .seconds(1)
        let again = scene.send(bytes, from: client.path)
        #expect(first.responses == again.responses && again.event == nil)
        #expect(client.allocate(in: &scene).code == 437)
        #expect(scene.server.counters.allocationsCreated == 1)
    }

    @Test func `a session has four allocations, and 32 in five minutes`() {
        var scene = TURNScene()
        var client = scene.addSession(1)
        func move(_ port: UInt16) {
            client.path = NetworkPath(
                local: client.path.local,
                remote: TransportAddress(ip: client.path.remote.ip, port: port)
            )
            client.nonce = ""
            scene.now += .milliseconds(100)
        }
        for port in 1...4 as ClosedRange<UInt16> {
            move(port)
            #expect(client.allocate(in: &scene).code == 0)
        }
        move(5)
        #expect(client.allocate(in: &scene).code == 486)
        for port in 5...32 as ClosedRange<UInt16> {
            move(port - 4)
            #expect(client.refresh(in: &scene, lifetime: 0).code == 0)
            move(port)
            #expect(client.allocate(in: &scene).code == 0)
        }
        move(29)
        #expect(client.refresh(in: &scene, lifetime: 0).code == 0)
        move(33)
        #expect(client.allocate(in: &scene).code == 486)
        scene.now += .seconds(300)
        #expect(client.allocate(in: &scene).code == 0)
    }

    @Test func `the end of a stream ends its allocation`() {
        var scene = TURNScene()
        let client = scene.allocated(1, over: .tcp)
        #expect(scene.server.closeStream(client.path, at: scene.now) != nil)
        #expect(scene.server.closeStream(client.path, at: scene.now) == nil)
        #expect(scene.server.allocationCount == 0)
    }

    @Test func `one client may use UDP and a stream at once, from one address`() throws {
        var scene = TURNScene()
        var udp = scene.allocated(1)
        let relayed = udp.path.remote
        udp.path = NetworkPath(local: LocalEndpoint(.tcp, index: 0), remote: relayed)
        udp.nonce = ""
        #expect(udp.allocate(in: &scene).code == 0)
        #expect(scene.server.allocationCount == 2)
    }

    @Test func `a relayed address comes again only after 300 s`() throws {
        var scene = TURNScene {
            $0.sessionCreationsMax = .max
            $0.reservedPorts = Set(1_124...65_535 as ClosedRange<UInt16>)
        }
        var client = scene.addSession(1)
        var lastUse: [UInt16: Instant] = [:]
        var reused = 0
        for _ in 0..<130 {
            let outcome = client.allocate(in: &scene)
            let port = try #require(outcome.response?.relayed?.port)
            if let last = lastUse[port] {
                #expect(scene.now - last >= .seconds(300))
                reused += 1
            }
            lastUse[port] = scene.now
            #expect(client.refresh(in: &scene, lifetime: 0).code == 0)
            scene.now += .milliseconds(3_010)
        }
        #expect(lastUse.count == 100 && reused == 30)
    }

    @Test func `without a free port there is no capacity`() {
        var scene = TURNScene { $0.reservedPorts = Set(1_024...65_535 as ClosedRange<UInt16>) }
        var client = scene.addSession(1)
        #expect(client.allocate(in: &scene).code == 508)
    }

    @Test func `the clients of one address hold no more than their part of the relayed addresses`() {
        var scene = TURNScene { $0.portsPerNetworkMax = 3 }
        // Each has a session and a port of its own.
        var clients: [TURNClient] = []
        func allocate(_ number: UInt64, lastByte: UInt32) -> Int? {
            var client = scene.addSession(number)
            let ip = IPAddress(v4: 0xC633_6400 + lastByte)
            let address = TransportAddress(ip: ip, port: 50_000 + UInt16(number))
            client.path = NetworkPath(local: client.path.local, remote: address)
            defer { clients.append(client) }
            return client.allocate(in: &scene).code
        }
        let codes = (1...5 as ClosedRange<UInt64>).map { allocate($0, lastByte: 1) }
        #expect(codes == [0, 0, 0, 508, 508])
        let other = allocate(6, lastByte: 2)
        #expect(other == 0)
        // A port that rests is held as well.
        let ended = clients[0].refresh(in: &scene, lifetime: 0).code
        #expect(ended == 0)
        scene.now += Interval.seconds(300) - .nanoseconds(1)
        let early = allocate(7, lastByte: 1)
        #expect(early == 508)
        scene.now += .nanoseconds(1)
        let rested = (8...9 as ClosedRange<UInt64>).map { allocate($0, lastByte: 1) }
        #expect(rested == [0, 508])
    }

    @Test func `all addresses of an IPv6 network hold ports together`() {
        var generator = SeededGenerator(seed: 7)
        var pool = RelayedPortPool(reserved: [], networkMax: 2, using: &generator)
        let network: UInt64 = 0x2001_0DB8_0000_0001
        let taken = (1...3 as ClosedRange<UInt64>).map { address in
            pool.acquire(for: IPAddress(high: network, low: address), at: TURNScene.start) != nil
        }
        #expect(taken == [true, true, false])
        let other = pool.acquire(for: IPAddress(high: network + 1, low: 1), at: TURNScene.start)
        #expect(other != nil)
    }

    @Test func `ports run out at some point, and come back after their rest`() {
        var generator = SeededGenerator(seed: 4)
        var reserved = Set(1_024...65_535 as ClosedRange<UInt16>)
        reserved.subtract([2_000, 3_000, 4_000])
        var pool = RelayedPortPool(reserved: reserved, networkMax: .max, using: &generator)
        let now = TURNScene.start
        var ports: [UInt16] = []
        while let port = pool.acquire(at: now) { ports.append(port) }
        #expect(ports.sorted() == [2_000, 3_000, 4_000])
        pool.release(3_000, at: now)
        #expect(pool.acquire(at: now + .seconds(300) - .nanoseconds(1)) == nil)
        #expect(pool.acquire(at: now + .seconds(300)) == 3_000)
        #expect(pool.acquire(at: now + .seconds(900)) == nil)
    }

    @Test func `even ports run out before the others`() {
        var generator = SeededGenerator(seed: 6)
        var reserved = Set(1_024...65_535 as ClosedRange<UInt16>)
        reserved.subtract([2_000, 2_001, 3_001, 4_000])
        var pool = RelayedPortPool(reserved: reserved, networkMax: .max, using: &generator)
        let now = TURNScene.start
        let even = [pool.acquire(even: true, at: now), pool.acquire(even: true, at: now)]
        #expect(Set(even) == [2_000, 4_000])
        #expect(pool.acquire(even: true, at: now) == nil)
        #expect(Set([pool.acquire(at: now), pool.acquire(at: now)]) == [2_001, 3_001])
    }

    @Test func `the order of ports is a permutation`() {
        var generator = SeededGenerator(seed: 5)
        var pool = RelayedPortPool(reserved: TURNScene.reservedPorts, networkMax: .max, using: &generator)
        var seen: Set<UInt16> = []
        while let port = pool.acquire(at: TURNScene.start) { seen.insert(port) }
        #expect(seen.count == 65_536 - 1_024 - TURNScene.reservedPorts.count)
        #expect(seen.isDisjoint(with: TURNScene.reservedPorts))
    }

    /// Random changes against a dictionary.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `the earliest deadline is first whatever changes`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var deadlines = TURNDeadlines()
        var expected: [Int: Int64] = [:]
        for _ in 0..<1_000 {
            let slot = Int.random(in: 0..<40, using: &generator)
            if UInt8.random(in: 0..<4, using: &generator) == 0 {
                deadlines.remove(slot)
                expected[slot] = nil
            } else {
                let time = Int64.random(in: 0..<100, using: &generator)
                deadlines.set(slot, to: Instant(nanoseconds: time))
                expected[slot] = time
            }
            let isRight =
                deadlines.count == expected.count
                && deadlines.first?.deadline.nanoseconds == expected.values.min()
                && deadlines.first.map { expected[$0.slot] == $0.deadline.nanoseconds } ?? true
            guard isRight else {
                Issue.record("seed \(seed): \(deadlines) \(expected)")
                return
            }
        }
    }
}

extension RelayedPortPool {
    /// Of tests that do not look at the clients: all have one address.
    private static let client = IPAddress(v4: 0xC633_6401)

    fileprivate mutating func acquire(even: Bool = false, at now: Instant) -> UInt16? {
        acquire(for: Self.client, even: even, at: now)
    }

    fileprivate mutating func release(_ port: UInt16, at now: Instant) { release(port, of: Self.client, at: now) }
}
