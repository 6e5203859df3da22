import Testing
import Wire

@testable import EventLoop

@Suite struct NetworkInterfacesTests {
    @Test(arguments: [
        ("169.254.1.1", true), ("169.253.1.1", false), ("fe80::1", true), ("febf::1", true), ("fec0::1", false),
        ("10.0.0.1", false), ("2001:db8::1", false),
    ])
    func `link-local addresses are recognized`(text: String, isLinkLocal: Bool) throws {
        #expect(NetworkInterfaces.isLinkLocal(try #require(IPAddress(text))) == isLinkLocal)
    }

    @Test func `the machine's own addresses are usable ones, each once`() {
        let addresses = NetworkInterfaces.addresses()
        #expect(Set(addresses).count == addresses.count)
        #expect(addresses.allSatisfy { !$0.isLoopback && !$0.isUnspecified && !NetworkInterfaces.isLinkLocal($0) })
    }
}
