import Testing

@testable import Access

@Suite struct URLSignatureTests {
    /// The published vector.
    static let path = "/app/stream"
    static let timestamp: Int64 = 1_740_562_218
    static let text = "1740562218-0-0-485656c05d7e085f30a4ce376bf7b1de"

    private func error(
        _ text: String,
        path: String = path,
        _ keys: [String] = ["testkey"],
        validity: Int = 0,
        at now: Int64 = timestamp - 1
    ) -> URLSignatureError? {
        do throws(URLSignatureError) {
            try URLSignature(parsing: text).verify(path: path, URLKeys(keys, validity: validity), at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the published signature is valid, and made again`() throws {
        #expect(error(Self.text) == nil)
        let made = try URLKeys(["testkey"]).signature(path: Self.path, timestamp: Self.timestamp)
        #expect(made.text == Self.text)
        let other = try URLKeys(["testkey"]).signature(
            path: "/whep/%E3%83%AD",
            timestamp: Self.timestamp,
            rand: "477b3bbc253f467b8def6711128c7bec",
            uid: "user_1"
        )
        #expect(error(other.text, path: "/whep/%E3%83%AD") == nil)
        #expect(error(other.text, path: "/whep/%e3%83%ad") == .wrongHash, "the path is compared as written")
    }

    @Test(arguments: [
        ("1740562219-0-0-485656c05d7e085f30a4ce376bf7b1de", path),
        ("1740562218-1-0-485656c05d7e085f30a4ce376bf7b1de", path),
        ("1740562218-0-1-485656c05d7e085f30a4ce376bf7b1de", path),
        ("1740562218-0-0-485656c05d7e085f30a4ce376bf7b1df", path),
        ("01740562218-0-0-485656c05d7e085f30a4ce376bf7b1de", path), (text, "/app/Stream"), (text, "/app/stream/"),
        (text, "app/stream"), (text, "/app/stream?x=1"), (text, ""),
    ])
    func `a changed field is refused`(text: String, path: String) {
        #expect(error(text, path: path) == .wrongHash)
    }

    @Test(arguments: [
        "", "-", "---", "1740562218", "1740562218-0-0", "1740562218-0-0-",
        "1740562218--0-485656c05d7e085f30a4ce376bf7b1de",
        "1740562218-0--485656c05d7e085f30a4ce376bf7b1de", "1740562218-a-b-c-485656c05d7e085f30a4ce376bf7b1de",
        "-1740562218-0-0-485656c05d7e085f30a4ce376bf7b1de", "+1740562218-0-0-485656c05d7e085f30a4ce376bf7b1de",
        "x-0-0-485656c05d7e085f30a4ce376bf7b1de", "1740562218-0-0-485656C05D7E085F30A4CE376BF7B1DE",
        "1740562218-0-0-485656c05d7e085f30a4ce376bf7b1d", "1740562218-0-0-485656c05d7e085f30a4ce376bf7b1deg",
        "1740562218-a b-0-485656c05d7e085f30a4ce376bf7b1de", "1740562218-é-0-485656c05d7e085f30a4ce376bf7b1de",
        "1740562218-\(String(repeating: "r", count: 65))-0-485656c05d7e085f30a4ce376bf7b1de",
        String(repeating: "1", count: 100_000),
    ])
    func `a malformed signature is refused`(text: String) {
        #expect(error(text) == .malformed)
    }

    @Test(arguments: ["0", "00", "10000000000", "1740562218000", "9223372036854775808", "99999999999999999999999"])
    func `a timestamp that is no time in seconds is refused`(timestamp: String) {
        #expect(error("\(timestamp)-0-0-485656c05d7e085f30a4ce376bf7b1de") == .timestampOutOfRange)
    }

    @Test(arguments: [0, 1, 1_800, 315_360_000])
    func `the validity is added to the timestamp`(validity: Int) {
        let expiry = Self.timestamp + Int64(validity)
        #expect(error(Self.text, validity: validity, at: 0) == nil)
        #expect(error(Self.text, validity: validity, at: expiry - 1) == nil)
        #expect(error(Self.text, validity: validity, at: expiry) == .expired(at: expiry))
        #expect(error(Self.text, validity: validity, at: .max) == .expired(at: expiry))
    }

    @Test func `a wrong hash is refused before the time is looked at`() {
        #expect(error(Self.text, ["other"], at: .max) == .wrongHash)
    }

    @Test func `both keys are valid at the same time`() throws {
        let second = try URLKeys(["second"]).signature(path: Self.path, timestamp: Self.timestamp).text
        #expect(error(Self.text, ["testkey", "second"]) == nil && error(second, ["testkey", "second"]) == nil)
        #expect(error(Self.text, ["second", "testkey"]) == nil)
        #expect(error(second, ["testkey"]) == .wrongHash)
        // The first key signs.
        #expect(
            try URLKeys(["testkey", "second"]).signature(path: Self.path, timestamp: Self.timestamp).text == Self.text
        )
    }

    @Test func `a signature is not made with fields that would be refused`() {
        let keys = URLKeys(["testkey"])
        #expect(throws: URLSignatureError.timestampOutOfRange) { try keys.signature(path: "/a", timestamp: 0) }
        #expect(throws: URLSignatureError.malformed) { try keys.signature(path: "/a", timestamp: -5) }
        #expect(throws: URLSignatureError.malformed) { try keys.signature(path: "/a", timestamp: 1, rand: "a-b") }
    }

    // MARK: URLs

    @Test(arguments: [
        ("https://example.org/app/stream", "/app/stream", "https://example.org/app/stream?auth_key=\(text)"),
        ("http://[::1]:8080/app/stream?a=b", "/app/stream", "http://[::1]:8080/app/stream?a=b&auth_key=\(text)"),
        ("rtmp://h/app/stream?", "/app/stream", "rtmp://h/app/stream?auth_key=\(text)"),
        ("https://h/a/b%20c?x&#part", "/a/b%20c", "https://h/a/b%20c?x&auth_key=\(text)"),
        ("https://h/a?b?", "/a", "https://h/a?b?&auth_key=\(text)"),
    ])
    func `a URL is signed by its path`(url: String, path: String, signed: String) throws {
        let url = try #require(SignableURL(url))
        #expect(url.path == path)
        #expect(url.signed(try URLSignature(parsing: Self.text)) == signed)
    }

    @Test(arguments: [
        "", "/app/stream", "https://", "https://h", "https://h/", "https://h?x=/a", "https:///a", "://h/a",
        "https://h/a b",
        "https#://h/a", "#https://h/a", "https://h/ロビー", "https://h/a?auth_key=x", "https://h/a?b=c&auth_key=",
    ])
    func `a text that cannot be signed is refused`(text: String) {
        #expect(SignableURL(text) == nil)
    }
}
