internal import CDatagram
import Wire

/// Reads messages with `recvmmsg` into slots that the sockets of a loop share.
@safe
final class DatagramReader {
    /// The most slots: the messages of one call.
    static let slotsMax = Int(NAGARE_BATCH_MAX)

    let slots: Int
    private let handle: OpaquePointer
    private let messages: UnsafePointer<nagare_received>

    init(slots: Int, slotBytes: Int) {
        precondition((1...Self.slotsMax).contains(slots))
        guard let made = unsafe nagare_receiver_create(Int32(slots), slotBytes) else {
            preconditionFailure("no memory to read datagrams into")
        }
        self.slots = slots
        unsafe handle = made
        unsafe messages = nagare_receiver_messages(made)
    }

    deinit { unsafe nagare_receiver_destroy(handle) }

    /// Reads the messages that the socket has received.
    /// - Returns: how many messages were read, or the negative errno.
    func receive(from descriptor: Int32) -> Int { unsafe Int(nagare_receive(handle, descriptor)) }

    /// The message at `index` of the last read.
    @inline(__always)
    func message(at index: Int) -> ReceivedMessage {
        precondition(index >= 0 && index < slots)
        let message = unsafe messages + index
        return unsafe ReceivedMessage(
            bytes: message.pointee.bytes,
            length: Int(message.pointee.length),
            segmentBytes: Int(message.pointee.segment_bytes),
            isTruncated: message.pointee.truncated != 0,
            remote: TransportAddress(
                ip: IPAddress(high: message.pointee.high, low: message.pointee.low),
                port: message.pointee.port
            )
        )
    }
}

/// One received message: a datagram, or several that the kernel coalesced.
@unsafe
struct ReceivedMessage {
    let bytes: UnsafeMutableRawPointer
    let length: Int
    /// The length of each datagram but the last; a value outside 1..<`length` means that there is only one.
    let segmentBytes: Int
    /// Whether the message was longer than its slot (MSG_TRUNC).
    let isTruncated: Bool
    let remote: TransportAddress
}
