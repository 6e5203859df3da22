import Testing
import Wire

@testable import ImpairmentProxy

struct CandidateRewritingTests {
    private let proxy = TransportAddress(ip: .loopbackV4, port: 9_000)

    @Test func `a UDP candidate gets the proxy's address, and nothing else changes`() {
        let sdp = "v=0\r\na=mid:0\r\na=candidate:1 1 udp 2130706431 192.0.2.1 7000 typ host\r\na=end-of-candidates\r\n"
        var seen: [TransportAddress] = []
        let rewritten = rewriteCandidates(in: sdp) { address in
            seen.append(address)
            return proxy
        }
        #expect(seen == [TransportAddress("192.0.2.1:7000")])
        #expect(rewritten == sdp.replacing("192.0.2.1 7000", with: "127.0.0.1 9000"))
    }

    @Test func `candidates that cannot pass through the proxy are removed with their lines`() {
        let kept = "a=candidate:3 1 UDP 1 2001:db8::1 7001 typ host generation 0\r\n"
        let sdp =
            "a=candidate:1 1 tcp 1 192.0.2.1 9 typ host tcptype passive\r\na=candidate:2 1 udp 1 host.local 7000 typ host\r\n"
            + kept + "a=candidate:4 1 udp 1 192.0.2.1 70000 typ host\r\na=candidate:5\r\na=x\r\n"
        #expect(
            rewriteCandidates(in: sdp) { _ in proxy } == kept.replacing("2001:db8::1 7001", with: "127.0.0.1 9000")
                + "a=x\r\n"
        )
        #expect(rewriteCandidates(in: sdp) { _ in nil } == "a=x\r\n")
    }

    @Test func `SDP in a JSON string keeps its escapes`() {
        let line = #"a=candidate:1 1 udp 1 192.0.2.1 7000 typ host"#
        let json =
            #"{"type":"offer","sdp":"v=0\r\n\#(line)\r\na=candidate:2 1 tcp 1 192.0.2.1 9 typ host\r\na=mid:0\r\n"}"#
        let expected = #"{"type":"offer","sdp":"v=0\r\na=candidate:1 1 udp 1 127.0.0.1 9000 typ host\r\na=mid:0\r\n"}"#
        #expect(rewriteCandidates(in: json) { _ in proxy } == expected)
    }

    @Test(arguments: ["", "a=candidate:", "text about a=candidates", "{\"notes\":\"a=mid:0\"}", "流れ a=c"])
    func `other text is not changed, whatever it is`(text: String) {
        let rewritten = rewriteCandidates(in: text) { _ in proxy }
        #expect(rewritten == (text == "a=candidate:" ? "" : text))
    }

    @Test func `each address of the server has a port of its own, while there are any`() throws {
        let ports = MediaPorts()
        ports.open([5_000, 5_001])
        let (one, two, three) = (
            try #require(TransportAddress("192.0.2.1:7000")), try #require(TransportAddress("192.0.2.1:7001")),
            try #require(TransportAddress("192.0.2.2:7000"))
        )
        #expect(ports.port(for: one) == 5_000)
        #expect(ports.port(for: two) == 5_001)
        #expect(ports.port(for: one) == 5_000)
        #expect(ports.port(for: three) == nil)
        #expect(ports.target(ofPortAt: 1) == two)
        #expect(ports.target(ofPortAt: 2) == nil)
    }
}
