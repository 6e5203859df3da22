import Wire

/// One DTLS record as it lies in a datagram (RFC 6347 §4.1).
struct RecordHeader {
    static let byteCount = 13

    enum ContentType: UInt8 {
        case changeCipherSpec = 20
        case alert, handshake, applicationData
    }
    let contentType: ContentType
    let epoch: UInt16
    /// Where the whole record is in the datagram.
    let range: Range<Int>
    /// Where its fragment is in the datagram.
    var fragment: Range<Int> { range.lowerBound + Self.byteCount..<range.upperBound }

    /// The longest fragment: 2^14 bytes of plaintext and what a cipher may add (RFC 6347 §4.1).
    private static let fragmentBytesMax = 16_384 + 2_048

    /// The record at `offset`; `nil` where no well-formed DTLS 1.0 or 1.2 record starts, the end included.
    ///
    /// A ClientHello is usually in a record of version 1.0 whatever it offers (RFC 6347 §4.1); what is protected has
    /// the version that was agreed on.
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

/// Decides which records the library gets to see.
///
/// Before the first cipher is active nothing is authenticated, and the library ends the handshake over an unprotected
/// record that makes no sense. RFC 6347 §4.1.2.7 wants such records dropped, so those that no honest peer sends at
/// this point are dropped here.
enum RecordFilter {
    /// What to do with a record.
    enum Verdict: Equatable {
        case accept
        case drop
        /// An unprotected fatal alert: perhaps the peer's refusal, perhaps forged.
        case unprotectedFatalAlert
    }

    /// The longest handshake message read, and so the most that the library sets aside for one.
    static let messageBytesMax = DTLSCertificate.chainBytesMax
    /// Messages of one handshake are numbered from 0 (RFC 6347 §4.2.2) and are under ten; renegotiation is refused.
    private static let messageSequenceMax = 15
    /// A protected Finished or alert is under 80 bytes in every suite that we have.
    private static let protectedFragmentBytesMax = 256

    /// - Parameter isEstablished: whether the handshake is over.
    static func judge(
        _ record: RecordHeader,
        in datagram: RawSpan,
        role: DTLSRole,
        isEstablished: Bool
    ) -> Verdict {
        switch (record.epoch, record.contentType) {
        case (0, _) where isEstablished: .drop
        case (0, .handshake):
            isPlausible(handshake: datagram, record.fragment, role: role) ? .accept : .drop
        case (0, .changeCipherSpec):
            record.fragment.count == 1 && datagram.byte(at: record.fragment.lowerBound) == 1 ? .accept : .drop
        case (0, .alert):
            record.fragment.count == 2 && datagram.byte(at: record.fragment.lowerBound) == 2
                ? .unprotectedFatalAlert : .drop
        case (1, .handshake), (1, .alert):
            record.fragment.count <= protectedFragmentBytesMax ? .accept : .drop
        // Application data would be a data channel, which is not offered; there is no third epoch.
        default: .drop
        }
    }

    /// Whether `range` holds whole, consistent handshake fragments of kinds that the peer may send (RFC 6347 §4.2.2).
    private static func isPlausible(handshake datagram: RawSpan, _ range: Range<Int>, role: DTLSRole) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            guard range.upperBound - offset >= 12 else { return false }
            let kind = datagram.byte(at: offset)
            let length = Int(datagram.bigEndianUInt24(at: offset + 1))
            let sequence = Int(datagram.bigEndianUInt16(at: offset + 4))
            let fragmentOffset = Int(datagram.bigEndianUInt24(at: offset + 6))
            let fragmentLength = Int(datagram.bigEndianUInt24(at: offset + 9))
            guard isExpected(kind, from: role), length <= messageBytesMax, sequence <= messageSequenceMax,
                fragmentOffset + fragmentLength <= length,
                fragmentLength > 0 || length == 0,
                offset + 12 + fragmentLength <= range.upperBound
            else { return false }
            // Only the first message of either side may be its hello, and the hello is the first or, after a cookie
            // request, the second.
            if kind == 1 || kind == 2 || kind == 3, sequence > 1 { return false }
            offset += 12 + fragmentLength
        }
        return true
    }

    /// The unprotected messages that the peer of a client or of a server sends (RFC 5246 §7.4, RFC 6347 §4.3.2).
    private static func isExpected(_ kind: UInt8, from role: DTLSRole) -> Bool {
        switch role {
        // ServerHello, HelloVerifyRequest, NewSessionTicket, Certificate, ServerKeyExchange, CertificateRequest,
        // ServerHelloDone, CertificateStatus.
        case .client: [2, 3, 4, 11, 12, 13, 14, 22].contains(kind)
        // ClientHello, Certificate, CertificateVerify, ClientKeyExchange.
        case .server: [1, 11, 15, 16].contains(kind)
        }
    }
}
