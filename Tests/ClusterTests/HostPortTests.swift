import Cluster
import Testing

@Suite struct HostPortTests {
    @Test(arguments: [
        ("node-a.internal:7400", "node-a.internal", 7_400), ("10.0.0.5:1", "10.0.0.5", 1),
        ("[2001:db8::1]:65535", "2001:db8::1", 65_535),
    ])
    func `a host and a port are read and written`(text: String, host: String, port: Int) {
        let parsed = HostPort(text)
        #expect(parsed?.host == host && parsed?.port == port && parsed?.description == text)
        #expect(HostPort(text, defaultPort: 9) == parsed)
    }

    @Test(arguments: [
        "", ":", ":7400", "a:", "a:0", "a:65536", "a:x", "a:-1", "::1:7400", "[::1", "[::1]x", "[]:7400",
        String(repeating: "a", count: 256) + ":1",
    ])
    func `what is no host and port is refused`(text: String) { #expect(HostPort(text, defaultPort: 9) == nil) }

    @Test func `a port may be left out where there is a default one`() {
        #expect(HostPort("a") == nil && HostPort("[::1]") == nil)
        #expect(HostPort("a", defaultPort: 9)?.description == "a:9")
        #expect(HostPort("[::1]", defaultPort: 9)?.description == "[::1]:9")
        #expect(HostPort(host: "", port: 1) == nil && HostPort(host: "a", port: 65_536) == nil)
    }
}
