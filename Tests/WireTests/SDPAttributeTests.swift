import Testing
import Wire

@Suite struct SDPAttributeTests {
    @Test(arguments: [
        "111 opus/48000/2", "96 VP8/90000", "0 PCMU/8000",
    ])
    func `an rtpmap reads and writes the same`(text: String) throws {
        #expect(try #require(RTPMapAttribute(text)).text == text)
    }

    @Test(arguments: [
        "", "111", "128 opus/48000", "-1 opus/48000", "111 opus", "111 opus/0", "111 opus/48000/0", "111 opus/x",
        "111 opus/48000/2/2", "111 /48000", "111 opus/99999999999999999999",
    ])
    func `a malformed rtpmap is refused`(text: String) {
        #expect(RTPMapAttribute(text) == nil)
    }

    @Test func `format parameters keep their order and have lower case keys`() throws {
        let line = try #require(FormatParametersAttribute("102 Profile-Level-ID=42E01F; packetization-mode = 1;;x=a=b"))
        #expect(line.parameters.map(\.key) == ["profile-level-id", "packetization-mode", "x"])
        #expect(line.parameters.map(\.value) == ["42E01F", "1", "a=b"])
        #expect(line.text == "102 profile-level-id=42E01F;packetization-mode=1;x=a=b")
        let red = try #require(FormatParametersAttribute("63 111/111"))
        #expect(red.parameters == [.init(key: "", value: "111/111")])
        #expect(red.text == "63 111/111")
        #expect(FormatParametersAttribute("63")?.parameters == [])
        #expect(FormatParametersAttribute("x y=z") == nil)
        let many = String(repeating: "a=1;", count: FormatParametersAttribute.parametersMax + 1)
        #expect(FormatParametersAttribute("96 " + many) == nil)
    }

