import ChannelTypes
import JSON
import MediaTypes
import Room
import Synchronization
import TestSupport

@testable import Ayame
@testable import Operators
@testable import Signaling
@testable import Web

/// The relays of several nodes in one process, whose links are queues.
final class RelayNodes: Sendable {
    private struct Way: Hashable {
        let from: NodeID
        let to: NodeID
        init(_ from: NodeID, _ to: NodeID) { (self.from, self.to) = (from, to) }
        var both: [Way] { [self, Way(to, from)] }
    }
    private struct Letter {
        let way: Way
        /// The link that it is sent over.
        let link: Int
        let bytes: [UInt8]
    }
    private struct State {
        var calls: [NodeID: AyameCalls] = [:]
        var candidates: RoomCandidates
        var inboxes: [NodeID: AsyncStream<Letter>.Continuation] = [:]
        /// Nodes that take nothing, and what waits for them.
        var held: [NodeID: [Letter]] = [:]
        var links: [Way: Int] = [:]
        var cut: Set<Way> = []
        /// Nodes that do not know the relay's questions.
        var older: Set<NodeID> = []
        var refusals: [NodeID: @Sendable (String, ChannelName) -> RoomError?] = [:]
        var wants: [Way: Int] = [:]
        var underWay = 0
        var asked = 0
    }
    private let state: Mutex<State>

    /// - Parameter open: where new rooms may begin, the best first.
    init(open: [NodeID], closed: [NodeID] = []) {
        state = Mutex(State(candidates: RoomCandidates(open: open, closed: closed)))
    }

    func add(
        _ node: NodeID,
        acceptTimeout: Duration = .seconds(3_600),
        relays: (any CallTURNServers)? = nil,
        onReport: KeptCallReports? = nil
    ) -> AyameCalls {
        let calls = AyameCalls(cluster: cluster(of: node), relays: relays, acceptTimeout: acceptTimeout) {
            onReport?.add($0)
        }
        set(calls, at: node)
        return calls
    }

    func cluster(of node: NodeID) -> any OtherNodes { View(nodes: self, own: node) }

    func set(_ calls: AyameCalls, at node: NodeID) {
        let (letters, inbox) = AsyncStream.makeStream(of: Letter.self)
        state.withLock { state in
            state.calls[node] = calls
            state.inboxes[node] = inbox
        }
        Task { for await letter in letters { await deliver(letter) } }
    }

    private func deliver(_ letter: Letter) async {
        let receiver = state.withLock { state in
            state.links[letter.way] == letter.link && !state.cut.contains(letter.way)
                ? state.calls[letter.way.to] : nil
        }
        let refusal = state.withLock { $0.refusals[letter.way.to] }
        _ = receiver?.received(letter.bytes, from: letter.way.from) { refusal?($0, $1) }
        await receiver?.takeMessages()
        state.withLock { $0.underWay -= 1 }
    }

    // MARK: What happens

    /// From now on a node answers questions, and takes no message.
    func hold(_ node: NodeID) { state.withLock { $0.held[node] = [] } }

    func resume(_ node: NodeID) {
        state.withLock { state in
            for letter in state.held.removeValue(forKey: node) ?? [] {
                state.underWay += 1
                state.inboxes[node]?.yield(letter)
            }
        }
    }

    /// Has the rooms of a node refuse guests.
    func refuse(at node: NodeID, _ refusal: @escaping @Sendable (_ user: String, ChannelName) -> RoomError?) {
        state.withLock { $0.refusals[node] = refusal }
    }

    func makeOlder(_ node: NodeID) { state.withLock { _ = $0.older.insert(node) } }
    func setCandidates(_ candidates: RoomCandidates) { state.withLock { $0.candidates = candidates } }

    /// Loses the link of two nodes, and what is under way over it. The next message goes over another link.
    func lose(_ one: NodeID, _ other: NodeID) async { await lose([Way(one, other)], forGood: false) }

    /// Loses all links of a node for good.
    func lose(_ node: NodeID) async {
        await lose(state.withLock { $0.calls.keys.filter { $0 != node } }.map { Way(node, $0) }, forGood: true)
    }

    private func lose(_ ways: [Way], forGood: Bool) async {
        let ends = ways.flatMap(\.both)
        let calls = state.withLock { state in
            for way in ends {
                state.links[way, default: 0] += 1
                if forGood { state.cut.insert(way) }
            }
            return state.calls
        }
        for way in ends { calls[way.from]?.lost(way.to) }
        for way in ends { await calls[way.from]?.takeMessages() }
    }

