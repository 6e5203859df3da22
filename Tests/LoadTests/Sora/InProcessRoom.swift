import Base
import DTLS
import EventLoop
import Foundation
import Media
import MediaTypes
import Negotiation
import Wire

@testable import Load

/// A node that speaks Sora's signaling over a real WebSocket as far as a call needs it; everything from ICE on is real.
actor InProcessRoom: PeerEventReceiver {
    private struct Member {
        let connection: SoraServer.Connection
        let id: PeerID
        let local: LocalTransport
        let channel: String
        let receives: Bool
        var session: OfferedDescription
        var isAdded = false
        var isConnected = false
        /// Its next offer is no SDP.
        var isSpoiled = false
        var publishes: [ReceiveTrackParameters] = []
    }
    private struct Message: Decodable {
        var type: String
        var role: String?
        var channel: String?
        var audio: Bool?
        var sdp: String?

        enum CodingKeys: String, CodingKey {
            case type, role, audio, sdp
            case channel = "channel_id"
        }
    }

    private let media: MediaLoop
    private let candidate: TransportAddress
    private var members: [UInt64: Member] = [:]
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var next: UInt64 = 1
    private var generator = SystemRandomNumberGenerator()
    /// Members that are turned away with a close, before the others are taken.
    private var refusals: Int
    /// Later offers that are no SDP, before the others are as they should be. The media of their members end with them. They wait
    /// until their members are connected: a client sets its media up for half a minute.
    private var spoiledOffers: Int
    private(set) var pongs = 0
    private(set) var goodbyes = 0
    private(set) var renegotiations = 0

    private init(_ media: MediaLoop, _ candidate: TransportAddress, refusing refusals: Int, spoiling offers: Int) {
        self.media = media
        self.candidate = candidate
        self.refusals = refusals
        spoiledOffers = offers
    }

    static func start(
        refusing refusals: Int = 0,
        spoiling offers: Int = 0
    ) async throws -> (room: InProcessRoom, server: SoraServer) {
        let media = try await MediaLoop.start(
            .lossless,
            listeningOn: [TransportAddress(ip: .loopbackV4, port: 0)]
        )
        let room = InProcessRoom(media, await media.sockets[0].local, refusing: refusals, spoiling: offers)
        return (room, try await SoraServer.start { await room.serve($0) })
    }

    func shutdown() async { await media.shutdown() }

    /// Ends every member's signaling, as a node that drains does.
    func sendAway() {
        for member in members.values { member.connection.close(4_490, "SERVER-SHUTDOWN") }
    }

    /// Returns once the last member has left: its socket may close a moment after the run is over.
    func empty() async {
        guard !members.isEmpty else { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func serve(_ connection: SoraServer.Connection) async {
        let number = next
        next += 1
        for await text in connection.texts {
            guard let message = try? JSONDecoder().decode(Message.self, from: Data(text.utf8)) else { continue }
            do {
                try await take(message, number, connection)
            } catch {
                connection.close(4_490, "INTERNAL-ERROR")
            }
        }
        await leave(number)
    }

    nonisolated func receive(_ event: PeerEvent, from peer: PeerID) {
        if case .connected = event { Task { await connected(peer) } }
    }

    private func connected(_ peer: PeerID) async {
        members[peer.rawValue]?.isConnected = true
        await spoil(peer.rawValue)
    }

    private func spoil(_ number: UInt64) async {
        guard let member = members[number], member.isSpoiled, member.isConnected else { return }
        members[number]?.isSpoiled = false
        member.connection.send(#"{"type":"re-offer","sdp":"spoiled"}"#)
        await media.removePeer(member.id)
    }

    private func take(_ message: Message, _ number: UInt64, _ connection: SoraServer.Connection) async throws {
        switch message.type {
        case "connect":
            guard refusals == 0 else {
                refusals -= 1
                connection.close(4_490, "AUTHENTICATION-FAILURE")
                return
            }
            join(message, number, connection)
        case "answer", "re-answer":
            try await answered(message.sdp ?? "", number)
            connection.send(#"{"type":"ping","stats":true}"#)
        case "pong": pongs += 1
        case "disconnect":
            goodbyes += 1
            connection.close(1_000, "TYPE-DISCONNECT")
        default: break
        }
    }

    private func join(_ message: Message, _ number: UInt64, _ connection: SoraServer.Connection) {
        let local = LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: media.transport.fingerprint,
            candidates: [candidate]
        )
        var own = OfferedDescription.ClientMedia()
        if message.role != "recvonly" {
            if message.audio == true { own.audio = .offered(.opus) }
            own.video = .offered(.vp8)
        }
        members[number] = Member(
            connection: connection,
            id: PeerID(rawValue: number),
            local: local,
            channel: message.channel ?? "",
            receives: message.role != "sendonly",
            session: OfferedDescription(
                local: local,
                clientMedia: own,
                receivesMedia: message.role != "sendonly",
                using: &generator
            )
        )
        offer(to: number)
    }

    private func offer(to number: UInt64) {
        guard var member = members[number] else { return }
        let type = member.isAdded ? "re-offer" : "offer"
        if member.isAdded { renegotiations += 1 }
        if member.isAdded, spoiledOffers > 0 {
            spoiledOffers -= 1
            members[number]?.isSpoiled = true
            Task { await spoil(number) }
            return
        }
        let sdp = member.session.makeOffer(streams(for: number), using: &generator)
        let mids = member.session.clientMIDs
        members[number] = member
        var object: [String: Any] = ["type": type, "sdp": sdp]
        object["mid"] = ["audio": mids.audio?.value, "video": mids.video?.value].compactMapValues { $0 }
        guard let data = try? JSONSerialization.data(withJSONObject: object) else { return }
        member.connection.send(String(decoding: data, as: UTF8.self))
    }

    private func streams(for number: UInt64) -> [OfferedDescription.RemoteStream] {
        guard let member = members[number] else { return [] }
        return members.filter { $0.key != number && $0.value.channel == member.channel && !$0.value.publishes.isEmpty }
            .sorted { $0.key < $1.key }
            .map { key, other in
                OfferedDescription.RemoteStream(
                    id: "member-\(key)",
                    tracks: other.publishes.map {
                        OfferedDescription.RemoteTrack(kind: $0.kind, mid: $0.mid, formats: $0.codecs)
                    }
                )
            }
    }

    private func answered(_ sdp: String, _ number: UInt64) async throws {
        guard var member = members[number] else { return }
        let outcome = try member.session.apply(answer: sdp)
        let isFirst = !member.isAdded
        member.isAdded = true
        member.publishes = outcome.receive
        members[number] = member
        let slots = outcome.added.map(\.parameters)
        if isFirst {
            try await media.addPeer(
                PeerParameters(
                    id: member.id,
                    localCredentials: member.local.credentials,
                    remote: outcome.remote,
                    receive: outcome.receive,
                    send: slots,
                    events: self
                )
            )
        } else {
            try await media.changeSlots(of: member.id, add: slots, remove: outcome.removed)
        }
        for slot in outcome.added {
            guard let sender = UInt64(slot.streamID.dropFirst(7)), members[sender] != nil else { continue }
            try await media.connect(
                slot: TrackID(peer: member.id, mid: slot.parameters.mid),
                to: TrackID(peer: PeerID(rawValue: sender), mid: slot.track)
            )
        }
        tellAll()
    }

    private func tellAll() {
        for (number, member) in members
        where member.isAdded && member.receives && !member.session.isOfferOutstanding
            && member.session.wouldChange(streams(for: number))
        {
            offer(to: number)
        }
    }

    private func leave(_ number: UInt64) async {
        guard let member = members.removeValue(forKey: number) else { return }
        await media.removePeer(member.id)
        tellAll()
        guard members.isEmpty else { return }
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}
