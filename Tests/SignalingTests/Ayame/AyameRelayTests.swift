import Access
import ChannelTypes
import JSON
import MediaTypes
import Room
import RoomTestSupport
import TestSupport
import Testing

@testable import Ayame
@testable import Sora
@testable import Web
@testable import Webhooks

/// The TURN relays of rooms whose media goes from client to client.
@Suite(.timeLimit(.minutes(10)))
struct AyameRelayTests {
    private let room = ChannelName("call")!
    private let relays = FakeCallTURNServers("a")
    private let calls: AyameCalls
    private let alice = RelayClient("alice")
    private let bob = RelayClient("bob")
    private let carol = RelayClient("carol")

    init() { calls = AyameCalls(relays: relays) }

    private func open(_ count: Int, line: UInt = #line) async throws {
        try await eventually("\(count) relays are open", line: line) { relays.open.count == count }
    }

    // MARK: A room

    @Test func `the members of a room get the two credentials of one relay, which ends with the room`() async throws {
        #expect(try await alice.join(calls) == .joined(.direct))
        #expect(try await bob.join(calls) == .joined(.direct))
        #expect(alice.turn?.username == "a-1-first" && bob.turn?.username == "a-1-second")
        #expect(alice.turn?.password != bob.turn?.password && relays.opened == 1)
        #expect(try await carol.join(calls) == .full)
        #expect(await calls.listings.map(\.hasRelay) == [true])
        #expect(relays.opened == 1 && relays.open.count == 1)
        await calls.leave(room, bob.id)
        try await open(0)
        #expect(try await carol.join(calls) == .joined(.direct))
        #expect(carol.turn?.username == "a-2-first")
        #expect(await calls.end(by: .terminated(room)) == [carol.id])
        try await open(0)
        #expect(relays.kept.isEmpty)
    }

