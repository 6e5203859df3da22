/// A transform's receiving direction as a plain handle: a pointer, no reference, so that using it retains nothing and
/// dispatches through nothing. Valid as long as the transform that it came from lives.
@safe
public struct SRTPReceiver: BitwiseCopyable {
    private let context: UnsafeMutablePointer<ReceivingContext>

    init(_ context: UnsafeMutablePointer<ReceivingContext>) { unsafe self.context = context }

    /// See ``SRTPTransform/unprotectRTP(_:length:)``.
    @_lifetime(packet: copy packet)
    public func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe context.pointee.unprotectRTP(&packet, length: length)
    }
}
