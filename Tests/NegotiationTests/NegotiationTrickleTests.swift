import MediaTypes
import Testing
import Wire

@testable import Negotiation

@Suite struct NegotiationTrickleTests {
    private let fragment = """
        a=ice-ufrag:EsAw
        a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
        m=audio 9 RTP/AVP 0
        a=mid:0
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1
        a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0 ufrag EsAw network-id 2
        a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host
        a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active
        a=candidate:nonsense
        a=candidate:2154773085 1 udp 2122063615 aa-bb.local 61766 typ host
        a=end-of-candidates

        """

    @Test func `a fragment has credentials and usable candidates`() throws {
        let parsed = try TrickleFragment(parsing: fragment)
        #expect(parsed.credentials?.usernameFragment == "EsAw")
        #expect(parsed.candidates.map(\.description) == ["192.0.2.1:61764", "198.51.100.2:61765"])
        #expect(parsed.endOfCandidates)
    }

    @Test func `credentials can be in the section`() throws {
        let text = "m=audio 9 RTP/AVP 0\r\na=mid:0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
        let parsed = try TrickleFragment(parsing: text)
        #expect(parsed.credentials?.usernameFragment == "abcd")
        #expect(!parsed.endOfCandidates)
        #expect(parsed.candidates.isEmpty)
    }

    @Test(arguments: [
        "", "nonsense", "a=mid:0\n", "a=ice-ufrag:abcd\na=end-of-candidates\n", "a=ice-ufrag:a\na=ice-pwd:b\n",
    ])
    func `an empty or invalid fragment is malformed`(text: String) {
        #expect {
            try TrickleFragment(parsing: text)
        } throws: { error in
            if case .malformed(let message)? = error as? NegotiationError { message.hasSuffix(".") } else { false }
        }
    }

    @Test func `candidates are bounded`() throws {
        let lines = (1...500).map { "a=candidate:1 1 udp 1 192.0.2.1 \($0) typ host\n" }.joined()
        #expect(try TrickleFragment(parsing: "m=audio 9 RTP/AVP 0\n" + lines).candidates.count == 64)
    }

    @Test func `the response of an ICE restart agrees with the answer`() throws {
        let mids = ["0", "1"].compactMap { MID($0) }
        let text = restartFragment(local: NegotiationServer.local, mids: mids)
        let parsed = try TrickleFragment(parsing: text)
        #expect(parsed.credentials == NegotiationServer.local.credentials)
        #expect(parsed.candidates == NegotiationServer.local.candidates)
        #expect(parsed.endOfCandidates)
        let session = try SDPFragment(parsing: text).attributes
        #expect(session.value(of: "group") == "BUNDLE 0 1")
        let answer = try SessionDescription(parsing: NegotiationServer.publish(PublishOffers.obs.text).answer)
        #expect(session.value(of: "ice-options") == answer.attributes.value(of: "ice-options"))
        #expect(session.has("ice-lite"))
    }
}
