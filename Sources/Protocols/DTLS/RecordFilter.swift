import Base
import Wire

/// The header and the position of one DTLS record in a datagram (RFC 6347 §4.1).
struct RecordHeader {
    static let byteCount = 13

    enum ContentType: UInt8 {
        case changeCipherSpec = 20
        case alert, handshake, applicationData
    }
    let contentType: ContentType
    let epoch: UInt16
    /// The whole record in the datagram.
    let range: Range<Int>
    /// The record's fragment in the datagram.
    var fragment: Range<Int> { range.lowerBound + Self.byteCount..<range.upperBound }

    /// The longest fragment: 2^14 bytes of plaintext and the most that a cipher may add (RFC 6347 §4.1).
    private static let fragmentBytesMax = 16_384 + 2_048

    /// The record at `offset`; `nil` when no well-formed DTLS 1.0 or 1.2 record starts there.
    ///
    /// A ClientHello is usually in a record of version 1.0, whatever it offers (RFC 6347 §4.1). Protected records have
    /// the negotiated version.
    init?(_ datagram: RawSpan, at offset: Int) {
        guard offset >= 0, datagram.byteCount - offset >= Self.byteCount,
            let contentType = ContentType(rawValue: datagram.byte(at: offset))
        else { return nil }
        let version = datagram.bigEndianUInt16(at: offset + 1)
        let epoch = datagram.bigEndianUInt16(at: offset + 3)
        guard version == 0xFEFD || (version == 0xFEFF && epoch == 0) else { return nil }
        let length = Int(datagram.bigEndianUInt16(at: offset + 11))
        let end = offset + Self.byteCount + length
        guard length > 0, length <= Self.fragmentBytesMax, end <= datagram.byteCount else { return nil }
        self.contentType = contentType
        self.epoch = epoch
        range = offset..<end
    }
}

/// Decides which records are passed to OpenSSL.
///
/// Before encryption starts nothing is authenticated, and OpenSSL ends the handshake on an invalid unprotected record.
/// RFC 6347 §4.1.2.7 requires such records to be dropped, so records that no honest peer sends in the current stage are
/// dropped here.
enum RecordFilter {
    /// What happens to a record.
    enum Verdict: Equatable {
        case accept
        case drop
        /// An unprotected fatal alert, from the peer or forged.
        case unprotectedFatalAlert
    }

    /// The progress of the handshake.
    enum Stage {
        /// A server that has answered no ClientHello yet.
        case awaitingHello
        case handshaking, established
    }

    /// The most application data of one record, as much as fits into an Ethernet frame.
    static let dataBytesMax = 1_500
    /// The longest handshake message that is accepted, and so the most that OpenSSL buffers for one.
    static let messageBytesMax = DTLSCertificate.chainBytesMax
    /// Finished, the only protected handshake message: header and verify_data (RFC 5246 §7.4.9).
    private static let finishedBytes = 12 + 12
    private static let alertBytes = 2

    /// - Parameters:
    ///   - overheadBytes: the bytes that the negotiated cipher suite adds to a record; `nil` before the negotiation.
    ///   - acceptsData: whether application data was negotiated.
    static func judge(
        _ record: RecordHeader,
        in datagram: RawSpan,
        role: DTLSRole,
        stage: Stage,
        overheadBytes: Int?,
        acceptsData: Bool = false
    ) -> Verdict {
        switch (record.epoch, record.contentType) {
        case (0, _) where stage == .established: .drop
        case (0, .handshake):
            isPlausible(handshake: datagram, record.fragment, role: role, stage: stage) ? .accept : .drop
        // Nothing else is sent before the ClientHello is answered.
        case (0, .changeCipherSpec) where stage == .awaitingHello: .drop
        case (1, _) where stage == .awaitingHello: .drop
        case (0, .changeCipherSpec):
            record.fragment.count == 1 && datagram.byte(at: record.fragment.lowerBound) == 1 ? .accept : .drop
        case (0, .alert):
            record.fragment.count == 2 && datagram.byte(at: record.fragment.lowerBound) == 2
                ? .unprotectedFatalAlert : .drop
        // OpenSSL treats a record that is shorter than its cipher's overhead as the end of the connection.
        case (1, .handshake): record.fragment.count - finishedBytes == overheadBytes ? .accept : .drop
        case (1, .alert): record.fragment.count - alertBytes == overheadBytes ? .accept : .drop
        // Application data belongs to data channels. It follows the handshake.
        case (1, .applicationData) where acceptsData && stage == .established:
            overheadBytes.map { (1...dataBytesMax).contains(record.fragment.count - $0) } == true ? .accept : .drop
        // There is no third epoch.
        default: .drop
        }
    }

    /// Whether `range` holds complete, consistent handshake fragments of types that the peer may send (RFC 6347
    /// §4.2.2).
    private static func isPlausible(
        handshake datagram: RawSpan,
        _ range: Range<Int>,
        role: DTLSRole,
        stage: Stage
    ) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            guard range.upperBound - offset >= 12 else { return false }
            let kind = datagram.byte(at: offset)
            let length = Int(datagram.bigEndianUInt24(at: offset + 1))
            let sequence = Int(datagram.bigEndianUInt16(at: offset + 4))
            let fragmentOffset = Int(datagram.bigEndianUInt24(at: offset + 6))
            let fragmentLength = Int(datagram.bigEndianUInt24(at: offset + 9))
            guard isExpected(kind, sequence, role: role, stage: stage), length <= messageBytesMax,
                fragmentOffset + fragmentLength <= length,
                fragmentLength > 0 || length == 0,
                offset + 12 + fragmentLength <= range.upperBound
            else { return false }
            offset += 12 + fragmentLength
        }
        return true
    }

    /// Whether the peer of an endpoint with `role` sends this unprotected message with this message_seq (RFC 5246 §7.4,
    /// RFC 6347 §4.3.2).
    private static func isExpected(_ kind: UInt8, _ sequence: Int, role: DTLSRole, stage: Stage) -> Bool {
        switch (role, kind) {
        // ServerHello comes first, or after HelloVerifyRequest, which always comes first.
        case (.client, 2): sequence <= 1
        case (.client, 3): sequence == 0
        // Certificate, ServerKeyExchange, CertificateRequest, ServerHelloDone, in this order. Tickets and certificate
        // status are not requested.
        case (.client, 11): (1...2).contains(sequence)
        case (.client, 12): (2...3).contains(sequence)
        case (.client, 13): (3...4).contains(sequence)
        case (.client, 14): (3...5).contains(sequence)
        // The client's messages have fixed numbers, because no HelloVerifyRequest is sent and a certificate is
        // required: ClientHello, Certificate, ClientKeyExchange, CertificateVerify.
        case (.server, 1): sequence == 0
        case (.server, 11): sequence == 1 && stage == .handshaking
        case (.server, 16): sequence == 2 && stage == .handshaking
        case (.server, 15): sequence == 3 && stage == .handshaking
        default: false
        }
    }
}
