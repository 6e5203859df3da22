import Base

/// A read-only view of one STUN message (RFC 8489 §5). It cannot outlive the datagram.
///
/// The content is unauthenticated until ``hasValidIntegrity(key:)`` returns `true`. The first of duplicate attributes
/// counts. Attributes after MESSAGE-INTEGRITY, except FINGERPRINT, are ignored (RFC 8489 §14.5).
public struct STUNMessageView: ~Escapable {
    /// The most attributes of a message; more than any ICE implementation sends.
    public static let attributesMax = 64

    public let bytes: RawSpan
    public let messageClass: STUNMessageClass
    public let method: STUNMethod
    public let transactionID: STUNTransactionID
    private let index: STUNAttributeIndex

    /// Whether a datagram is STUN and not DTLS or SRTP: the first byte is 0…3 (RFC 7983 §7), and the magic cookie is
    /// present (RFC 8489 §5). The rest is not checked. Methods above 0xFF, of which none is assigned, are excluded.
    public static func isSTUN(_ bytes: RawSpan) -> Bool {
        bytes.byteCount >= STUNFormat.headerBytes && PacketProtocol(firstByte: bytes.byte(at: 0)) == .stun
            && bytes.bigEndianUInt32(at: 4) == STUNFormat.magicCookie
    }

    /// Validates the header and the length of every attribute.
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
        // The bits of class and method are interleaved: M11…M7 C1 M6…M4 C0 M3…M0.
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

    /// The position of USERNAME's value.
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
    /// Whether USE-CANDIDATE is present: the controlling agent nominates this pair (RFC 8445 §7.1.2).
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

    /// XOR-MAPPED-ADDRESS: the source address of the request, as the peer saw it (RFC 8489 §14.2).
    public var xorMappedAddress: TransportAddress? { index.xorMappedAddress.flatMap { xorAddress(at: $0) } }

    /// The address in an attribute in the form of XOR-MAPPED-ADDRESS (RFC 8489 §14.2).
    /// - Parameter range: the attribute's value.
    /// - Returns: `nil` when the value does not have this form.
    public func xorAddress(at range: Range<Int>) -> TransportAddress? {
        guard STUNAttributeIndex.isAddress(range, bytes) else { return nil }
        let start = range.lowerBound
        let port = bytes.bigEndianUInt16(at: start + 2) ^ UInt16(STUNFormat.magicCookie >> 16)
        let first = bytes.bigEndianUInt32(at: start + 4) ^ STUNFormat.magicCookie
        if range.count == 8 { return TransportAddress(ip: IPAddress(v4: first), port: port) }
        let second = bytes.bigEndianUInt32(at: start + 8) ^ transactionID.high
        let low = bytes.bigEndianUInt64(at: start + 12) ^ transactionID.low
        let ip = IPAddress(high: UInt64(first) << 32 | UInt64(second), low: low)
        return TransportAddress(ip: ip, port: port)
    }

    /// The attributes before MESSAGE-INTEGRITY and FINGERPRINT, in their order, for a protocol that has attributes of
    /// its own.
    public var attributes: STUNAttributeCursor {
        @_lifetime(copy self)
        get {
            let end = (index.integrity ?? index.fingerprint).map { $0.lowerBound - STUNFormat.attributeHeaderBytes }
            return STUNAttributeCursor(bytes, end: end ?? bytes.byteCount)
        }
    }

    /// The number of unknown comprehension-required attributes, which require a 420 response (RFC 8489 §6.3.1).
    public var unknownAttributeCount: Int { index.unknownCount }
    /// The types of the first eight unknown comprehension-required attributes.
    public var unknownAttributes: [STUNAttributeType] {
        (0..<min(index.unknownCount, STUNAttributeIndex.unknownMax)).map {
            STUNAttributeType(rawValue: index.unknown[$0])
        }
    }

    /// Whether MESSAGE-INTEGRITY is present, valid or not.
    public var hasIntegrity: Bool { index.integrity != nil }
    /// Whether FINGERPRINT is present, valid or not.
    public var hasFingerprint: Bool { index.fingerprint != nil }

