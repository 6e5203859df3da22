import Base
import Glibc
package import Wire

/// The addresses of this machine.
package enum NetworkInterfaces {
    /// Of the interfaces that are up, in the kernel's order, without loopback and link-local addresses, which no client on
    /// another machine can use.
    package static func addresses() -> [IPAddress] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return [] }
        defer { unsafe freeifaddrs(list) }
        var addresses: [IPAddress] = []
        var entry = unsafe list
        while let interface = unsafe entry {
            let flags = unsafe Int(interface.pointee.ifa_flags)
            if flags & IFF_UP != 0, let socketAddress = unsafe interface.pointee.ifa_addr,
                let address = unsafe Self.address(socketAddress), !address.isLoopback, !isLinkLocal(address),
                !addresses.contains(address)
            {
                addresses.append(address)
            }
            unsafe entry = interface.pointee.ifa_next
        }
        return addresses
    }

    /// 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291 §2.5.6).
    static func isLinkLocal(_ address: IPAddress) -> Bool {
        address.isV4 ? address.v4 >> 16 == 0xA9FE : address.high >> 54 == 0x3FA
    }

    private static func address(_ pointer: UnsafeMutablePointer<sockaddr>) -> IPAddress? {
        let raw = UnsafeRawPointer(pointer)
        switch unsafe Int32(pointer.pointee.sa_family) {
        case AF_INET:
            let address = unsafe raw.loadUnaligned(as: sockaddr_in.self).sin_addr
            return IPAddress(v4: UInt32(bigEndian: address.s_addr))
        case AF_INET6:
            let offset = MemoryLayout<sockaddr_in6>.offset(of: \sockaddr_in6.sin6_addr) ?? 8
            let high = unsafe raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let low = unsafe raw.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
            return IPAddress(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
        default:
            return nil
        }
    }
}
