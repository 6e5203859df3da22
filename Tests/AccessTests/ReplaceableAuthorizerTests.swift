import AccessTestSupport
import Base
import ChannelTypes
import Testing

@testable import Access

@Suite struct ReplaceableAuthorizerTests {
    @Test func `the authorizer in force decides, and another one after it was replaced`() async throws {
        let channel = try #require(ChannelName("lobby"))
        let authorizer = ReplaceableAuthorizer(OpenAuthorizer())
        let decide = { (token: String?) in
            let credential: Credential? = if let token { await authorizer.verify(token) } else { nil }
            return await authorizer.authorize(.publish(channel), credential)
        }
        #expect(await decide(nil) == .allowed)
        authorizer.replace(with: try #require(StaticTokenAuthorizer(token: "first")))
        #expect(await decide(nil) == .unauthenticated)
        #expect(await decide("first") == .allowed)
        authorizer.replace(with: try #require(StaticTokenAuthorizer(token: "second")))
        #expect(await decide("first") == .unauthenticated)
        #expect(await decide("second") == .allowed)
    }
}
