/// A handle of a transform's receiving direction for the hot path, without reference counting and dynamic dispatch.
/// Valid as long as its transform lives.
@safe
public struct SRTPReceiver: BitwiseCopyable {
    private let context: UnsafeMutablePointer<ReceivingContext>

    init(_ context: UnsafeMutablePointer<ReceivingContext>) { unsafe self.context = context }

    /// See ``SRTPTransform/unprotectRTP(_:length:)``.
    @_lifetime(packet: copy packet)
    public func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe context.pointee.unprotectRTP(&packet, length: length)
    }

    /// See ``SRTPTransform/unprotectRTCP(_:length:)``.
    @_lifetime(packet: copy packet)
    public func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe context.pointee.unprotectRTCP(&packet, length: length)
    }
}