    /// Whether MESSAGE-INTEGRITY is present and valid for `key` (RFC 8489 §9.1.3). Compares in constant time.
    public func hasValidIntegrity(key: RawSpan) -> Bool {
        guard let range = index.integrity else { return false }
        let offset = range.lowerBound - STUNFormat.attributeHeaderBytes
        let expected = STUNFormat.integrity(of: bytes, before: offset, key: key)
        var difference: UInt8 = 0
        for index in 0..<SHA1.digestBytes { difference |= expected[index] ^ bytes.byte(at: range.lowerBound + index) }
        return difference == 0
    }
    /// Whether MESSAGE-INTEGRITY is present and valid for `key`.
    public func hasValidIntegrity(key: [UInt8]) -> Bool { hasValidIntegrity(key: unsafe key.span.bytes) }

    /// Whether FINGERPRINT is present and valid (RFC 8489 §14.7). It does not authenticate the sender.
    public func hasValidFingerprint() -> Bool {
        guard let range = index.fingerprint else { return false }
        let covered = bytes.extracting(0..<range.lowerBound - STUNFormat.attributeHeaderBytes)
        return CRC32.checksum(covered) ^ STUNFormat.fingerprintXOR == bytes.bigEndianUInt32(at: range.lowerBound)
    }

    /// The part of USERNAME before the colon: in a request, the username fragment of its receiver (RFC 8445 §7.2.2),
    /// which identifies the peer. `nil` without USERNAME, without a colon or without UTF-8.
    public func localUsernameFragment() -> String? {
        guard let range = index.username else { return nil }
        for offset in range where bytes.byte(at: offset) == 0x3A { return text(range.lowerBound..<offset) }
        return nil
    }

    /// Whether USERNAME is present and has exactly these bytes.
    public func hasUsername(_ expected: [UInt8]) -> Bool {
        guard let range = index.username, range.count == expected.count else { return false }
        return expected.indices.allSatisfy { bytes.byte(at: range.lowerBound + $0) == expected[$0] }
    }

    private func text(_ range: Range<Int>?) -> String? {
        guard let range else { return nil }
        return String(validating: bytes.extracting(range).array(), as: UTF8.self)
    }
}

/// Walks the attributes of a message whose lengths were validated.
public struct STUNAttributeCursor: ~Escapable {
    private let bytes: RawSpan
    private let end: Int
    private var offset = STUNFormat.headerBytes

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, end: Int) {
        self.bytes = bytes
        self.end = end
    }

    /// The next attribute's type and the position of its value in the message.
    @_lifetime(self: copy self)
    public mutating func next() -> (type: STUNAttributeType, value: Range<Int>)? {
        guard offset < end else { return nil }
        let start = offset + STUNFormat.attributeHeaderBytes
        let length = Int(bytes.bigEndianUInt16(at: offset + 2))
        let type = STUNAttributeType(rawValue: bytes.bigEndianUInt16(at: offset))
        offset = start + (length + 3) & ~3
        return (type, start..<start + length)
    }
}

/// The positions of the attribute values of a message.
struct STUNAttributeIndex {
    /// The most unknown attributes that are listed for a 420; further ones are only counted.
    static let unknownMax = 8
    /// The longest USERNAME: 256 + 1 + 256 bytes (RFC 8445 §5.3).
    static let usernameBytesMax = 513
    /// The longest value of the other texts (RFC 8489 §14.9).
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

    /// - Parameter bytes: a complete message with a valid header.
    init(_ bytes: RawSpan) throws(STUNParseError) {
        var offset = STUNFormat.headerBytes
        var count = 0
        while offset < bytes.byteCount {
            guard fingerprint == nil else { throw .attributeAfterFingerprint }
            count += 1
            guard count <= STUNMessageView.attributesMax else { throw .tooManyAttributes }
            // The message's length is a multiple of four, so an attribute header is complete.
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

    /// Keeps the first attribute of its type; later ones are ignored.
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
    static func isAddress(_ range: Range<Int>, _ bytes: RawSpan) -> Bool {
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
