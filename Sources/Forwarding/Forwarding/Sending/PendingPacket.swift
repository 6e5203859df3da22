import Base
import Wire

/// A packet that was received in this turn and waits to be sent on, lying in its stream's history.
@safe
struct PendingPacket {
    var description: PacketDescription
    /// The whole packet, in the history's memory, which stays as it is until the turn's packets were sent on.
    let bytes: UnsafeRawPointer
    let length: Int
    /// The stream that it is of; kept alive by its track.
    let stream: Unretained<ReceivedStream>
    let streamID: UInt64

    /// - Parameter bytes: the whole packet; must stay where it is as long as this is used.
    @inline(__always)
    init(
        description: PacketDescription,
        bytes: UnsafeRawPointer,
        length: Int,
        stream: Unretained<ReceivedStream>,
        streamID: UInt64
    ) {
        self.description = description
        unsafe self.bytes = bytes
        self.length = length
        self.stream = stream
        self.streamID = streamID
    }

    var span: RawSpan {
        @_lifetime(borrow self) get {
            let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: length)
            return unsafe _overrideLifetime(buffer.bytes, borrowing: self)
        }
    }
}

/// What all packets of one fan-out share.
struct SendTurn {
    let now: Instant
    /// The abs-send-time extension's 24 bits.
    let absoluteSendTime: UInt32
    /// The instant as ``SentPacket`` records it.
    let sentAtMicroseconds: UInt32

    /// - Parameter ntp: the wall clock at `now`.
    init(now: Instant, ntp: NTPTimestamp) {
        self.now = now
        absoluteSendTime = ntp.absoluteSendTime
        sentAtMicroseconds = SentPacketRing.microseconds(now)
    }
}
