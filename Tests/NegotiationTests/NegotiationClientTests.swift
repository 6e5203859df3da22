import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct NegotiationClientTests {
    private let client = LocalTransport(
        credentials: ICECredentials(usernameFragment: "client00", password: "clientPasswordOf26characters")!,
        fingerprint: Fingerprint(algorithm: .sha256, digest: Array(32..<64))!,
        candidates: [TransportAddress("127.0.0.1:5001")!]
    )

    @Test(arguments: CodecName.allCases.filter { $0 != .red })
    func `a client publishes each codec`(name: CodecName) throws {
        var generator = SeededGenerator(seed: 3)
        let offer =
            name.kind == .audio
            ? ClientOffer.publish(transport: client, audio: [.standard(name)], video: [], using: &generator)
            : ClientOffer.publish(transport: client, audio: [], video: [.standard(name)], using: &generator)
        let server = try NegotiationServer.publish(offer.text)
        let answer = try offer.parse(answer: server.answer)
        #expect(server.remote.credentials == client.credentials)
        #expect(server.remote.fingerprints == [client.fingerprint])
        #expect(server.remoteCandidates == client.candidates)
        #expect(answer.remote.credentials == NegotiationServer.local.credentials)
        #expect(answer.remote.localRole == .client)
        #expect(answer.remoteCandidates == NegotiationServer.local.candidates)
        let sent = try #require(answer.send.first)
        let received = try #require(server.receive.first)
        #expect(answer.send.count == 1 && answer.receive.isEmpty)
        #expect(sent.codecs.map(\.name) == [name])
        #expect(sent.codecs.first?.payloadType == received.codecs.first?.payloadType)
        #expect(sent.codecs.first?.feedback == received.codecs.first?.feedback)
        #expect(sent.extensions == received.extensions)
        #expect(sent.encodings.map(\.ssrc) == received.ssrcs)
        #expect(sent.encodings.first?.rtxSSRC == received.ssrcs.first.flatMap { received.rtxSSRCs[$0] })
        #expect(sent.codecs.first?.feedback.contains(.transportCC) == true)
    }

    @Test func `a client publishes audio and three layers`() throws {
        var generator = SeededGenerator(seed: 4)
        let rids = ["q", "h", "f"].compactMap { RID($0) }
        let offer = ClientOffer.publish(transport: client, rids: rids, using: &generator)
        let server = try NegotiationServer.publish(offer.text)
        let answer = try offer.parse(answer: server.answer)
        #expect(server.receive.last?.rids == rids)
        #expect(answer.send.last?.encodings.map(\.rid) == rids)
        #expect(answer.send.last?.encodings.allSatisfy { $0.rtxSSRC != nil } == true)
        #expect(answer.send.last?.extensions[.rtpStreamID] != nil)
        #expect(answer.send.first?.encodings.count == 1)
        #expect(answer.mids.map(\.value) == ["0", "1"])
        let refusing = server.answer.split(separator: "\r\n").filter {
            !$0.contains("simulcast") && !$0.hasPrefix("a=rid")
        }
        let single = try offer.parse(answer: refusing.joined(separator: "\r\n"))
        #expect(single.send.last?.encodings.map(\.rid) == [nil], "simulcast was not accepted")
    }

    @Test func `a client watches with every codec`() throws {
        var generator = SeededGenerator(seed: 5)
        let offer = ClientOffer.watch(transport: client, using: &generator)
        let server = try NegotiationServer.watch(offer.text)
        let answer = try offer.parse(answer: server.answer)
        #expect(answer.send.isEmpty)
        #expect(answer.receive.map(\.kind) == [.audio, .video])
        #expect(answer.receive.map(\.mid) == server.send.map(\.mid))
        #expect(answer.receive.last?.codecs.map(\.name) == [.vp8, .vp9, .h264, .av1, .h265])
        #expect(answer.receive.flatMap(\.ssrcs) == server.send.map(\.ssrc))
        let video = try #require(server.send.last)
        #expect(answer.receive.last?.rtxSSRCs == [video.ssrc: try #require(video.rtxSSRC)])
        #expect(answer.receive.last?.extensions == video.extensions)
    }

    @Test(arguments: [
        ("a=recvonly", "a=sendonly"), ("a=mid:0", "a=mid:7"), ("a=rtpmap:96 VP8/90000", "a=rtpmap:96 VP9/90000"),
        ("a=setup:passive", "a=setup:actpass"), ("m=video 7000 UDP", "m=video 0 UDP"),
        ("a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid", "a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid"),
        ("m=audio", "m=video"), ("a=fingerprint", "a=finger"),
    ])
    func `a client refuses an answer that does not fit its offer`(line: String, replacement: String) throws {
        var generator = SeededGenerator(seed: 6)
        let offer = ClientOffer.publish(transport: client, using: &generator)
        let good = try NegotiationServer.publish(offer.text).answer
        var parts = good.split(separator: "\r\n").map(String.init)
        var edits = 0
        for index in parts.indices where parts[index].hasPrefix(line) {
            parts[index] = replacement + parts[index].dropFirst(line.count)
            edits += 1
        }
        #expect(edits > 0)
        #expect(throws: NegotiationError.self) { try offer.parse(answer: parts.joined(separator: "\r\n")) }
    }
}
