import Foundation
import Glibc
import TestSupport
import Testing

@testable import nagare

/// A service manager's socket, and what the node sends to it.
private final class TestServiceManager {
    struct NoSocket: Error {}

    /// Of the variable `NOTIFY_SOCKET`.
    let name: String
    private let descriptor: Int32

    /// - Parameter name: A path, or `@` and a name.
    init(_ name: String) throws {
        self.name = name
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let path = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
        let address = [UInt8(AF_UNIX), 0] + path
        let result = unsafe address.withUnsafeBytes { address in
            guard let base = address.baseAddress else { return Int32(-1) }
            return unsafe bind(descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count))
        }
        guard result == 0 else { throw NoSocket() }
    }

    deinit {
        close(descriptor)
        unsafe unlink(name)
    }

    /// The next message, if there is one.
    func next() -> String? {
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = unsafe recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ServiceManagerTests {
    private static func name(_ kind: String) -> String {
        let unique = "nagare-\(UUID().uuidString)"
        return kind == "path" ? FileManager.default.temporaryDirectory.appending(path: unique).path : "@\(unique)"
    }

    @Test(arguments: ["path", "abstract name"])
    func `a message arrives at the socket that the environment names`(kind: String) throws {
        let manager = try TestServiceManager(Self.name(kind))
        let node = try #require(ServiceManager(socket: manager.name))
        node.notify(.ready)
        node.notify(.watchdog)
        #expect(manager.next() == "READY=1")
        #expect(manager.next() == "WATCHDOG=1")
    }

    @Test(arguments: [nil, "", "vsock:2:1", "relative", "/" + String(repeating: "a", count: 107)] as [String?])
    func `without a usable socket there is no service manager`(name: String?) {
        #expect(ServiceManager(socket: name) == nil)
    }

    @Test func `a service manager that does not listen is no error`() throws {
        let node = try #require(ServiceManager(socket: "/nonexistent/nagare.socket"))
        node.notify(.watchdog)
    }

    @Test func `a node says when it is ready, and each second that its loops turn`() async throws {
        let manager = try TestServiceManager(Self.name("path"))
        let arguments = ["serve", "--dev"] + RunningNode.anyPorts
        let node = try RunningNode(arguments, environment: ["NOTIFY_SOCKET": manager.name])
        _ = try await node.ready()
        var messages: [String] = []
        try await eventually("the node is ready and works") {
            while let message = manager.next() { messages.append(message) }
            return messages.contains("READY=1") && messages.count >= 3
        }
        #expect(messages.count { $0 == "READY=1" } == 1)
        #expect(Set(messages) == ["READY=1", "WATCHDOG=1"])
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }
}
