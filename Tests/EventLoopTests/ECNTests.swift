import Base
import Glibc
import TestSupport
import Testing
import Wire

@testable import EventLoop

/// The ECN field of datagrams that leave.
@Suite(.timeLimit(.minutes(10)))
struct ECNTests {
    /// A plain socket that tells the ECN field of each datagram.
    private final class Receiver {
        private let descriptor: Int32
        let address: TransportAddress

        init?(_ ip: IPAddress) {
            let descriptor = socket(ip.isV4 ? AF_INET : AF_INET6, Int32(SOCK_DGRAM.rawValue), 0)
            var on: Int32 = 1
            let (level, option) = ip.isV4 ? (Int32(IPPROTO_IP), IP_RECVTOS) : (Int32(IPPROTO_IPV6), IPV6_RECVTCLASS)
            unsafe setsockopt(descriptor, level, option, &on, 4)
            var timeout = timeval(tv_sec: 5, tv_usec: 0)
            unsafe setsockopt(
                descriptor,
                SOL_SOCKET,
                SO_RCVTIMEO,
                &timeout,
                socklen_t(MemoryLayout<timeval>.size)
            )
            var storage = sockaddr_in6()
            var length = socklen_t(ip.isV4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
            storage.sin6_family = sa_family_t(ip.isV4 ? AF_INET : AF_INET6)
            if !ip.isV4 { storage.sin6_addr = in6addr_loopback }
            let isBound = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
                }
            }
            guard isBound else {
                close(descriptor)
                return nil
            }
            self.descriptor = descriptor
            address = TransportAddress(ip: ip, port: UInt16(bigEndian: storage.sin6_port))
        }

        deinit { close(descriptor) }

        /// The next datagram's length and ECN field; `nil` when none comes.
        func receive() -> (length: Int, ecn: Int)? {
            var bytes = [UInt8](repeating: 0, count: 2_048)
            var control = [UInt8](repeating: 0, count: 64)
            var field: Int?
            let length = unsafe bytes.withUnsafeMutableBytes { bytes in
                unsafe control.withUnsafeMutableBytes { control in
                    var vector = unsafe iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                    var message = unsafe msghdr()
                    unsafe message.msg_control = control.baseAddress
                    unsafe message.msg_controllen = control.count
                    unsafe message.msg_iovlen = 1
                    let length = unsafe withUnsafeMutablePointer(to: &vector) {
                        unsafe message.msg_iov = $0
                        return unsafe recvmsg(descriptor, &message, 0)
                    }
                    // One control message: a header of 16 bytes, then the field.
                    if unsafe message.msg_controllen > 16 { field = unsafe Int(control[16] & 3) }
                    return length
                }
            }
            return field.flatMap { length > 0 ? (length, $0) : nil }
        }
    }

    @Test(arguments: ["127.0.0.1:0", "[::1]:0", "[::]:0"], [true, false])
    func `datagrams toward a marked path carry the field, and no others`(address: String, usesGSO: Bool) async throws {
        let client = try LoopHost("client")
        let opened: SocketDescription
        do {
            opened = try await client.open(address, options: SocketOptions(usesGSO: usesGSO))
        } catch EventLoopError.ipv6NotAvailable, EventLoopError.addressNotAvailable {
            throw MissingIPv6()
        }
        // An IPv6 socket reaches IPv4, too.
        let targets: [IPAddress] = opened.local.ip.isUnspecified ? [.loopbackV4, .loopbackV6] : [opened.local.ip]
        for target in targets {
            let marked = try #require(Receiver(target))
            let other = try #require(Receiver(target))
            let path = NetworkPath(socket: opened.index, remote: marked.address)
            let datagrams = [100, 100, 100, 40, 900].map { [UInt8](repeating: 128, count: $0) }
            for codepoint in [ECNCodepoint.capable1, .capable0, .notCapable] {
                await client.run { $0.loop.setECN(codepoint, on: path) }
                await client.send(datagrams, to: marked.address)
                await client.send(datagrams, to: other.address)
                for datagram in datagrams {
                    let arrived = try #require(marked.receive())
                    #expect(arrived.length == datagram.count)
                    #expect(arrived.ecn == Int(codepoint.rawValue))
                    #expect(try #require(other.receive()).ecn == 0)
                }
            }
        }
        await client.loop.stop()
    }
}
