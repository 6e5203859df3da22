import Base
import ChannelTypes
import MediaTypes
import Room
import Synchronization

@testable import Operators
@testable import Signaling
@testable import Web

/// What a test of signaling does not play.
extension OtherNodes {
    var nodeID: NodeID { "a" }
    func ask(_ request: NodeRequest, of node: NodeID) async throws(NodeRequestError) -> [UInt8] { throw .noNode }
    func ask(_ request: NodeRequest, of node: NodeIncarnation) async throws(NodeRequestError) -> [UInt8] {
        throw .noNode
    }
    func candidates(for room: ChannelName) async -> RoomCandidates { RoomCandidates(open: []) }
    func want(_ node: NodeID) {}
    func release(_ node: NodeID) {}
    func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool { false }
    func redirect(
        for channel: ChannelName,
        because reason: RedirectReason,
        in directory: ChannelDirectory
    ) async -> NodeAddress? { nil }
}

/// Other nodes that tests play.
final class FakeOtherNodes: OtherNodes {
    struct State: Sendable {
        /// Where newcomers are sent for each reason.
        var redirects: [RedirectReason: NodeAddress] = [:]
        /// The asked channels and reasons.
        var asked: [RedirectReason] = []
        var forwarded: [(request: ForwardedRequest, node: NodeIncarnation)] = []
        var result: Result<ForwardedResponse, NodeRequestError> = .failure(.noNode)
        var status: ClusterStatus
    }

    static let own = NodeIncarnation(rawValue: 7)!
    static let other = NodeIncarnation(rawValue: 0x12_3456)!
    static let address = NodeAddress("https://b.example:8443")!

    let incarnation: NodeIncarnation
    private let state: Mutex<State>

    init(incarnation: NodeIncarnation = FakeOtherNodes.own) {
        self.incarnation = incarnation
        var own = ClusterStatus.Node(name: "a", incarnation: incarnation, state: .ready)
        own.load = 35
        var other = ClusterStatus.Node(name: "b<i>", incarnation: Self.other, state: .draining)
        other.address = Self.address
        other.link = .suspect
        other.roundTrip = .microseconds(430)
        other.region = "eu"
        var status = ClusterStatus(name: "main", own: own, others: [other], store: .down)
        status.roomsByNodeCount = [2: 3, 1: 9]
        state = Mutex(State(status: status))
    }

    func change<Value: Sendable>(_ body: (inout State) -> Value) -> Value { state.withLock { body(&$0) } }

    var status: ClusterStatus { state.withLock { $0.status } }
    var asked: [RedirectReason] { state.withLock { $0.asked } }
    var forwarded: [ForwardedRequest] { state.withLock { $0.forwarded.map(\.request) } }

    func redirect(
        for channel: ChannelName,
        because reason: RedirectReason,
        in directory: ChannelDirectory
    ) async -> NodeAddress? {
        state.withLock { state in
            state.asked.append(reason)
            return state.redirects[reason]
        }
    }

    func ask(_ request: NodeRequest, of node: NodeIncarnation) async throws(NodeRequestError) -> [UInt8] {
        guard request.kind == .forward, let forwarded = ForwardedRequest(encoded: request.body) else { throw .refused }
        let result = state.withLock { state in
            state.forwarded.append((forwarded, node))
            return state.result
        }
        return try result.get().encoded
    }
}

/// Two public listeners of a cluster, where each passes requests on to the other.
final class JoinedNodes: OtherNodes {
    let incarnation: NodeIncarnation
    private let other = Mutex<PublicServer?>(nil)
    private let otherAdmin = Mutex<AdminAPI?>(nil)

    init(_ incarnation: NodeIncarnation) { self.incarnation = incarnation }

    func connect(to server: PublicServer) { other.withLock { $0 = server } }
    func connect(to api: AdminAPI?) { otherAdmin.withLock { $0 = api } }

    func ask(_ request: NodeRequest, of node: NodeIncarnation) async throws(NodeRequestError) -> [UInt8] {
        var answer: [UInt8]?
        switch request.kind {
        case .forward: answer = await other.withLock { $0 }?.answer(forwarded: request.body)
        case .connections: answer = await otherAdmin.withLock { $0 }?.answer(connections: request.body)
        default: break
        }
        guard let answer else { throw .refused }
        return answer
    }

    var status: ClusterStatus {
        let own = ClusterStatus.Node(name: "own", incarnation: incarnation, state: .ready)
        return ClusterStatus(name: "main", own: own, others: [], store: .none)
    }
}
