import Base
import ChannelTypes
import HTTPTypes
import NIOCore
import Testing
import Wire

@testable import Signaling
@testable import Web

struct RequestTargetTests {
    @Test(
        arguments: [
            ("/", [], nil), ("/a/b", ["a", "b"], nil), ("/a/", ["a", ""], nil), ("/a?x=1?2#f", ["a"], "x=1?2"),
            ("http://host:1/a/b?c", ["a", "b"], "c"), ("http://host", [], nil), ("http://host?q", [], "q"),
            ("*", ["*"], nil), ("", [], nil),
            ("//a", ["", "a"], nil), ("?", [], ""), ("/%2F", ["%2F"], nil),
        ] as [(String, [Substring], Substring?)]
    )
    func `request targets are split`(target: String, segments: [Substring], query: Substring?) {
        let parsed = RequestTarget(target)
        #expect(parsed.segments == segments)
        #expect(parsed.query == query)
    }

    @Test(
        arguments: [
            ("name=x", "x"), ("a=1&name=x&name=y", "x"), ("name", ""), ("name=", ""), ("names=x", nil), ("", nil),
            ("n%61me=a+b%20c", "a b c"), ("name=%ff", nil), ("name=%", nil), ("&&=&name=1=2", "1=2"),
        ] as [(String, String?)]
    )
    func `query values are found and decoded`(query: String, value: String?) {
        #expect(RequestTarget("/?" + query).queryValue("name") == value)
    }

    @Test(
        arguments: [
            ("abc", "abc"), ("%41%62", "Ab"), ("%2f", "/"), ("a+b", "a+b"), ("%", nil), ("%4", nil), ("%4g", nil),
            ("%%41", nil), ("%c3%a9", "é"), ("%c3", nil), ("", ""),
        ] as [(String, String?)]
    )
    func `percent-encoding is strict`(text: String, decoded: String?) { #expect(percentDecoded(text) == decoded) }

    @Test(
        arguments: ["whip", "whep", "api/channels"],
        [".", "..", "%2e", "%2E%2e", ".%2E", "%20", "%E3%80%80", "", "a%0Ab", String(repeating: "a", count: 256)]
    )
    func `a path's channel has a name that addresses can hold`(endpoint: String, name: String) {
        let failure = #expect(throws: HTTPFailure.self) { _ = try Route(target: RequestTarget("/\(endpoint)/\(name)")) }
        #expect(failure?.status == .badRequest)
        #expect(failure?.message == "A channel name \(ChannelName.rule).")
    }

    @Test(arguments: ["whip", "whep"])
    func `a path without a channel is answered with the path that has one`(endpoint: String) {
        let failure = #expect(throws: HTTPFailure.self) { _ = try Route(target: RequestTarget("/\(endpoint)")) }
        #expect(failure?.status == .notFound)
        #expect(failure?.message.contains("write /\(endpoint)/CHANNEL.") == true)
    }
}

struct RateLimiterTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    @Test func `a burst is allowed, then one at the rate`() {
        var limiter = RateLimiter(burst: 3, perSecond: 2)
        let client = ClientNetwork(IPAddress("192.0.2.1")!)
        for _ in 0..<3 { #expect(limiter.take(for: client, at: start) == nil) }
        #expect(limiter.take(for: client, at: start) == 1)
        #expect(limiter.take(for: ClientNetwork(IPAddress("192.0.2.2")!), at: start) == nil, "others are not affected")
        #expect(limiter.take(for: client, at: start + .milliseconds(500)) == nil)
        #expect(limiter.take(for: client, at: start + .milliseconds(500)) == 1)
        for _ in 0..<3 { #expect(limiter.take(for: client, at: start + .seconds(100)) == nil) }
        #expect(limiter.take(for: client, at: start + .seconds(100)) == 1)
    }

    @Test func `the table is bounded, and full buckets go first`() {
        var limiter = RateLimiter(burst: 1, perSecond: 1)
        for index in 0..<RateLimiter.clientsMax * 3 {
            _ = limiter.take(for: ClientNetwork(IPAddress(v4: UInt32(index))), at: start + .microseconds(index))
            #expect(limiter.clientCount <= RateLimiter.clientsMax)
        }
    }

    @Test func `zero lifts the limit`() {
        var limiter = RateLimiter(burst: 0, perSecond: 0)
        for _ in 0..<100 { #expect(limiter.take(for: ClientNetwork(.loopbackV4), at: start) == nil) }
        #expect(limiter.clientCount == 0)
    }

    @Test func `an IPv6 client is its prefix, a mapped IPv4 client its address`() throws {
        func key(_ text: String) throws -> ClientNetwork {
            ClientNetwork(of: try SocketAddress(ipAddress: text, port: 1))
        }
        #expect(try key("2001:db8::1") == key("2001:db8::ffff:1"))
        #expect(try key("2001:db8::1") != key("2001:db8:0:1::1"))
        #expect(try key("::ffff:192.0.2.1") == key("192.0.2.1"))
        #expect(try key("192.0.2.1") != key("192.0.2.2"))
        #expect(ClientNetwork(of: nil) == .unknown)
    }
}

struct IfMatchTests {
    @Test(
        arguments: [
            ([], .missing), ([""], .missing), (["*"], .any), (["\"*\""], .any), (["\"a\""], .tags(["\"a\""])),
            (["\"a\"", "\"b\" , W/\"c\""], .tags(["\"a\"", "\"b\"", "W/\"c\""])),
        ] as [([String], IfMatch)]
    )
    func `conditions are read`(fields: [String], condition: IfMatch) { #expect(IfMatch(fields) == condition) }
}
