import Base
import Glibc
import ToolCommands
import Wire

/// Checks before the start that certificates are readable and ports are free.
enum Preflight {
    static func check(_ configuration: NodeConfiguration) throws(CommandError) {
        let paths = [
            configuration.tls?.certificatePath, configuration.tls?.keyPath, configuration.adminTLS?.certificatePath,
            configuration.adminTLS?.keyPath,
            configuration.webhooks.certificateAuthorityPath, configuration.keySetAuthorityPath,
        ]
        for path in paths.compactMap(\.self) {
            _ = try SmallFile.contents(path)
        }
        try checkTCP(configuration.http, setting: .http)
        try checkTCP(configuration.admin, setting: .admin)
        if let cluster = configuration.cluster { try checkTCP(cluster.link, setting: .clusterLink) }
    }

    /// Binds and closes a socket with the listener's options.
    private static func checkTCP(_ address: TransportAddress, setting: Setting) throws(CommandError) {
        let family = address.ip.isV4 ? AF_INET : AF_INET6
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw problem(address, setting, errno) }
        defer { close(descriptor) }
        var isOn: Int32 = 1
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, address) == 0, listen(descriptor, 1) == 0 else { throw problem(address, setting, errno) }
    }

    private static func bind(_ descriptor: Int32, _ address: TransportAddress) -> Int32 {
        if address.ip.isV4 {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = address.port.bigEndian
            name.sin_addr.s_addr = address.ip.v4.bigEndian
            return unsafe withUnsafeBytes(of: &name) { unsafe bind(descriptor, $0) }
        }
        var name = sockaddr_in6()
        name.sin6_family = sa_family_t(AF_INET6)
        name.sin6_port = address.port.bigEndian
        unsafe withUnsafeMutableBytes(of: &name.sin6_addr) { bytes in
            unsafe bytes.storeBytes(of: address.ip.high.bigEndian, as: UInt64.self)
            unsafe bytes.storeBytes(of: address.ip.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return unsafe withUnsafeBytes(of: &name) { unsafe bind(descriptor, $0) }
    }

    private static func bind(_ descriptor: Int32, _ name: UnsafeRawBufferPointer) -> Int32 {
        guard let base = name.baseAddress else { return -1 }
        return unsafe Glibc.bind(descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(name.count))
    }

    private static func problem(_ address: TransportAddress, _ setting: Setting, _ code: Int32) -> CommandError {
        let reason =
            switch code {
            case EADDRINUSE: "another program uses the port; stop that program or choose another port"
            case EADDRNOTAVAIL: "this machine does not have that address; choose one of its own"
            case EACCES: "the system does not permit it; choose a port above 1023 or give the process the right to it"
            case EAFNOSUPPORT: "this machine has no IPv6; choose an IPv4 address"
            default: ErrorText.words(code)
            }
        return .system("Cannot listen on TCP \(address) (\(setting.flag)): \(reason).")
    }
}