    @Test func `media through the node needs no relay, and a node without one goes without`() async throws {
        #expect(try await alice.join(calls, media: .server) == .joined(.server))
        #expect(relays.opened == 0 && alice.turn == nil)
        #expect(await calls.listings.map(\.hasRelay) == [false])
        let none = AyameCalls()
        #expect(try await bob.join(none) == .joined(.direct))
        #expect(bob.turn == nil)
        relays.fill()
        #expect(try await carol.join(calls, "other") == .joined(.direct))
        #expect(carol.turn == nil)
        await calls.leave(try #require(ChannelName("other")), carol.id)
    }

    @Test func `a client that takes its own place gets a new relay`() async throws {
        #expect(try await alice.join(calls, key: "k") == .joined(.direct))
        let again = RelayClient("alice")
        #expect(try await again.join(calls, key: "k") == .joined(.direct))
        #expect(again.turn?.username == "a-2-first")
        try await open(1)
        await calls.leave(room, again.id)
        try await open(0)
    }

    @Test func `clients that begin a room at the same time meet with one relay`() async throws {
        relays.closeGate()
        async let first = alice.join(calls)
        async let second = bob.join(calls)
        try await eventually("both wait") { relays.waiting == 2 }
        relays.openGate()
        _ = try await (first, second)
        #expect(Set([alice.seen, bob.seen]) == [["accept false"], ["accept true"]])
        let names = [alice.turn?.username, bob.turn?.username].compactMap { $0 }
        // Of the same relay.
        #expect(names.count == 2 && Set(names.map { $0.prefix(3) }).count == 1)
        #expect(Set(names.map { $0.dropFirst(4) }) == ["first", "second"])
        try await open(1)
    }

    @Test func `a refused client costs no relay`() async throws {
        let ban = RoomError.banned(untilUnixSeconds: nil)
        #expect(try await alice.join(calls, refusal: { ban }) == .refused(ban))
        #expect(relays.opened == 0)
    }

    @Test func `media that passes the relay goes on after a standalone client's connected`() async throws {
        #expect(try await alice.join(calls, standalone: true) == .joined(.direct))
        #expect(try await bob.join(calls, standalone: true) == .joined(.direct))
        await calls.leave(room, alice.id, reason: AyameClose.connected.close.reason)
        try await open(0)
        #expect(relays.kept.count == 1)
    }

    // MARK: A cluster

    /// Two nodes, the first of which has all rooms.
    private func cluster() -> (nodes: RelayNodes, a: AyameCalls, b: AyameCalls, bRelays: FakeCallTURNServers) {
        let nodes = RelayNodes(open: ["a", "b"])
        let bRelays = FakeCallTURNServers("b")
        return (nodes, nodes.add("a", relays: relays), nodes.add("b", relays: bRelays), bRelays)
    }

    @Test(arguments: [true, false])
    func `both members use the relay of the room's node`(isGuestFirst: Bool) async throws {
        let (nodes, a, b, bRelays) = cluster()
        let (guest, host) = (RelayClient("guest"), RelayClient("host"))
        for client in isGuestFirst ? [guest, host] : [host, guest] {
            #expect(try await client.join(client === guest ? b : a) == .joined(.direct))
        }
        #expect(guest.turn?.username == "a-1-\(isGuestFirst ? "first" : "second")")
        #expect(host.turn?.username == "a-1-\(isGuestFirst ? "second" : "first")")
        #expect(bRelays.opened == 0 && relays.opened == 1)
        await b.leave(room, guest.id)
        try await nodes.settle()
        try await open(0)
    }

    @Test func `a guest that leaves while the relay is opened is in no room`() async throws {
        let (nodes, a, b, _) = cluster()
        relays.closeGate()
        let guest = RelayClient("guest")
        let joining = Task { try await guest.join(b) }
        try await eventually("the registration waits for the relay") { relays.waiting == 1 }
        joining.cancel()
        #expect(try await joining.value == .refused(.endedDuringSetup))
        try await nodes.settle()
        relays.openGate()
        try await eventually("the relay was opened for nobody") { relays.opened == 1 && relays.open.isEmpty }
        #expect(await a.rooms.count == 0)
        #expect(guest.seen.isEmpty)
    }

    @Test func `the guests of a node that is lost meanwhile are in no room`() async throws {
        let (nodes, a, b, _) = cluster()
        relays.closeGate()
        let guest = RelayClient("guest")
        let joining = Task { try await guest.join(b) }
        try await eventually("the registration waits for the relay") { relays.waiting == 1 }
        await nodes.lose("a", "b")
        nodes.setCandidates(RoomCandidates(open: ["b"]))
        relays.openGate()
        #expect(try await joining.value == .joined(.direct))
        try await eventually("the relay was opened for nobody") { relays.opened == 1 && relays.open.isEmpty }
        #expect(await a.rooms.count == 0)
        #expect(await b.rooms.count == 1)
        #expect(guest.turn?.username == "b-1-first")
    }

    // MARK: accept

    private static let external: JSONValue = ["urls": ["turn:turn.example:3478"], "username": "u", "credential": "p"]

    private static func own(_ member: String) -> JSONValue {
        ["urls": ["turn:node:7000?transport=udp"], "username": "node-1-\(member)", "credential": "p-node-1-\(member)"]
    }

    @Test func `accept names the node's relay, and then the servers of the settings`() async throws {
        var sora = SoraConfiguration()
        sora.turn = SoraConfiguration.TURN(urls: ["turn:turn.example:3478"], username: "u", credential: "p")
        try await withLiveServer(sora: sora, relays: FakeCallTURNServers()) { _, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(#"{"type":"register","roomId":"call"}"#)
                let first = try await aliceInput.message("accept")["iceServers"]
                try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                    try await bob.send(#"{"type":"register","roomId":"call"}"#)
                    let second = try await bobInput.message("accept")["iceServers"]
                    #expect(first == [Self.own("first"), Self.external])
                    #expect(second == [Self.own("second"), Self.external])
                }
            }
        }
    }

    @Test func `the operator's servers are all that a client is told of`() {
        var permission = AyamePermission(connectionID: "c")
        let turn = TURNAccess(urls: ["turn:n:1?transport=udp"], username: "u", password: "p")
        #expect(permission.iceServers(with: nil) == nil)
        permission.acceptance.decidedServers = []
        #expect(permission.iceServers(with: turn) == [])
        permission.acceptance.servers = SoraConfiguration.TURN(urls: ["turn:e"], username: "u", credential: "p")
        #expect(permission.iceServers(with: turn) == [])
    }

    @Test func `a client gets the URLs that its grants permit`() {
        var permission = AyamePermission(connectionID: "c")
        let urls = ["turn:n:1?transport=udp", "turn:n:1?transport=tcp", "turns:n:2?transport=tcp"]
        let turn = TURNAccess(urls: urls, username: "u", password: "p")
        func told() -> [JSONValue]? { permission.iceServers(with: turn)?.array?.first?["urls"]?.array }
        #expect(told()?.count == 3)
        permission.grants.turnTCPOnly = true
        #expect(told() == [.string(urls[1]), .string(urls[2])])
        permission.grants.turnTLSOnly = true
        #expect(told() == [.string(urls[2])])
    }
}
