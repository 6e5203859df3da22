/// Read-only view of one STUN message (RFC 8489 §5). It cannot outlive the datagram.
///
/// The bytes are untrusted until `hasValidIntegrity` says otherwise: reading an attribute does not check who sent it.
/// Of an attribute that occurs twice the first counts; what follows MESSAGE-INTEGRITY, FINGERPRINT excepted, is
/// ignored (RFC 8489 §14.5).
public struct STUNMessageView: ~Escapable {
    /// More than any ICE implementation sends; each costs a step of the walk.
    public static let attributesMax = 64

    public let bytes: RawSpan
    public let messageClass: STUNMessageClass
    public let method: STUNMethod
    public let transactionID: STUNTransactionID
    private let index: STUNAttributeIndex

    /// Whether a datagram is STUN rather than DTLS or SRTP: a first byte of 0…3 (RFC 7983 §7) and the magic cookie
    /// (RFC 8489 §5). Says nothing about the rest of it. Methods above 0xFF, of which none is assigned, do not pass.
    public static func isSTUN(_ bytes: RawSpan) -> Bool {
        bytes.byteCount >= STUNFormat.headerBytes && PacketProtocol(firstByte: bytes.byte(at: 0)) == .stun
            && bytes.bigEndianUInt32(at: 4) == STUNFormat.magicCookie
    }

