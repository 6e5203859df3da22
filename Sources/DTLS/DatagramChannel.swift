internal import COpenSSL
internal import Wire

/// What one connection's BIO reads from and writes to, and what the library's callbacks have to tell us.
///
/// A write of the library is one datagram: during a handshake it collects records up to the MTU before it writes.
@safe
final class DatagramChannel {
    /// Datagrams and bytes kept for the owner to send. A flight is under ten datagrams even at the smallest MTU; what
    /// does not fit is lost like a datagram and sent again.
    private static let outputDatagramsMax = 64
    private static let outputBytesMax = 65_536

    /// The one record that the library reads next; empty when there is none.
    private var input: [UInt8] = []
    private var unprotectedRecords: UInt32 = 0
    private var output: [UInt8] = []
    private var outputLengths: [Int] = []
    /// The address of the library's own deadline, which lives as long as the connection; `nil` when this version does
    /// not share it.
    private var deadline: UnsafeMutableRawPointer?
    private static let isDeadlineShared = nagare_DTLS_deadline_is_shared() == 1

    /// Why our callbacks refused the peer.
    var refusal: DTLSFailure?
    /// The digests of which the peer's certificate must have one.
    let remoteFingerprints: [Fingerprint]
    /// After how many microseconds a flight that is being sent again will be due once more.
    var nextTimerMicroseconds: UInt32 = 0
    /// Longer than any handshake lasts.
    private static let neverMicroseconds: UInt32 = 3_600_000_000

    init(remoteFingerprints: [Fingerprint]) { self.remoteFingerprints = remoteFingerprints }

    var outputCount: Int { outputLengths.count }

    /// Sets the one record that the library reads next.
    ///
    /// Unprotected records get numbers of our own, in order of arrival. Their numbers are not authenticated, yet the
    /// library would move its replay window by them, and a single forged one with a high number would make it drop the
    /// rest of the peer's flight. Handshake messages have numbers of their own by which repeats are told.
    func setInput(_ record: RawSpan) {
        input.removeAll(keepingCapacity: true)
        unsafe record.withUnsafeBytes { unsafe input.append(contentsOf: $0) }
        guard input.count >= RecordHeader.byteCount, input[3] == 0, input[4] == 0 else { return }
        unprotectedRecords &+= 1
        input.store(bigEndian: 0, at: 5)
        input.store(bigEndian: UInt16(truncatingIfNeeded: unprotectedRecords >> 16), at: 7)
        input.store(bigEndian: UInt16(truncatingIfNeeded: unprotectedRecords), at: 9)
    }
    func clearInput() { input.removeAll(keepingCapacity: true) }

    /// Hands out every datagram waiting, in order, and forgets them.
    func drain(_ body: (RawSpan) -> Void) {
        let bytes = output
        let lengths = outputLengths
        output.removeAll(keepingCapacity: true)
        outputLengths.removeAll(keepingCapacity: true)
        var start = 0
        for length in lengths {
            let end = start + length
            unsafe bytes.withUnsafeBytes { all in
                let datagram = unsafe UnsafeRawBufferPointer(rebasing: all[start..<end])
                body(unsafe datagram.bytes)
            }
            start = end
        }
    }

    /// Makes the library's timer, if it runs, due now. Without a shared deadline it becomes due by the real clock.
    func expireTimer() {
        guard let deadline = unsafe deadline else { return }
        unsafe nagare_DTLS_expire(deadline)
    }
    /// What to set the library's timer to, in microseconds.
    ///
    /// One whose deadline is shared never fires by itself: ``expireTimer()`` makes it, by the owner's clock. Another
    /// follows the real clock, so it gets the interval that the owner goes by.
    func timerMicroseconds(isFirst: Bool) -> UInt32 {
        if Self.isDeadlineShared { return Self.neverMicroseconds }
        let first = UInt32(clamping: DTLSConnection.retransmitIntervalMin.nanoseconds / 1_000)
        return isFirst ? first : nextTimerMicroseconds
    }

    fileprivate func read(_ buffer: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        let length = min(count, input.count)
        guard length > 0 else { return 0 }
        unsafe input.withUnsafeBytes { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: from, byteCount: length)
        }
        // As with a socket, what does not fit in the reader's buffer is lost with its datagram.
        input.removeAll(keepingCapacity: true)
        return length
    }

    fileprivate func write(_ bytes: UnsafePointer<CChar>, _ count: Int) {
        guard count > 0, outputLengths.count < Self.outputDatagramsMax,
            output.count + count <= Self.outputBytesMax
        else { return }
        unsafe output.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
        outputLengths.append(count)
    }

    fileprivate func control(_ command: Int32, _ pointer: UnsafeMutableRawPointer?) -> Int {
        switch command {
        case BIO_CTRL_FLUSH: return 1
        case BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT:
            if Self.isDeadlineShared { unsafe deadline = pointer }
            return 1
        // The MTU is of DTLS bytes, so no header is added to it; every other control is unknown.
        default: return 0
        }
    }
}

/// The BIO type whose data pointer is a ``DatagramChannel``, unretained: the connection owns both.
@safe
enum DatagramBIO {
    @safe
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = makeMethod()

    /// A BIO on `channel`, which must outlive it.
    static func make(_ channel: DatagramChannel) -> OpaquePointer? {
        guard let method = unsafe method.pointer, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(channel).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static func makeMethod() -> Method {
        // The index names the type among others; the high bits say that it is a source and a sink of bytes.
        let kind = BIO_get_new_index() | 0x0400
        guard let method = unsafe BIO_meth_new(kind, "datagram channel") else { return unsafe Method(pointer: nil) }
        _ = unsafe BIO_meth_set_read(method) { bio, buffer, count in
            guard let bio = unsafe bio, let buffer = unsafe buffer, let channel = unsafe channel(behind: bio) else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            let length = unsafe channel.read(buffer, Int(count))
            if length == 0 {
                unsafe nagare_BIO_set_retry_read(bio)
                return -1
            }
            return Int32(length)
        }
        _ = unsafe BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio = unsafe bio, let bytes = unsafe bytes, let channel = unsafe channel(behind: bio) else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            unsafe channel.write(bytes, Int(count))
            return count
        }
        _ = unsafe BIO_meth_set_ctrl(method) { bio, command, _, pointer in
            guard let bio = unsafe bio, let channel = unsafe channel(behind: bio) else { return 0 }
            return unsafe channel.control(command, pointer)
        }
        return unsafe Method(pointer: method)
    }
}

/// The channel behind a BIO of ours.
private func channel(behind bio: OpaquePointer) -> DatagramChannel? {
    guard let data = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<DatagramChannel>.fromOpaque(data).takeUnretainedValue()
}
