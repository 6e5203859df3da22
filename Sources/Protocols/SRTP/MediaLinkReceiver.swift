public import Wire

/// Why a datagram of a link between nodes was not opened.
public enum MediaLinkOpenError: Error, Hashable, Sendable {
    /// Its tag is wrong, or its phase none that may come.
    case authentication
    /// Its counter was received before.
    case replayed
    /// Its counter is more than the replay window below the newest.
    case tooOld
}

/// Opens the datagrams of one direction of a link between nodes. It follows the sender's phases: the present one, the one
/// before for what comes late, and the next one, whose first authentic datagram makes it the present one.
@safe
public struct MediaLinkReceiver: ~Copyable {
    private let schedule: MediaLinkKeySchedule
    private let engine: SRTPEngine
    private var previous: MediaLinkKey?
    private var current: MediaLinkKey
    /// Made before it is needed, so that a forged phase costs no derivation.
    private var next: MediaLinkKey?
    private var window = ReplayWindow<64>()

    /// The greatest counter that was opened; 0 before the first.
    public var newest: UInt64 { window.newest }
    /// The present phase.
    public var phase: UInt32 { current.phase }

    /// - Throws: ``SRTPError/failed`` when the library fails.
    public init(_ schedule: MediaLinkKeySchedule, engine: SRTPEngine) throws(SRTPError) {
        guard let current = unsafe schedule.makeKey(phase: 0, .opening, engine.multiBuffer) else { throw .failed }
        self.schedule = schedule
        self.engine = engine
        self.current = current
        next = unsafe schedule.makeKey(phase: 1, .opening, engine.multiBuffer)
    }

    deinit {
        previous?.destroy()
        current.destroy()
        next?.destroy()
    }

    /// Decrypts a datagram in place. When it throws, the contents are unspecified and nothing else has changed.
    /// - Parameters:
    ///   - datagram: the datagram at the start of a buffer.
    ///   - length: its bytes.
    ///   - header: as it was read from the datagram.
    /// - Returns: where the contents are.
    @inline(__always)
    public mutating func open(
        _ datagram: inout MutableRawSpan,
        length: Int,
        header: TransferEnvelope.Header
    ) throws(MediaLinkOpenError) -> Range<Int> {
        let end = length - TransferEnvelope.tagBytes
        guard end > TransferEnvelope.headerBytes, length <= datagram.byteCount else { throw .authentication }
        switch window.check(header.counter) {
        case .unseen: break
        case .replayed: throw .replayed
        case .tooOld: throw .tooOld
        }
        guard let key = key(of: header.phase) else { throw .authentication }
        let isAuthentic = unsafe datagram.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe key.open(start, length: end, counter: header.counter)
        }
        guard isAuthentic else { throw .authentication }
        if key.phase == next?.phase { advance() }
        window.insert(header.counter)
        return TransferEnvelope.headerBytes..<end
    }

    @inline(__always)
    private func key(of phase: UInt8) -> MediaLinkKey? {
        if UInt8(truncatingIfNeeded: current.phase) == phase { return current }
        if let previous, UInt8(truncatingIfNeeded: previous.phase) == phase { return previous }
        if let next, UInt8(truncatingIfNeeded: next.phase) == phase { return next }
        return nil
    }

    private mutating func advance() {
        guard let key = next else { return }
        previous?.destroy()
        previous = current
        current = key
        next = key.phase < .max ? unsafe schedule.makeKey(phase: key.phase + 1, .opening, engine.multiBuffer) : nil
    }
}
