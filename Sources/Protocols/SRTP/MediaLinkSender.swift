public import Base
public import Wire

/// Seals the datagrams of one direction of a link between nodes (``TransferEnvelope``).
///
/// No nonce is used twice: every datagram has the next counter, and a phase of the keys never comes back. A new phase
/// begins after ``phaseLife`` or ``phaseDatagramsMax`` datagrams, as soon as the receiver got a datagram of the present
/// one, because it follows one step at a time.
@safe
public struct MediaLinkSender: ~Copyable {
    /// Datagrams of one phase after which the next one begins.
    public static let phaseDatagramsMax: UInt64 = 1 << 32
    /// The age of a phase at which the next one begins.
    public static let phaseLife = Interval.seconds(3_600)

    private let schedule: MediaLinkKeySchedule
    private let engine: SRTPEngine
    private let datagramsMax: UInt64
    private var key: MediaLinkKey
    private var phaseBegan: Instant
    /// The counter of the phase's first datagram.
    private var phaseFirst: UInt64
    /// The counter of the newest datagram, or the one to count from before the first.
    public private(set) var counter: UInt64

    /// The present phase.
    public var phase: UInt32 { key.phase }

    /// - Parameters:
    ///   - counter: the newest counter of the sender before this one on the same link, else 0.
    ///   - datagramsMax: ``phaseDatagramsMax`` unless for a test.
    /// - Throws: ``SRTPError/failed`` when the library fails.
    public init(
        _ schedule: MediaLinkKeySchedule,
        engine: SRTPEngine,
        after counter: UInt64 = 0,
        at now: Instant,
        datagramsMax: UInt64 = MediaLinkSender.phaseDatagramsMax
    ) throws(SRTPError) {
        guard let key = unsafe schedule.makeKey(phase: 0, .sealing, engine.multiBuffer) else { throw .failed }
        self.schedule = schedule
        self.engine = engine
        self.datagramsMax = datagramsMax
        self.key = key
        phaseBegan = now
        self.counter = counter
        phaseFirst = counter + 1
    }

    deinit { key.destroy() }

    /// Writes the header of the next datagram, encrypts the contents behind it in place, and appends the tag.
    /// - Parameters:
    ///   - datagram: room for `length` bytes and the tag.
    ///   - link: the number that the receiver gave the link.
    ///   - length: bytes of header and contents.
    /// - Returns: bytes of the datagram; `nil` when the library fails, or when twice the datagrams of a phase were sent
    ///   and the receiver confirmed none.
    @unsafe
    @inline(__always)
    public mutating func seal(
        _ datagram: UnsafeMutableRawPointer,
        _ kind: TransferEnvelope.Kind,
        link: UInt16,
        length: Int
    ) -> Int? {
        guard counter &- phaseFirst &+ 1 < datagramsMax &* 2 else { return nil }
        counter &+= 1
        let header = TransferEnvelope.Header(
            kind: kind,
            phase: UInt8(truncatingIfNeeded: key.phase),
            link: link,
            counter: counter
        )
        let place = unsafe UnsafeMutableRawBufferPointer(start: datagram, count: TransferEnvelope.headerBytes)
        var span = unsafe place.mutableBytes
        header.write(into: &span)
        guard unsafe key.seal(datagram, length: length, counter: counter) else { return nil }
        return length + TransferEnvelope.tagBytes
    }

    /// The receiver got the datagram with the counter `newest`, as it says; begins the next phase when that is due.
    public mutating func confirm(_ newest: UInt64, at now: Instant) {
        guard newest >= phaseFirst, newest <= counter,
            now - phaseBegan >= Self.phaseLife || counter - phaseFirst >= datagramsMax, key.phase < .max,
            let next = unsafe schedule.makeKey(phase: key.phase + 1, .sealing, engine.multiBuffer)
        else { return }
        key.destroy()
        key = next
        phaseBegan = now
        phaseFirst = counter + 1
    }
}