    /// Validates the header and every attribute's length once, so that the accessors cannot fail.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) throws(STUNParseError) {
        guard bytes.byteCount >= STUNFormat.headerBytes else {
            throw .truncated(needed: STUNFormat.headerBytes, available: bytes.byteCount)
        }
        guard Self.isSTUN(bytes) else { throw .notSTUN }
        let length = Int(bytes.bigEndianUInt16(at: 2))
        guard length % 4 == 0 else { throw .length }
        guard bytes.byteCount >= STUNFormat.headerBytes + length else {
            throw .truncated(needed: STUNFormat.headerBytes + length, available: bytes.byteCount)
        }
        guard bytes.byteCount == STUNFormat.headerBytes + length else { throw .length }
        index = try STUNAttributeIndex(bytes)
        self.bytes = bytes
        // The class's two bits sit among the method's twelve: M11…M7 C1 M6…M4 C0 M3…M0.
        let type = bytes.bigEndianUInt16(at: 0)
        switch (type >> 8 & 1, type >> 4 & 1) {
        case (0, 0): messageClass = .request
        case (0, _): messageClass = .indication
        case (_, 0): messageClass = .success
        default: messageClass = .error
        }
        method = STUNMethod(wire: type & 0x0F | type >> 1 & 0x70 | type >> 2 & 0xF80)
        transactionID = STUNTransactionID(high: bytes.bigEndianUInt32(at: 8), low: bytes.bigEndianUInt64(at: 12))
    }

    /// Where USERNAME's value is.
    public var usernameRange: Range<Int>? { index.username }
    /// USERNAME; `nil` when absent or not UTF-8.
    public var username: String? { text(index.username) }
    /// REALM; `nil` when absent or not UTF-8.
    public var realm: String? { text(index.realm) }
    /// NONCE; `nil` when absent or not UTF-8.
    public var nonce: String? { text(index.nonce) }
    /// SOFTWARE; `nil` when absent or not UTF-8.
    public var software: String? { text(index.software) }

    /// PRIORITY (RFC 8445 §7.1.1).
    public var priority: UInt32? { index.priority.map { bytes.bigEndianUInt32(at: $0.lowerBound) } }
    /// Whether USE-CANDIDATE is there: the controlling side nominates this pair (RFC 8445 §7.1.2).
    public var useCandidate: Bool { index.useCandidate }
    /// ICE-CONTROLLING's tie-breaker.
    public var iceControlling: UInt64? { index.controlling.map { bytes.bigEndianUInt64(at: $0.lowerBound) } }
    /// ICE-CONTROLLED's tie-breaker.
    public var iceControlled: UInt64? { index.controlled.map { bytes.bigEndianUInt64(at: $0.lowerBound) } }
    /// ERROR-CODE's number, 300…699.
    public var errorCode: Int? {
        index.errorCode.map {
            Int(bytes.byte(at: $0.lowerBound + 2) & 7) * 100 + Int(bytes.byte(at: $0.lowerBound + 3))
        }
    }
    /// ERROR-CODE's reason phrase.
    public var errorReason: String? { text(index.errorCode.map { $0.lowerBound + 4..<$0.upperBound }) }

    /// XOR-MAPPED-ADDRESS: where the other side saw the request come from (RFC 8489 §14.2).
    public var xorMappedAddress: TransportAddress? {
        guard let range = index.xorMappedAddress else { return nil }
        let start = range.lowerBound
        let port = bytes.bigEndianUInt16(at: start + 2) ^ UInt16(STUNFormat.magicCookie >> 16)
        let first = bytes.bigEndianUInt32(at: start + 4) ^ STUNFormat.magicCookie
        if range.count == 8 { return TransportAddress(ip: IPAddress(v4: first), port: port) }
        let second = bytes.bigEndianUInt32(at: start + 8) ^ transactionID.high
        let low = bytes.bigEndianUInt64(at: start + 12) ^ transactionID.low
        let ip = IPAddress(high: UInt64(first) << 32 | UInt64(second), low: low)
        return TransportAddress(ip: ip, port: port)
    }

    /// How many comprehension-required attributes are not understood here; they call for a 420 (RFC 8489 §6.3.1).
    public var unknownAttributeCount: Int { index.unknownCount }
    /// The types of those, the first `STUNAttributeIndex.unknownMax` of them.
    public var unknownAttributes: [STUNAttributeType] {
        (0..<min(index.unknownCount, STUNAttributeIndex.unknownMax)).map {
            STUNAttributeType(rawValue: index.unknown[$0])
        }
    }

    /// Whether MESSAGE-INTEGRITY is there, valid or not.
    public var hasIntegrity: Bool { index.integrity != nil }
    /// Whether FINGERPRINT is there, valid or not.
    public var hasFingerprint: Bool { index.fingerprint != nil }

    /// Whether MESSAGE-INTEGRITY is there and was made with `key` (RFC 8489 §9.1.3). Takes as long for a wrong code as
    /// for a right one.
    public func hasValidIntegrity(key: RawSpan) -> Bool {
        guard let range = index.integrity else { return false }
        let offset = range.lowerBound - STUNFormat.attributeHeaderBytes
        let expected = STUNFormat.integrity(of: bytes, before: offset, key: key)
        var difference: UInt8 = 0
        for index in 0..<SHA1.digestBytes { difference |= expected[index] ^ bytes.byte(at: range.lowerBound + index) }
        return difference == 0
    }
    /// Whether MESSAGE-INTEGRITY is there and was made with `key`.
    public func hasValidIntegrity(key: [UInt8]) -> Bool { hasValidIntegrity(key: unsafe key.span.bytes) }

    /// Whether FINGERPRINT is there and matches (RFC 8489 §14.7). Proves no sender: anyone can compute it.
    public func hasValidFingerprint() -> Bool {
        guard let range = index.fingerprint else { return false }
        let covered = bytes.extracting(0..<range.lowerBound - STUNFormat.attributeHeaderBytes)
        return CRC32.checksum(covered) ^ STUNFormat.fingerprintXOR == bytes.bigEndianUInt32(at: range.lowerBound)
    }

    /// The part of USERNAME before the colon: in a request, the receiver's user name fragment (RFC 8445 §7.2.2), by
    /// which a demultiplexer finds the peer. `nil` without USERNAME, colon or UTF-8.
    public func localUsernameFragment() -> String? {
        guard let range = index.username else { return nil }
        for offset in range where bytes.byte(at: offset) == 0x3A { return text(range.lowerBound..<offset) }
        return nil
    }

    /// Whether USERNAME is there and has exactly these bytes.
    public func hasUsername(_ expected: [UInt8]) -> Bool {
        guard let range = index.username, range.count == expected.count else { return false }
        return expected.indices.allSatisfy { bytes.byte(at: range.lowerBound + $0) == expected[$0] }
    }

    private func text(_ range: Range<Int>?) -> String? {
        guard let range else { return nil }
        return String(validating: bytes.extracting(range).array(), as: UTF8.self)
    }
}

/// Where in a message each attribute's value is, found in one walk.
struct STUNAttributeIndex {
    /// A 420 lists this many; more unknown attributes are counted but not listed.
    static let unknownMax = 8
    /// USERNAME's, 256 + 1 + 256 by RFC 8445 §5.3. The other texts: 763 bytes of UTF-8 by RFC 8489 §14.9.
    static let usernameBytesMax = 513
    static let textBytesMax = 763

