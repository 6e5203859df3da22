import Testing

@testable import Access

@Suite struct WebhookSignerTests {
    @Test func `the signature is that of time and body, by the secret`() throws {
        let signer = try #require(WebhookSigner(secret: "0123456789abcdef0123456789abcdef"))
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        let known = "f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177"
        #expect(signer.value(of: Array(#"{"a":1}"#.utf8), at: 1_700_000_000) == "t=1700000000,v1=\(known)")
        #expect(signer.value(of: Array(#"{"a":1}"#.utf8), at: 1_700_000_001) != "t=1700000001,v1=\(known)")
        #expect(signer.value(of: [], at: 1_700_000_000) != "t=1700000000,v1=\(known)")
    }

    @Test func `a secret is long, and never printed`() throws {
        #expect(WebhookSigner(secret: String(repeating: "s", count: 31)) == nil)
        let signer = try #require(WebhookSigner(secret: String(repeating: "s", count: 32)))
        var dumped = ""
        dump(signer, to: &dumped)
        for text in ["\(signer)", String(reflecting: signer), dumped] { #expect(!text.contains("ssss")) }
    }
}
