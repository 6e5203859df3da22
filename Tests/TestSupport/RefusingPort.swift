import Glibc

/// A TCP port of the loopback address that refuses connections, and that nothing else takes meanwhile.
package final class RefusingPort: Sendable {
    package struct Failure: Error { let code: Int32 }

    private let descriptor: Int32
    package let port: Int

    package init() throws(Failure) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in.loopback(port: 0)
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
