import ChannelTypes
import JSON
import Testing
import Wire

@testable import Access

@Suite struct PermissionsTests {
    @Test(arguments: [
        (Role.sendonly, AccessRole.publisher), (.recvonly, .viewer), (.sendrecv, .member),
    ])
    func `a role is what a participant does, whatever its SDP direction`(role: Role, access: AccessRole) {
        #expect(AccessRole(role) == access)
    }

    @Test func `without restrictions everything is permitted without expiry`() {
        let permissions = Permissions()
        for role in [AccessRole.publisher, .viewer, .member] { #expect(permissions.permits(role)) }
        for kind in MediaKind.allCases { #expect(permissions.permits(kind)) }
        #expect(permissions.lifetime == nil && permissions.publishBitsPerSecondMax == nil)
        #expect(permissions.receiveBitsPerSecondMax == nil)
    }

    @Test func `a role permits only itself`() {
        var permissions = Permissions()
        permissions.role = .viewer
        #expect(permissions.permits(.viewer))
        #expect(!permissions.permits(.publisher) && !permissions.permits(.member))
    }

    @Test func `a kind that a webhook turns off is not permitted`() throws {
        let permissions = try Grants(["video": false]).permissions
        #expect(permissions.kinds == [.audio])
    }
}
