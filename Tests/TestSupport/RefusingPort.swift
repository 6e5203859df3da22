import Glibc

/// A TCP port of the loopback address that refuses connections, and that nothing else takes meanwhile.
public final class RefusingPort: Sendable {
    public struct Failure: Error { let code: Int32 }

    private let descriptor: Int32
    public let port: Int

    public init() throws(Failure) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &name) { [descriptor] pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // It has the port, and does not listen.
                unsafe bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
            }
        }
        port = Int(UInt16(bigEndian: name.sin_port))
        guard result == 0 else { throw Failure(code: errno) }
    }

    deinit { close(descriptor) }
}