    @Test func `feedback is for one payload type or for all`() throws {
        #expect(
            FeedbackAttribute("96 nack  PLI")
                == FeedbackAttribute(payloadType: PayloadType(rawValue: 96), feedback: "nack pli")
        )
        #expect(FeedbackAttribute("* transport-cc")?.payloadType == nil)
        #expect(FeedbackAttribute("* transport-cc")?.text == "* transport-cc")
        #expect(FeedbackAttribute("96") == nil)
        #expect(FeedbackAttribute("200 nack") == nil)
    }

    @Test func `an extension has an identifier, an optional direction and a URI`() throws {
        let line = try #require(ExtensionMapAttribute("3/sendonly urn:x y"))
        #expect(line.id.rawValue == 3)
        #expect(line.direction == .sendonly)
        #expect(line.uri == "urn:x")
        #expect(line.text == "3/sendonly urn:x")
        for text in ["0 urn:x", "256 urn:x", "4096 urn:x", "3/up urn:x", "3", "", "/ x"] {
            #expect(ExtensionMapAttribute(text) == nil, "\(text)")
        }
    }

    @Test func `a rid has a direction, formats and restrictions`() throws {
        let line = try #require(RIDAttribute("hi send pt=96,97;max-width=1280;max-fps=30"))
        #expect(line.payloadTypes.map(\.rawValue) == [96, 97])
        #expect(line.restrictions == ["max-width=1280", "max-fps=30"])
        #expect(line.text == "hi send pt=96,97;max-width=1280;max-fps=30")
        #expect(RIDAttribute("lo recv")?.text == "lo recv")
        for text in ["", "lo", "lo up", "l.o send", "lo send pt=x"] {
            #expect(RIDAttribute(text) == nil, "\(text)")
        }
    }

    @Test(arguments: ["send q;h;f", "recv q", "send q;~h,i recv a;b", "recv a send b,c", "send a,b,c,d,e,f,g,h"])
    func `a simulcast line survives parsing and serialization`(text: String) throws {
        let line = try #require(SimulcastAttribute(text))
        #expect(SimulcastAttribute(line.text) == line)
    }

    @Test(arguments: [
        "", "send", "q;h", "send ;", "send q send h", "send q recv", "up q", "send q;~", "send ,",
        "send a;b;c;d;e;f;g;h;i", "send a,b,c,d,e,f,g,h,i",
    ])
    func `a malformed or too long simulcast line is refused`(text: String) {
        #expect(SimulcastAttribute(text) == nil)
    }

    @Test func `a separator before a combining mark is one`() {
        #expect(SSRCAttribute("5 cname:\u{301}a")?.value == "\u{301}a")
        #expect(FeedbackAttribute("96 nack \u{301}")?.feedback == "nack \u{301}")
        #expect(FormatParametersAttribute("96 x=\u{301};y=\u{301}")?.parameters.map(\.value) == ["\u{301}", "\u{301}"])
    }

    @Test func `sources have attributes and groups`() throws {
        #expect(SSRCAttribute("5 cname:a:b") == SSRCAttribute(ssrc: SSRC(rawValue: 5), name: "cname", value: "a:b"))
        #expect(SSRCAttribute("5 msid:x y")?.text == "5 msid:x y")
        #expect(SSRCAttribute("4294967296 cname:a") == nil)
        #expect(SSRCAttribute("") == nil)
        #expect(SSRCGroupAttribute("FID 1 2")?.text == "FID 1 2")
        #expect(SSRCGroupAttribute("FID") == nil)
        #expect(SSRCGroupAttribute("FID x") == nil)
        #expect(SSRCGroupAttribute("SIM" + String(repeating: " 1", count: SSRCGroupAttribute.sourcesMax + 1)) == nil)
        #expect(GroupAttribute("BUNDLE a b")?.mids.map(\.value) == ["a", "b"])
        #expect(GroupAttribute("BUNDLE")?.mids == [])
        #expect(GroupAttribute("BUNDLE a(b") == nil)
    }

    @Test func `a fingerprint is parsed in either case and serialized in upper case`() throws {
        let pairs = (0..<32).map { String($0 + 0xA0, radix: 16) }.joined(separator: ":")
        let fingerprint = try #require(Fingerprint(attribute: "SHA-256 \(pairs)"))
        #expect(fingerprint.description == "sha-256 \(pairs.uppercased())")
        #expect(Fingerprint(attribute: fingerprint.description) == fingerprint)
        for text in [
            "", "sha-256", "sha-1 \(pairs)", "sha-256 \(pairs):00", "sha-256 +\(pairs.dropFirst())",
            "sha-512 \(pairs)", "sha-256 \(String(repeating: ":", count: pairs.utf8.count))",
        ] {
            #expect(Fingerprint(attribute: text) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        ("1 1 udp 2130706431 192.0.2.1 5000 typ host", "192.0.2.1:5000"),
        ("candidate:1 1 UDP 2130706431 192.0.2.1 5000 typ srflx raddr 0.0.0.0 rport 9 generation 0", "192.0.2.1:5000"),
        ("1 1 udp 1 2001:db8::1 5000 typ host", "[2001:db8::1]:5000"),
        ("1 1 tcp 1 192.0.2.1 9 typ host tcptype active", nil),
        ("1 2 udp 1 192.0.2.1 5001 typ host", nil),
        ("1 1 udp 1 4e1f.local 5000 typ host", nil),
        ("1 1 udp 1 192.0.2.1 0 typ host", nil),
        ("1 1 udp 1 0.0.0.0 5000 typ host", nil),
    ])
    func `a candidate is an address to send to, if it is UDP with an address`(text: String, address: String?) throws {
        #expect(try #require(ICECandidateAttribute(text)).address?.description == address)
    }

    @Test(arguments: [
        "", "1 1 udp 1 192.0.2.1 5000 typ", "1 1 udp 4294967296 192.0.2.1 5000 typ host",
        "1 1 udp 1 192.0.2.1 70000 typ host", "1 1 udp 1 192.0.2.1 5000 type host",
        "1 1 udp 1 192.0.2.1 5000 typ ghost",
    ])
    func `a malformed candidate is refused`(text: String) {
        #expect(ICECandidateAttribute(text) == nil)
    }

    @Test func `a host candidate has the priority of RFC 8445`() throws {
        let address = try #require(TransportAddress("192.0.2.1:5000"))
        let candidate = ICECandidateAttribute(hostAddress: address, preference: 65_535)
        #expect(candidate.text == "1 1 udp 2130706431 192.0.2.1 5000 typ host")
        #expect(ICECandidateAttribute(candidate.text) == candidate)
    }

    @Test(arguments: [
        ("192.0.2.1:5000", 8191 as UInt16, "3 1 tcp 1520435199 192.0.2.1 5000 typ host tcptype passive"),
        ("192.0.2.1:5000", 8190, "3 1 tcp 1520434943 192.0.2.1 5000 typ host tcptype passive"),
        ("[2001:db8::1]:443", 8191, "4 1 tcp 1520435199 2001:db8::1 443 typ host tcptype passive"),
    ])
    func `a passive TCP candidate has the priority of RFC 6544`(
        address: String,
        preference: UInt16,
        text: String
    ) throws {
        let address = try #require(TransportAddress(address))
        let candidate = ICECandidateAttribute(passiveTCPAddress: address, preference: preference)
        #expect(candidate.text == text)
        #expect(ICECandidateAttribute(candidate.text) == candidate)
        #expect(candidate.address == nil, "not an address to send datagrams to")
        #expect(candidate.priority < ICECandidateAttribute(hostAddress: address, preference: 0).priority)
    }

    @Test(arguments: [
        ("1 1 tcp 1 192.0.2.1 9 typ host tcptype active", ICECandidateAttribute.TCPType.active),
        ("1 1 TCP 1 192.0.2.1 9 typ host tcptype PASSIVE generation 0", .passive),
        ("1 1 tcp 1 192.0.2.1 9 typ srflx raddr 10.0.0.1 rport 9 tcptype so ufrag ab", .simultaneousOpen),
        ("1 1 tcp 1 192.0.2.1 9 typ host tcptype", nil),
        ("1 1 tcp 1 192.0.2.1 9 typ host tcptype other tcptype active", nil),
        ("1 1 tcp 1 192.0.2.1 9 typ host generation tcptype active 0", nil),
        ("1 1 tcp 1 192.0.2.1 9 typ host", nil),
        ("1 1 udp 1 192.0.2.1 9 typ host tcptype active", nil),
    ])
    func `the type of a TCP candidate is read`(text: String, type: ICECandidateAttribute.TCPType?) throws {
        #expect(try #require(ICECandidateAttribute(text)).tcpType == type)
    }
}
