public import Wire

/// How a UDP socket is to be opened.
public struct SocketOptions: Hashable, Sendable {
    /// The kernel's receive buffer. The default of 4 MiB holds some 20 ms of 1 Gbit/s of video packets, longer than a
    /// loop turn under load.
    public var receiveBufferBytes: Int
    /// The kernel's send buffer.
    public var sendBufferBytes: Int
    /// Whether to try to exceed the kernel's limits, which succeeds with CAP_NET_ADMIN.
    public var exceedsKernelLimits: Bool
    /// Whether several datagrams to one address go to the kernel as one message (UDP GSO, Linux 4.18).
    public var usesGSO: Bool
    /// Whether the kernel may hand over several datagrams from one address as one message (UDP GRO, Linux 5.0).
    public var usesGRO: Bool

    public init(
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

/// A socket buffer that the kernel made smaller than was asked for.
public struct BufferShortfall: Hashable, Sendable {
    /// The kernel's setting that caps the buffer.
    public enum Setting: String, Hashable, Sendable {
        case receive = "net.core.rmem_max"
        case send = "net.core.wmem_max"
    }

    public let setting: Setting
    public let requestedBytes: Int
    public let grantedBytes: Int

    /// One sentence for a warning: what was granted and what to do.
    public var sentence: String {
        let name = setting == .receive ? "receive" : "send"
        return
            "The kernel limits the UDP \(name) buffer to \(grantedBytes) bytes where \(requestedBytes) were asked for; "
            + "raise it with: sysctl -w \(setting.rawValue)=\(requestedBytes)"
    }
}

/// A socket of a loop as it was opened.
public struct SocketDescription: Hashable, Sendable {
    public let index: SocketIndex
    /// The bound address; its port is the kernel's choice where port 0 was asked for.
    public let local: TransportAddress
    /// What the kernel granted.
    public let receiveBufferBytes: Int
    public let sendBufferBytes: Int
    /// Whether GSO and GRO were asked for and the kernel knows them.
    public let usesGSO: Bool
    public let usesGRO: Bool
    /// Buffers that are smaller than asked for; empty when all is well.
    public let shortfalls: [BufferShortfall]
}
