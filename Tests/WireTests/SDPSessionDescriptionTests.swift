import Testing
import Wire

private let small = """
    v=0
    o=- 123 2 IN IP4 127.0.0.1
    s=-
    i=dropped
    t=0 0
    a=group:BUNDLE a v
    a=ice-lite
    m=audio 9 UDP/TLS/RTP/SAVPF 111 0
    c=IN IP4 0.0.0.0
    b=AS:64
    a=mid:a
    a=rtcp-mux
    a=empty:
    m=video 0/2 UDP/TLS/RTP/SAVPF 96
    a=mid:v

    """

@Suite struct SDPSessionDescriptionTests {
    @Test func `a description is parsed into session and media sections`() throws {
        let description = try SessionDescription(parsing: small)
        #expect(description.origin == SDPOrigin(sessionID: "123", version: "2"))
        #expect(description.timing == "0 0")
        #expect(description.attributes == [SDPAttribute("group", "BUNDLE a v"), SDPAttribute("ice-lite")])
        #expect(description.media.count == 2)
        let audio = try #require(description.media.first)
        #expect(audio.type == "audio")
        #expect(audio.port == 9)
        #expect(audio.formats == ["111", "0"])
        #expect(audio.connection == "IN IP4 0.0.0.0")
        #expect(audio.bandwidths == ["AS:64"])
        #expect(audio.attributes.last == SDPAttribute("empty", ""))
        #expect(audio.attributes.value(of: "mid") == "a")
        #expect(audio.attributes.has("rtcp-mux"))
        #expect(!audio.attributes.has("rtcp-rsize"))
        #expect(description.media.last?.port == 0)
    }

    @Test func `a serialized description has CR LF line ends and is parsed to an equal one`() throws {
        let description = try SessionDescription(parsing: small)
        let text = description.serialized()
        #expect(try SessionDescription(parsing: text) == description)
        #expect(text.utf8.count(where: { $0 == 0x0A }) == text.utf8.count(where: { $0 == 0x0D }))
        #expect(text.hasSuffix("a=mid:v\r\n"))
        #expect(text.hasPrefix("v=0\r\no=- 123 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group"))
    }

    @Test func `CR LF, blank lines and trailing spaces are ignored`() throws {
        let plain = try SessionDescription(parsing: small)
        let lines = small.split(separator: "\n")
        #expect(try SessionDescription(parsing: lines.joined(separator: "\r\n")) == plain)
        #expect(try SessionDescription(parsing: lines.joined(separator: " \n\n")) == plain)
    }

    @Test func `bytes are parsed like text and must be UTF-8`() throws {
        #expect(try SessionDescription(parsing: Array(small.utf8)) == SessionDescription(parsing: small))
        #expect(throws: SDPParseError.notUTF8) { try SessionDescription(parsing: Array("v=0\n".utf8) + [0xFF]) }
    }

    @Test(arguments: [
        ("", SDPParseError.empty),
        (" \r\n\n", .empty),
        ("o=- 1 1 IN IP4 0.0.0.0\n", .missingVersion),
        ("v=1\no=- 1 1 IN IP4 0.0.0.0\n", .missingVersion),
        ("v=0\ns=-\n", .missingOrigin),
        ("v=0\no=- 1 IN IP4\n", .malformedField(kind: "o", number: 2)),
        ("v=0\no=- x 1 IN IP4 0.0.0.0\n", .malformedField(kind: "o", number: 2)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\nhello\n", .malformedLine(number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\n=x\n", .malformedLine(number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\na=x\0y\n", .malformedLine(number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\na=x\ry\n", .malformedLine(number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\na=:x\n", .malformedField(kind: "a", number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\nm=audio 9 RTP\n", .malformedField(kind: "m", number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\nm=audio 65536 RTP 0\n", .malformedField(kind: "m", number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\nm=audio -1 RTP 0\n", .malformedField(kind: "m", number: 3)),
        ("v=0\no=- 1 1 IN IP4 0.0.0.0\nm=audio / RTP 0\n", .malformedField(kind: "m", number: 3)),
    ])
    func `a broken description is refused with its reason`(text: String, expected: SDPParseError) {
        #expect(throws: expected) { try SessionDescription(parsing: text) }
        #expect(expected.message.hasSuffix("."))
    }

    static let head = "v=0\no=- 1 1 IN IP4 0.0.0.0\ns=-\nt=0 0\n"

    @Test func `each list has a limit`() throws {
        let head = Self.head
        let section = "m=audio 9 RTP 0\n"
        #expect(throws: SDPParseError.tooManyMediaSections) {
            try SessionDescription(parsing: head + String(repeating: section, count: SDPLimits.mediaSectionsMax + 1))
        }
        _ = try SessionDescription(parsing: head + String(repeating: section, count: SDPLimits.mediaSectionsMax))
        #expect(throws: SDPParseError.tooManyAttributes) {
            try SessionDescription(parsing: head + String(repeating: "a=x\n", count: SDPLimits.attributesMax + 1))
        }
        _ = try SessionDescription(parsing: head + String(repeating: "a=x\n", count: SDPLimits.attributesMax))
        let formats = { (count: Int) in "m=audio 9 RTP" + String(repeating: " 0", count: count) + "\n" }
        #expect(throws: SDPParseError.tooManyFormats(number: 5)) {
            try SessionDescription(parsing: head + formats(SDPLimits.formatsMax + 1))
        }
        _ = try SessionDescription(parsing: head + formats(SDPLimits.formatsMax))
        let line = { (count: Int) in "a=" + String(repeating: "x", count: count - 2) + "\n" }
        #expect(throws: SDPParseError.lineTooLong(number: 5)) {
            try SessionDescription(parsing: head + line(SDPLimits.lineBytesMax + 1))
        }
        _ = try SessionDescription(parsing: head + line(SDPLimits.lineBytesMax))
    }

    @Test(
        .timeLimit(.minutes(10)),
        arguments: ["a", "m=audio 9 RTP 0\n", "a=x\n", "\n", "a=rid:", " ", "m= 0", ";", "v=0\n"]
    )
    func `megabytes of anything are refused before they are read`(unit: String) {
        let count = 8 * 1024 * 1024 / unit.utf8.count
        let text = Self.head + String(repeating: unit, count: count)
        #expect(throws: SDPParseError.tooLarge(byteCount: text.utf8.count)) { try SessionDescription(parsing: text) }
        #expect(throws: SDPParseError.tooLarge(byteCount: text.utf8.count)) {
            try SessionDescription(parsing: Array(text.utf8))
        }
    }

    @Test func `the session identifier is never negative as a signed integer`() {
        #expect(SDPOrigin(sessionID: .max, version: 1).sessionID == "9223372036854775807")
    }

    @Test func `a fragment requires no session lines`() throws {
        let text = "a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=end-of-candidates\r\n"
        let fragment = try SDPFragment(parsing: text)
        #expect(fragment.attributes == [SDPAttribute("group", "BUNDLE 0 1")])
        #expect(fragment.media.first?.attributes.has("end-of-candidates") == true)
        #expect(fragment.serialized() == text)
    }
}
