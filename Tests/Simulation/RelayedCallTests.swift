import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding
@testable import Negotiation

extension World {
    /// A client offers each section in both directions, the node answers in place of the other side, and both start.
    fileprivate func call() throws -> Host {
        let (host, id) = try makeHost()
        let (client, node) = (localTransport(host), localTransport(self.node))
        let offer = ClientOffer.publish(
            transport: client,
            audio: [.standard(.opus)],
            video: [.standard(.vp8)],
            rids: [],
            using: &generator
        )
        let answered = try CallOffer(parsing: offer.text.replacing("a=sendonly", with: "a=sendrecv")).answer(
            local: node,
            streamID: "other",
            sessionID: id.rawValue,
            using: &generator
        ).first
        note(
            id,
            published: answered.receive,
            slots: answered.send,
            client: client.credentials,
            node: node.credentials
        )
        try self.node.core.addPeer(
            PeerParameters(
                id: id,
                localCredentials: node.credentials,
                remote: answered.remote,
                receive: answered.receive,
                send: answered.send
            ),
            at: now
        )
        // The client of this simulation parses one direction; the other one is what the node chose.
        let sent = try offer.parse(answer: answered.answer.replacing("a=sendrecv", with: "a=recvonly"))
        let received = answered.send.map { track in
            ReceiveTrackParameters(
                mid: track.mid,
                kind: track.kind,
                codecs: track.codecs,
                extensions: track.extensions,
                ssrcs: [track.ssrc],
                rtxSSRCs: track.rtxSSRC.map { [track.ssrc: $0] } ?? [:]
            )
        }
        let answer = ClientAnswer(
            remote: sent.remote,
            remoteCandidates: sent.remoteCandidates,
            send: sent.send,
            receive: received,
            mids: sent.mids,
            data: nil
        )
        try start(host, id, client, answer, .init())
        return host
    }
}

/// Calls of two whose media passes the node: each member sends and receives in the same sections.
@Suite struct RelayedCallTests {
    @Test func `each member gets the other's picture and sound in the sections in which it sends its own`() throws {
        let world = try World(seed: 951)
        let (alice, bob) = (try world.call(), try world.call())
        let recordings = [Recording(alice, .video), Recording(bob, .video)]
        #expect(world.run(for: .seconds(2)) { [alice, bob].allSatisfy { $0.client?.isConnected == true } })
        try world.connect(alice, to: bob)
        try world.connect(bob, to: alice)
        world.run(for: .seconds(5))
        for (host, recording) in zip([alice, bob], recordings) {
            #expect(host.client?.video?.framesDecoded ?? 0 > 120)
            #expect(host.client?.audioReceived?.packets ?? 0 > 220 && host.client?.audioReceived?.lost == 0)
            #expect(host.client?.video?.lost == 0 && recording.flaws == [])
        }
        world.remove(bob)
        world.run(for: .seconds(1))
        #expect(world.node.core.gauges.peers == 1 && alice.client?.isConnected == true)
    }
}