    private(set) var username: Range<Int>?
    private(set) var realm: Range<Int>?
    private(set) var nonce: Range<Int>?
    private(set) var software: Range<Int>?
    private(set) var priority: Range<Int>?
    private(set) var useCandidate = false
    private(set) var controlling: Range<Int>?
    private(set) var controlled: Range<Int>?
    private(set) var errorCode: Range<Int>?
    private(set) var xorMappedAddress: Range<Int>?
    private(set) var integrity: Range<Int>?
    private(set) var fingerprint: Range<Int>?
    private(set) var unknown: [8 of UInt16] = .init(repeating: 0)
    private(set) var unknownCount = 0

    /// - Parameter bytes: a whole message, its header checked.
    init(_ bytes: RawSpan) throws(STUNParseError) {
        var offset = STUNFormat.headerBytes
        var count = 0
        while offset < bytes.byteCount {
            guard fingerprint == nil else { throw .attributeAfterFingerprint }
            count += 1
            guard count <= STUNMessageView.attributesMax else { throw .tooManyAttributes }
            // The message's length is a multiple of four, so an attribute header is whole.
            let type = STUNAttributeType(rawValue: bytes.bigEndianUInt16(at: offset))
            let length = Int(bytes.bigEndianUInt16(at: offset + 2))
            let start = offset + STUNFormat.attributeHeaderBytes
            let padded = (length + 3) & ~3
            guard padded <= bytes.byteCount - start else { throw .attribute(type) }
            if integrity == nil || type == .fingerprint {
                try take(type, start..<start + length, bytes)
            }
            offset = start + padded
        }
    }

    private mutating func take(
        _ type: STUNAttributeType,
        _ range: Range<Int>,
        _ bytes: RawSpan
    ) throws(STUNParseError) {
        let isWellFormed: Bool
        switch type {
        case .username:
            isWellFormed = Self.note(&username, range, range.count <= Self.usernameBytesMax)
        case .realm: isWellFormed = Self.note(&realm, range, range.count <= Self.textBytesMax)
        case .nonce: isWellFormed = Self.note(&nonce, range, range.count <= Self.textBytesMax)
        case .software: isWellFormed = Self.note(&software, range, range.count <= Self.textBytesMax)
        case .priority: isWellFormed = Self.note(&priority, range, range.count == 4)
        case .iceControlling: isWellFormed = Self.note(&controlling, range, range.count == 8)
        case .iceControlled: isWellFormed = Self.note(&controlled, range, range.count == 8)
        case .messageIntegrity: isWellFormed = Self.note(&integrity, range, range.count == SHA1.digestBytes)
        case .fingerprint: isWellFormed = Self.note(&fingerprint, range, range.count == 4)
        case .xorMappedAddress:
            isWellFormed = Self.note(&xorMappedAddress, range, Self.isAddress(range, bytes))
        case .errorCode: isWellFormed = Self.note(&errorCode, range, Self.isErrorCode(range, bytes))
        case .useCandidate:
            isWellFormed = range.isEmpty
            useCandidate = true
        case .mappedAddress, .unknownAttributes: isWellFormed = true
        default:
            isWellFormed = true
            if type.isComprehensionRequired { noteUnknown(type) }
        }
        guard isWellFormed else { throw .attribute(type) }
    }

    /// Keeps the first of its kind; a later one is ignored, whatever it holds.
    private static func note(_ slot: inout Range<Int>?, _ range: Range<Int>, _ isWellFormed: Bool) -> Bool {
        guard slot == nil else { return true }
        slot = range
        return isWellFormed
    }

    private mutating func noteUnknown(_ type: STUNAttributeType) {
        if unknownCount < Self.unknownMax { unknown[unknownCount] = type.rawValue }
        unknownCount += 1
    }

    /// RFC 8489 §14.1: family 1 with four bytes of address, family 2 with sixteen.
    private static func isAddress(_ range: Range<Int>, _ bytes: RawSpan) -> Bool {
        guard range.count >= 4 else { return false }
        switch bytes.byte(at: range.lowerBound + 1) {
        case 1: return range.count == 8
        case 2: return range.count == 20
        default: return false
        }
    }

    /// RFC 8489 §14.8: class 3…6, number 0…99.
    private static func isErrorCode(_ range: Range<Int>, _ bytes: RawSpan) -> Bool {
        guard (4...4 + textBytesMax).contains(range.count) else { return false }
        return (3...6).contains(bytes.byte(at: range.lowerBound + 2) & 7) && bytes.byte(at: range.lowerBound + 3) < 100
    }
}
