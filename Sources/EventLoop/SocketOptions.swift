package import Wire

/// The options for opening a UDP socket.
package struct SocketOptions: Hashable, Sendable {
    /// The kernel's receive buffer (SO_RCVBUF). The default of 4 MiB holds about 20 ms of video packets at 1 Gbit/s,
    /// longer than a loop turn under load.
    package var receiveBufferBytes: Int
    /// The kernel's send buffer (SO_SNDBUF).
    package var sendBufferBytes: Int
    /// Whether to try to exceed the kernel's limits (SO_RCVBUFFORCE, SO_SNDBUFFORCE), which requires CAP_NET_ADMIN.
    package var exceedsKernelLimits: Bool
    /// Whether several datagrams to one address go to the kernel as one message (UDP GSO, Linux 4.18).
    package var usesGSO: Bool
    /// Whether the kernel may hand over several datagrams from one address as one message (UDP GRO, Linux 5.0).
    package var usesGRO: Bool

    package init(
        receiveBufferBytes: Int = 4 << 20,
        sendBufferBytes: Int = 4 << 20,
        exceedsKernelLimits: Bool = true,
        usesGSO: Bool = true,
        usesGRO: Bool = true
    ) {
        self.receiveBufferBytes = receiveBufferBytes
        self.sendBufferBytes = sendBufferBytes
        self.exceedsKernelLimits = exceedsKernelLimits
        self.usesGSO = usesGSO
        self.usesGRO = usesGRO
    }
}

/// A socket buffer that is smaller than requested.
package struct BufferShortfall: Hashable, Sendable {
    /// The sysctl that limits the buffer.
    package enum Setting: String, Hashable, Sendable {
        case receive = "net.core.rmem_max"
        case send = "net.core.wmem_max"
    }

    package let setting: Setting
    package let requestedBytes: Int
    package let grantedBytes: Int

    /// One sentence for a warning: the granted size and what to do.
    package var message: String {
        let name = setting == .receive ? "receive" : "send"
        return
            "The kernel limits the UDP \(name) buffer to \(grantedBytes) bytes; \(requestedBytes) were requested; "
            + "raise it with: sysctl -w \(setting.rawValue)=\(requestedBytes)"
    }
}

/// An open socket of a loop.
package struct SocketDescription: Hashable, Sendable {
    package let index: SocketIndex
    /// The bound address. When port 0 was requested, this has the port that the kernel chose.
    package let local: TransportAddress
    /// The size that the kernel granted.
    package let receiveBufferBytes: Int
    package let sendBufferBytes: Int
    /// Whether GSO was requested and the kernel supports it.
    package let usesGSO: Bool
    package let usesGRO: Bool
    /// The buffers that are smaller than requested; empty when there are none.
    package let shortfalls: [BufferShortfall]
}