    /// The messages that a node which is held has not taken.
    func waiting(at node: NodeID) -> Int { state.withLock { $0.held[node]?.count ?? 0 } }

    /// Waits until no message is under way, except to nodes that are held.
    func settle() async throws {
        try await eventually("no message is under way") { state.withLock { $0.underWay } == 0 }
    }

    var asked: Int { state.withLock { $0.asked } }
    /// The links that are needed.
    var wanted: Int { state.withLock { $0.wants.values.reduce(0, +) } }

    // MARK: OtherNodes

    private struct View: OtherNodes {
        let nodes: RelayNodes
        let own: NodeID

        var nodeID: NodeID { own }
        var incarnation: NodeIncarnation { .standalone }
        var status: ClusterStatus {
            let node = ClusterStatus.Node(name: own.rawValue, incarnation: incarnation, state: .ready)
            return ClusterStatus(name: "main", own: node, others: [], store: .none)
        }

        func candidates(for room: ChannelName) async -> RoomCandidates { nodes.state.withLock { $0.candidates } }

        func ask(_ request: NodeRequest, of node: NodeID) async throws(NodeRequestError) -> [UInt8] {
            let calls = nodes.state.withLock { state -> AyameCalls? in
                state.asked += 1
                guard !state.older.contains(node), !state.cut.contains(Way(own, node)) else { return nil }
                return state.calls[node]
            }
            guard let answer = await calls?.answer(request.body) else { throw .refused }
            return answer
        }

        func want(_ node: NodeID) { nodes.state.withLock { $0.wants[Way(own, node), default: 0] += 1 } }
        func release(_ node: NodeID) { nodes.state.withLock { $0.wants[Way(own, node), default: 0] -= 1 } }

        func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool {
            nodes.state.withLock { state in
                let way = Way(own, node)
                guard !state.cut.contains(way) else { return false }
                let link = state.links[way] ?? 0
                state.links[way] = link
                let letter = Letter(way: way, link: link, bytes: message)
                if state.held[node] != nil {
                    state.held[node]?.append(letter)
                } else {
                    state.underWay += 1
                    state.inboxes[node]?.yield(letter)
                }
                return true
            }
        }
    }
}

extension NodeID: ExpressibleByStringLiteral {
    init(stringLiteral value: String) { self.init(rawValue: value)! }
}

/// A client of the relay, which keeps what it gets.
final class RelayClient: Sendable {
    let id = ParticipantID.random().value
    let user: String
    private let events = Mutex<[String]>([])
    /// `accept` with whether there was a partner, texts, and the reasons of closes.
    var seen: [String] { events.withLock { $0 } }
    private let relay = Mutex<TURNAccess?>(nil)
    /// The relay that the latest `accept` named.
    var turn: TURNAccess? { relay.withLock { $0 } }

    init(_ user: String) { self.user = user }

    func forget() { events.withLock { $0 = [] } }

    /// Waits until it has got so many events.
    func awaits(_ count: Int) async throws -> [String] {
        try await eventually("\(user) has \(count) events") { seen.count >= count }
        return seen
    }

    private func add(_ event: String) { events.withLock { $0.append(event) } }

    func join(
        _ calls: AyameCalls,
        _ room: String = "call",
        key: String? = nil,
        standalone: Bool = false,
        app: String? = nil,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false,
        refusal: @escaping @Sendable () -> RoomError? = { nil }
    ) async throws -> AyameRooms.Answer {
        let members: [String: JSONValue] = [
            "roomId": .string(room), "clientId": .string(user), "key": .string(key ?? ""),
        ]
        let registration = try AyameRegistration(JSONFields(members))
        let member = AyameRooms.Member(
            connectionID: id,
            identity: AyameRooms.Identity(registration),
            isStandalone: standalone,
            user: user,
            app: app,
            registeredAt: 7,
            origin: .here { notice in
                switch notice {
                case .accepted(let hasPartner, _, let turn):
                    self.relay.withLock { $0 = turn }
                    self.add("accept \(hasPartner)")
                case .text(let text): self.add(text)
                case .ended(let close): self.add("close \(close.close.reason)")
                }
            }
        )
        return await calls.join(
            registration.room,
            member,
            media: media,
            isMediaRequired: isMediaRequired,
            refusal: refusal
        )
    }
}
