import Glibc

/// The service manager that runs the node, such as systemd. The node tells it by datagrams what state it is in (sd_notify(3)).
final class ServiceManager: Sendable {
    enum Message: String {
        /// The node accepts clients.
        case ready = "READY=1"
        /// The node works. When this does not come for the unit's `WatchdogSec`, the service manager ends the node.
        case watchdog = "WATCHDOG=1"
    }

    /// The most bytes of a path or name in the address of a socket, without a zero byte at its end (unix(7)).
    private static let nameBytesMax = 107

    private let descriptor: Int32
    /// The service manager's socket: the address family, then a path, or a zero byte and a name (unix(7)).
    private let address: [UInt8]

    /// - Parameter name: The variable `NOTIFY_SOCKET`: a path, or `@` and a name.
    /// - Returns: `nil` where no service manager listens.
    init?(socket name: String?) {
        guard let name, let first = name.utf8.first, name.utf8.count <= Self.nameBytesMax else { return nil }
        let path: [UInt8]
        switch first {
        case UInt8(ascii: "/"): path = Array(name.utf8) + [0]
        case UInt8(ascii: "@"): path = [0] + name.utf8.dropFirst()
        default: return nil
        }
        // The family has two bytes, in the order of the processor: little-endian on all that the node runs on.
        address = [UInt8(AF_UNIX), 0] + path
        descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_CLOEXEC, 0)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Sends a message. One that the service manager cannot take now is lost: the node waits for nothing.
    func notify(_ message: Message) {
        let bytes = Array(message.rawValue.utf8)
        unsafe address.withUnsafeBytes { address in
            guard let base = address.baseAddress else { return }
            _ = unsafe sendto(
                descriptor,
                bytes,
                bytes.count,
                Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL),
                base.assumingMemoryBound(to: sockaddr.self),
                socklen_t(address.count)
            )
        }
    }
}
