import Base

/// Writes one STUN message (RFC 8489 §5), attribute by attribute. MESSAGE-INTEGRITY and FINGERPRINT come last, in this
/// order. Values must fit the format; others trap.
public struct STUNMessageBuilder: Sendable {
    /// The message so far, complete after each call.
    public private(set) var bytes: [UInt8]
    private let transactionID: STUNTransactionID
    private let padding: UInt8

    /// - Parameter padding: the padding byte of attributes; any value is legal (RFC 8489 §14).
    public init(
        _ messageClass: STUNMessageClass,
        method: STUNMethod = .binding,
        transactionID: STUNTransactionID,
        padding: UInt8 = 0
    ) {
        self.transactionID = transactionID
        self.padding = padding
        bytes = []
        bytes.reserveCapacity(160)
        let value = method.rawValue
        let classBits = UInt16(messageClass.rawValue)
        let methodBits = value & 0x0F | (value & 0x70) << 1 | (value & 0xF80) << 2
        bytes.append(bigEndian: methodBits | (classBits & 1) << 4 | (classBits & 2) << 7)
        bytes.append(bigEndian: UInt16(0))
        bytes.append(bigEndian: STUNFormat.magicCookie)
        bytes.append(bigEndian: transactionID.high)
        bytes.append(bigEndian: transactionID.low)
    }

    /// Appends an attribute; `value` without padding.
    public mutating func append(_ type: STUNAttributeType, _ value: [UInt8] = []) {
        let padded = (value.count + 3) & ~3
        let length = bytes.count - STUNFormat.headerBytes + STUNFormat.attributeHeaderBytes + padded
        precondition(length <= Int(UInt16.max), "a STUN message's length has 16 bits")
        bytes.append(bigEndian: type.rawValue)
        bytes.append(bigEndian: UInt16(value.count))
        bytes += value
        for _ in value.count..<padded { bytes.append(padding) }
        bytes.store(bigEndian: UInt16(length), at: 2)
    }

    public mutating func append(_ type: STUNAttributeType, _ text: String) { append(type, Array(text.utf8)) }

    public mutating func append(_ type: STUNAttributeType, _ value: UInt32) {
        var field: [UInt8] = []
        field.append(bigEndian: value)
        append(type, field)
    }

    public mutating func append(_ type: STUNAttributeType, _ value: UInt64) {
        var field: [UInt8] = []
        field.append(bigEndian: value)
        append(type, field)
    }

    /// XOR-MAPPED-ADDRESS (RFC 8489 §14.2).
    public mutating func appendXORMappedAddress(_ address: TransportAddress) {
        appendXORAddress(.xorMappedAddress, address)
    }

    /// An attribute in the form of XOR-MAPPED-ADDRESS, such as XOR-RELAYED-ADDRESS (RFC 8656 §18.5).
    public mutating func appendXORAddress(_ type: STUNAttributeType, _ address: TransportAddress) {
        var field: [UInt8] = [0, address.ip.isV4 ? 1 : 2]
        field.append(bigEndian: address.port ^ UInt16(STUNFormat.magicCookie >> 16))
        if address.ip.isV4 {
            field.append(bigEndian: address.ip.v4 ^ STUNFormat.magicCookie)
        } else {
            field.append(bigEndian: UInt32(truncatingIfNeeded: address.ip.high >> 32) ^ STUNFormat.magicCookie)
            field.append(bigEndian: UInt32(truncatingIfNeeded: address.ip.high) ^ transactionID.high)
            field.append(bigEndian: address.ip.low ^ transactionID.low)
        }
        append(type, field)
    }

    /// ERROR-CODE (RFC 8489 §14.8).
    /// - Parameter code: 300…699.
    public mutating func appendErrorCode(_ code: Int, reason: String) {
        precondition((300...699).contains(code), "an error code is 300…699")
        append(.errorCode, [0, 0, UInt8(code / 100), UInt8(code % 100)] + Array(reason.utf8))
    }

    /// UNKNOWN-ATTRIBUTES (RFC 8489 §14.13), for error 420.
    public mutating func appendUnknownAttributes(_ types: [STUNAttributeType]) {
        var field: [UInt8] = []
        for type in types { field.append(bigEndian: type.rawValue) }
        append(.unknownAttributes, field)
    }

    /// MESSAGE-INTEGRITY over the message so far (RFC 8489 §14.5). In ICE the key is the password of the request's
    /// receiver, also in the response.
    public mutating func appendMessageIntegrity(key: [UInt8]) {
        let code = STUNFormat.integrity(of: unsafe bytes.span.bytes, before: bytes.count, key: unsafe key.span.bytes)
        append(.messageIntegrity, (0..<SHA1.digestBytes).map { code[$0] })
    }

    /// FINGERPRINT over the message so far (RFC 8489 §14.7).
    public mutating func appendFingerprint() {
        let length = bytes.count - STUNFormat.headerBytes + STUNFormat.fingerprintBytes
        precondition(length <= Int(UInt16.max), "a STUN message's length has 16 bits")
        bytes.store(bigEndian: UInt16(length), at: 2)
        append(.fingerprint, CRC32.checksum(unsafe bytes.span.bytes) ^ STUNFormat.fingerprintXOR)
    }
}
