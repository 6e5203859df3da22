import DTLS
import EventLoop
import Media
import MediaTypes
import Negotiation
import Wire

@testable import Load

/// A node without HTTP: offers are handed to it as values, and everything from ICE on is real.
actor InProcessNode: LoadSignaling {
    private let media: MediaLoop
    private let candidate: TransportAddress
    private var nextPeer: UInt64 = 1
    private var published: [String: (peer: PeerID, tracks: [ReceiveTrackParameters])] = [:]
    private var sessions: [String: PeerID] = [:]
    /// Offers that are refused, before the others are taken.
    private var refusals: Int
    private(set) var ended = 0

    static func start(refusing refusals: Int = 0) async throws -> InProcessNode {
        let address = TransportAddress(ip: .loopbackV4, port: 0)
        let media = try await MediaLoop.start(.lossless, listeningOn: [address])
        return InProcessNode(media, await media.sockets[0].local, refusing: refusals)
    }

    private init(_ media: MediaLoop, _ candidate: TransportAddress, refusing refusals: Int) {
        self.media = media
        self.candidate = candidate
        self.refusals = refusals
    }

    var sessionsOpen: Int { sessions.count }

    func shutdown() async { await media.shutdown() }

    func publish(offer: String, number: Int) async throws(LoadError) -> CreatedResource {
        let (id, local) = try admit()
        let name = "publisher-\(number)"
        let negotiated: AnsweredOffer
        do {
            negotiated = try PublishOffer(parsing: offer).answer(local: local, sessionID: id.rawValue)
        } catch {
            throw .failed(error.message)
        }
        published[name] = (id, negotiated.receive)
        try await add(
            PeerParameters(
                id: id,
                localCredentials: local.credentials,
                remote: negotiated.remote,
                receive: negotiated.receive
            )
        )
        return CreatedResource(answer: negotiated.answer, location: "\(id)", participant: name)
    }

    func watch(offer: String, number: Int, participant: String?) async throws(LoadError) -> CreatedResource {
        let (id, local) = try admit()
        var generator = SystemRandomNumberGenerator()
        let negotiated: AnsweredOffer
        do {
            negotiated = try WatchOffer(parsing: offer).answer(
                local: local,
                streamID: "stream",
                sessionID: id.rawValue,
                using: &generator
            )
        } catch {
            throw .failed(error.message)
        }
        try await add(
            PeerParameters(
                id: id,
                localCredentials: local.credentials,
                remote: negotiated.remote,
                send: negotiated.send
            )
        )
        if let source = published[participant ?? "publisher-\(number)"] {
            for slot in negotiated.send {
                guard let track = source.tracks.first(where: { $0.kind == slot.kind }) else { continue }
                do {
                    try await media.connect(
                        slot: TrackID(peer: id, mid: slot.mid),
                        to: TrackID(peer: source.peer, mid: track.mid)
                    )
                } catch {
                    throw .failed("\(error)")
                }
            }
        }
        return CreatedResource(answer: negotiated.answer, location: "\(id)", participant: nil)
    }

    func end(_ session: CreatedResource) async {
        guard let location = session.location, let id = sessions.removeValue(forKey: location) else { return }
        ended += 1
        await media.removePeer(id)
    }

    private func admit() throws(LoadError) -> (PeerID, LocalTransport) {
        guard refusals == 0 else {
            refusals -= 1
            throw .failed("The node is full.")
        }
        var generator = SystemRandomNumberGenerator()
        let id = PeerID(rawValue: nextPeer)
        nextPeer += 1
        sessions["\(id)"] = id
        let local = LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: media.transport.fingerprint,
            candidates: [candidate]
        )
        return (id, local)
    }

    private func add(_ parameters: PeerParameters) async throws(LoadError) {
        do {
            try await media.addPeer(parameters)
        } catch {
            throw .failed("\(error)")
        }
    }
}

extension MediaLoopConfiguration {
    /// A loop that sends all that is wanted. While the rate is limited, so are retransmissions: on a busy machine, a packet
    /// would stay lost.
    static var lossless: MediaLoopConfiguration {
        get throws {
            var sendRate = SendRateSettings()
            sendRate.isEstimating = false
            return MediaLoopConfiguration(name: "node", certificate: try DTLSCertificate.generate(), sendRate: sendRate)
        }
    }
}
