import Base
internal import COpenSSL
internal import OpenSSLBuffers
internal import Wire

/// The input and output of one connection's BIO, and the state that OpenSSL's callbacks share with the connection.
///
/// One BIO write is one datagram: OpenSSL collects the records of a flight up to the MTU.
@safe
final class DatagramBuffer: ConnectionBuffer {
    /// The most datagrams and bytes of output. A flight has fewer than ten datagrams even at the smallest MTU. What
    /// does not fit is dropped and retransmitted later.
    private static let outputDatagramsMax = 64
    private static let outputBytesMax = 65_536

    /// The record that OpenSSL reads next; empty when there is none.
    ///
    /// This and the output are accessed in one step at a time, several times for each record, so accesses are not checked.
    @exclusivity(unchecked) private var input: [UInt8] = []
    private var unprotectedRecords: UInt32 = 0
    @exclusivity(unchecked) private var output: [UInt8] = []
    @exclusivity(unchecked) private var outputLengths: [Int] = []
    /// The address of OpenSSL's own deadline, valid as long as the connection; `nil` when this version does not expose
    /// it.
    private var deadline: UnsafeMutableRawPointer?
    private static let isDeadlineShared = nagare_DTLS_deadline_is_shared() == 1

    /// Why a callback refused the peer.
    var refusal: DTLSFailure?
    /// The digests that the peer's certificate is verified against.
    let remoteFingerprints: [Fingerprint]
    /// The delay of the next retransmission in microseconds.
    var nextTimerMicroseconds: UInt32 = 0
    /// One hour, longer than any handshake.
    private static let neverMicroseconds: UInt32 = 3_600_000_000

    init(remoteFingerprints: [Fingerprint]) { self.remoteFingerprints = remoteFingerprints }

    var outputCount: Int { unsafe outputLengths.count }
    /// Whether OpenSSL has not read the record yet.
    var hasInput: Bool { unsafe !input.isEmpty }

    /// Sets the record that OpenSSL reads next.
    ///
    /// Unprotected records are renumbered in order of arrival. Their sequence numbers are not authenticated, but
    /// OpenSSL moves its replay window by them: one forged record with a high number would make it drop the rest of the
    /// peer's flight. Duplicates are still detected by the message_seq of the handshake messages.
    func setInput(_ record: RawSpan) {
        unsafe input.removeAll(keepingCapacity: true)
        unsafe record.withUnsafeBytes { unsafe input.append(contentsOf: $0) }
        guard unsafe input.count >= RecordHeader.byteCount, unsafe input[3] == 0, unsafe input[4] == 0 else { return }
        unprotectedRecords &+= 1
        unsafe input.store(bigEndian: 0, at: 5)
        unsafe input.store(bigEndian: UInt16(truncatingIfNeeded: unprotectedRecords >> 16), at: 7)
        unsafe input.store(bigEndian: UInt16(truncatingIfNeeded: unprotectedRecords), at: 9)
    }
    func clearInput() {
        if hasInput { unsafe input.removeAll(keepingCapacity: true) }
    }

    /// Passes every datagram of the output to `body`, in order, and empties the output.
    func drain(_ body: (RawSpan) -> Void) {
        guard outputCount > 0 else { return }
        // Taken out, so that `body` may add datagrams, and put back for its memory.
        var bytes: [UInt8] = []
        var lengths: [Int] = []
        unsafe swap(&bytes, &output)
        unsafe swap(&lengths, &outputLengths)
        var start = 0
        for length in lengths {
            body(unsafe bytes.span.bytes.extracting(start..<start + length))
            start += length
        }
        guard outputCount == 0 else { return }
        bytes.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        unsafe swap(&bytes, &output)
        unsafe swap(&lengths, &outputLengths)
    }

    /// Makes OpenSSL's timer due now, if it runs. Without a shared deadline the timer follows the real clock.
    func expireTimer() {
        guard let deadline = unsafe deadline else { return }
        unsafe nagare_DTLS_expire(deadline)
    }
    /// The value for OpenSSL's timer, in microseconds.
    ///
    /// With a shared deadline the timer never expires by itself: ``expireTimer()`` expires it by the caller's clock.
    /// Otherwise it follows the real clock and gets the caller's interval.
    func timerMicroseconds(isFirst: Bool) -> UInt32 {
        if Self.isDeadlineShared { return Self.neverMicroseconds }
        let first = UInt32(clamping: DTLSConnection.retransmitIntervalMin.nanoseconds / 1_000)
        return isFirst ? first : nextTimerMicroseconds
    }

    override func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let length = unsafe min(target.count, input.count)
        guard length > 0 else { return 0 }
        unsafe input.withUnsafeBytes { unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<length])) }
        // As with a socket, the bytes that do not fit in the caller's buffer are lost.
        unsafe input.removeAll(keepingCapacity: true)
        return length
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // As with a socket, OpenSSL is not told of a datagram that is dropped.
        guard bytes.count > 0, outputCount < Self.outputDatagramsMax,
            unsafe output.count + bytes.count <= Self.outputBytesMax
        else { return true }
        unsafe output.append(contentsOf: bytes)
        unsafe outputLengths.append(bytes.count)
        return true
    }

    override func control(_ command: Int32, _ pointer: UnsafeMutableRawPointer?) -> Int {
        // 0 is the overhead of lower layers too, because the MTU counts DTLS bytes only.
        guard command == BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT else { return 0 }
        if Self.isDeadlineShared { unsafe deadline = pointer }
        return 1
    }
}
