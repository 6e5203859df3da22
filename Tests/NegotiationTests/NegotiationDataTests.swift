import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct NegotiationDataTests {
    private let client = LocalTransport(
        credentials: ICECredentials(usernameFragment: "client00", password: "clientPasswordOf26characters")!,
        fingerprint: Fingerprint(algorithm: .sha256, digest: Array(32..<64))!,
        candidates: [TransportAddress("127.0.0.1:5001")!]
    )

    @Test func `a publisher's data channels are accepted`() throws {
        var generator = SeededGenerator(seed: 1)
        let offer = ClientOffer.publish(transport: client, hasData: true, using: &generator)
        let server = try NegotiationServer.publish(offer.text)
        #expect(server.data == DataTransportParameters())
        #expect(server.mids.map(\.value) == ["0", "1"])
        let answer = try SessionDescription(parsing: server.answer)
        #expect(answer.attributes.value(of: "group") == "BUNDLE 0 1 2")
        let section = try #require(answer.media.last)
        #expect(section.type == "application" && section.protocolName == "UDP/DTLS/SCTP")
        #expect(section.attributes.value(of: "sctp-port") == "5000")
        #expect(section.attributes.value(of: "max-message-size") == "262144")
        #expect(section.attributes.value(of: "setup") == "passive")
        #expect(try offer.parse(answer: server.answer).data == DataTransportParameters())
    }

    @Test func `a viewer's data channels are accepted`() throws {
        var generator = SeededGenerator(seed: 1)
        let offer = ClientOffer.watch(transport: client, hasData: true, using: &generator)
        let server = try NegotiationServer.watch(offer.text)
        #expect(server.data == DataTransportParameters())
        #expect(try offer.parse(answer: server.answer).data == DataTransportParameters())
    }

    struct Edit: CustomTestStringConvertible, Sendable {
        let name: String
        let from: String
        let to: String
        var accepted: DataTransportParameters?
        var testDescription: String { name }
    }

    @Test(arguments: [
        Edit(name: "no port", from: "a=sctp-port:5000\r\n", to: ""),
        Edit(name: "port 0", from: "a=sctp-port:5000", to: "a=sctp-port:0"),
        Edit(name: "no number", from: "a=sctp-port:5000", to: "a=sctp-port:x"),
        Edit(name: "a large number", from: "a=sctp-port:5000", to: "a=sctp-port:65536"),
        Edit(name: "the syntax of drafts", from: "a=sctp-port:5000", to: "a=sctpmap:5000 webrtc-datachannel 1024"),
        Edit(name: "another protocol", from: "UDP/DTLS/SCTP", to: "DTLS/SCTP"),
        Edit(name: "another format", from: "webrtc-datachannel", to: "5000"),
        Edit(name: "outside of the group", from: "a=group:BUNDLE 0 1 2", to: "a=group:BUNDLE 0 1"),
        Edit(name: "rejected", from: "m=application 5001", to: "m=application 0"),
        Edit(name: "another port", from: "sctp-port:5000", to: "sctp-port:6000", accepted: .init(port: 6_000)),
        Edit(name: "over TCP", from: "UDP/DTLS/SCTP", to: "TCP/DTLS/SCTP", accepted: .init()),
        Edit(
            name: "no limit given",
            from: "a=max-message-size:262144\r\n",
            to: "",
            accepted: .init(messageBytesMax: 65_536)
        ),
        Edit(name: "no limit", from: "size:262144", to: "size:0", accepted: .init()),
        Edit(name: "a high limit", from: "size:262144", to: "size:99999999999999999999", accepted: .init()),
        Edit(name: "a low limit", from: "size:262144", to: "size:1000", accepted: .init(messageBytesMax: 1_000)),
    ])
    func `what is offered decides`(edit: Edit) throws {
        var generator = SeededGenerator(seed: 1)
        let offer = ClientOffer.publish(transport: client, hasData: true, using: &generator)
        let text = offer.text.replacing(edit.from, with: edit.to)
        #expect(text != offer.text)
        let server = try NegotiationServer.publish(text)
        #expect(server.data == edit.accepted)
        let answer = try SessionDescription(parsing: server.answer)
        #expect((answer.media.last?.port == 0) == (edit.accepted == nil))
        #expect(answer.attributes.value(of: "group") == (edit.accepted == nil ? "BUNDLE 0 1" : "BUNDLE 0 1 2"))
    }

    // MARK: - Offers of the server

    private func description(
        _ media: OfferedDescription.ClientMedia = .init(),
        kinds: Set<MediaKind> = [.audio, .video],
        using generator: inout SeededGenerator
    ) -> OfferedDescription {
        OfferedDescription(
            local: NegotiationServer.local,
            clientMedia: media,
            receivesMedia: true,
            kinds: kinds,
            offersData: true,
            using: &generator
        )
    }

    private func types(_ text: String) throws -> [String] {
        try SessionDescription(parsing: text).media.map { "\($0.type) \($0.port == 0 ? "closed" : "open")" }
    }

    @Test func `the m-line of data channels follows the client's own and never moves`() throws {
        var generator = SeededGenerator(seed: 1)
        var node = description(OfferedScene.both, using: &generator)
        let echo = EchoClient()
        let first = node.makeOffer([], using: &generator)
        #expect(try types(first) == ["audio open", "video open", "application open"])
        #expect(try node.apply(answer: try echo.answer(first)).data == DataTransportParameters())
        let second = node.makeOffer([remoteStream("A")], using: &generator)
        #expect(try types(second).prefix(3) == ["audio open", "video open", "application open"])
        #expect(try types(second).count == 5)
        let outcome = try node.apply(answer: try echo.answer(second))
        #expect(outcome.added.count == 2 && outcome.data == DataTransportParameters())
        let third = node.makeOffer([], using: &generator)
        #expect(try types(third) == ["audio open", "video open", "application open", "audio closed", "video closed"])
        #expect(try node.apply(answer: try echo.answer(third)).removed.count == 2)
        let fourth = node.makeOffer([remoteStream("B")], using: &generator)
        #expect(try types(fourth).count == 5, "closed m-lines are used again")
        #expect(try node.apply(answer: try echo.answer(fourth)).added.count == 2)
    }

    @Test func `a client that only receives has the m-line after the first ones`() throws {
        var generator = SeededGenerator(seed: 2)
        var node = description(using: &generator)
        let offer = node.makeOffer([remoteStream("A")], using: &generator)
        #expect(try types(offer) == ["audio open", "video open", "application open"])
        let outcome = try node.apply(answer: try EchoClient().answer(offer))
        #expect(outcome.added.count == 2 && outcome.data != nil)
    }

    @Test func `a client without media has data channels alone`() throws {
        var generator = SeededGenerator(seed: 3)
        var node = description(kinds: [], using: &generator)
        let offer = node.makeOffer([], using: &generator)
        #expect(try types(offer) == ["application open"])
        #expect(try SessionDescription(parsing: offer).media[0].attributes.values(of: "candidate").count == 2)
        var client = ClientAnswerer(transport: client, using: &generator)
        let applied = try client.answer(offer: offer, using: &generator)
        #expect(applied.data == DataTransportParameters())
        let outcome = try node.apply(answer: applied.answer)
        #expect(outcome.data == DataTransportParameters() && outcome.receive.isEmpty && outcome.added.isEmpty)
        #expect(outcome.remote.localRole == .server)
    }

    @Test func `a client that declines data channels has none`() throws {
        var generator = SeededGenerator(seed: 4)
        var node = description(OfferedScene.both, using: &generator)
        let offer = node.makeOffer([], using: &generator)
        let mid = try #require(try SessionDescription(parsing: offer).media.last?.attributes.value(of: "mid"))
        var echo = EchoClient()
        echo.replies[mid] = .refuse
        let outcome = try node.apply(answer: try echo.answer(offer))
        #expect(outcome.data == nil && outcome.receive.count == 2)
        let second = node.makeOffer([remoteStream("A")], using: &generator)
        #expect(try node.apply(answer: try echo.answer(second)).added.count == 2)
    }

    @Test func `answers without the m-line, or with another mid, are refused`() throws {
        var generator = SeededGenerator(seed: 5)
        var node = description(OfferedScene.both, using: &generator)
        let offer = node.makeOffer([], using: &generator)
        let answer = try EchoClient().answer(offer)
        let start = try #require(answer.firstRange(of: "m=application")?.lowerBound)
        #expect(throws: NegotiationError.self) { _ = try node.apply(answer: String(answer[..<start])) }
        let mid = try #require(try SessionDescription(parsing: offer).media.last?.attributes.value(of: "mid"))
        #expect(throws: NegotiationError.self) { _ = try node.apply(answer: answer.replacing(mid, with: "other")) }
        #expect(throws: NegotiationError.self) {
            _ = try node.apply(answer: answer.replacing("m=application", with: "m=audio"))
        }
        #expect(try node.apply(answer: answer).data != nil)
    }
}
