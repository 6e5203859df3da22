import Wire

/// Whether a path carries ECN marks: packets leave as ECT(1), and reports say with which field they arrive (RFC 9331 §4.1).
///
/// A path that clears or changes the field gets no more marked packets, and its marks do not count (RFC 8888 §3.1 has the field;
/// the test is that of RFC 9000 §13.4.2 with a majority instead of all packets, as some of them leave before marking begins).
struct ECNPath: Sendable {
    enum State: Equatable, Sendable {
        /// The peer reports no ECN fields.
        case off
        case testing
        /// The marks arrive.
        case confirmed
        case failed
    }

    /// Arrivals that one test takes: 0.32 s of audio alone.
    private static let testPackets = 16

    private(set) var state: State
    private var arrived = 0
    private var changed = 0

    init(isOn: Bool) { state = isOn ? .testing : .off }

    /// Packets are to leave as ECT(1).
    var isMarking: Bool { state == .testing || state == .confirmed }

    /// Takes a received packet.
    mutating func add(_ packet: PacketResult) {
        guard isMarking, let ecn = packet.ecn else { return }
        arrived += 1
        if ecn == .notCapable || ecn == .capable0 { changed += 1 }
        guard arrived == Self.testPackets else { return }
        state = 2 * changed > arrived ? .failed : .confirmed
        (arrived, changed) = (0, 0)
    }

    /// The path marks everything, whatever is sent.
    mutating func fail() { if isMarking { state = .failed } }
}
