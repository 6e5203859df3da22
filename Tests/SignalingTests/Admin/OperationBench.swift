import ChannelTypes
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing
import Wire

@testable import Operators
@testable import Web

/// The admin API over rooms whose members' signaling notes what it is told.
struct OperationBench {
    /// A member with the events of its signaling.
    struct Member {
        let id: ParticipantID
        let peer: PeerID
        let events: ParticipantEvents
        var name: JSONValue { .string(id.value) }
    }

    let plane: FakeMediaPlane
    let directory: ChannelDirectory
    private let api: AdminAPI

    init() {
        let plane = FakeMediaPlane()
        self.plane = plane
        directory = ChannelDirectory(planes: [plane], limits: RoomLimits())
        api = AdminAPI(
            directory: directory,
            statistics: SignalingStatistics(),
            clientStatistics: ClientStatistics(),
            node: NodeIdentity()
        )
    }

    /// - Parameters:
    ///   - rids: of the video that it sends.
    ///   - isConnected: whether its transport is up.
    func join(
        _ channel: String,
        _ role: Role,
        client: String? = nil,
        rids: [String] = [],
        isConnected: Bool = true
    ) async throws -> Member {
        var request = JoinRequest(
            channel: try #require(ChannelName(channel)),
            role: role,
            following: .everyone,
            clientID: client
        )
        request.receivesNotifications = false
        request.isSimulcast = rids.count > 1
        let reservation = try await directory.reserve(request)
        let events = await directory.events(of: reservation.participant)
        let video = ReceiveTrackParameters(
            mid: Self.mid,
            kind: .video,
            codecs: [Self.vp8],
            rids: try rids.map { try #require(RID($0)) }
        )
        _ = try await directory.activate(
            reservation,
            remote: Self.remote,
            receive: role.publishes ? [video] : [],
            firstMediaKind: .video,
            mids: [Self.mid]
        )
        if isConnected { await report(.connected(over: .udp), from: reservation.peer) }
        return Member(id: reservation.participant, peer: reservation.peer, events: events)
    }

    private func report(_ event: PeerEvent, from peer: PeerID) async {
        await plane.report(event, from: peer)
        await directory.takeEvents()
    }

    /// A slot of a viewer for a sender's video.
    func see(_ sender: Member, by viewer: Member, in name: String) async throws -> TrackID {
        let slot = SlotAssignment(
            sender: sender.id,
            track: Self.mid,
            parameters: SendTrackParameters(
                mid: try #require(MID(name)),
                kind: .video,
                codecs: [Self.vp8],
                ssrc: SSRC(rawValue: 2),
                cname: "c"
            )
        )
        try await directory.changeSlots(of: viewer.id, add: [slot], remove: [])
        await directory.settle()
        return TrackID(peer: viewer.peer, mid: slot.parameters.mid)
    }

    /// Performs an operation.
    /// - Returns: the status, and the type of the error if it is one.
    func perform(_ operation: String, _ arguments: [String: JSONValue]) async -> (status: Int, error: String?) {
        let body = JSONValue.object(arguments).bytes
        let answer = await api.answer(target: "Sora_20260101.\(operation)", body: body)
        return (answer.status, answer.body["error_type"]?.string)
    }

    /// Ends all members.
    /// - Returns: what each of `members` was pushed.
    func pushes(to members: [Member]) async -> [[String]] {
        await directory.shutdown()
        var all: [[String]] = []
        for member in members {
            var texts: [String] = []
            for await event in member.events {
                if case .push(let text) = event { texts.append(text) }
            }
            all.append(texts)
        }
        return all
    }

    private static let mid = MID("v")!
    private static let vp8 = CodecParameters(name: .vp8, payloadType: PayloadType(rawValue: 96)!)
    private static let remote = RemoteTransport(
        credentials: ICECredentials(usernameFragment: "remote", password: String(repeating: "p", count: 22))!,
        fingerprints: [Fingerprint(algorithm: .sha256, digest: Array(repeating: 1, count: 32))!],
        localRole: .server
    )
}
