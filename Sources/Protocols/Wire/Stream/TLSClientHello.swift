import Base

/// What a TLS ClientHello says about the service that the client wants (RFC 8446 §4.1.2).
public struct TLSClientHello: Hashable, Sendable {
    public enum ParseError: Error, Hashable, Sendable {
        /// More bytes are needed. A hello may span several segments and several records.
        case incomplete
        /// The bytes are not a ClientHello.
        case malformed
    }

    /// Application protocols that are kept.
    private static let protocolsMax = 16

    /// The name of server_name in lower case (RFC 6066 §3).
    public private(set) var serverName: String?
    /// The names of ALPN (RFC 7301 §3.1).
    public private(set) var applicationProtocols: [String] = []

    /// - Parameter bytes: the first bytes of a connection.
    public init(_ bytes: RawSpan) throws(ParseError) {
        var message: [UInt8] = []
        var offset = 0
        var needed = 4
        while message.count < needed {
            guard bytes.byteCount - offset >= 5 else { throw .incomplete }
            let length = Int(bytes.bigEndianUInt16(at: offset + 3))
            guard bytes.byte(at: offset) == 0x16, bytes.byte(at: offset + 1) == 3, (1...16_384).contains(length) else {
                throw .malformed
            }
            let end = min(offset + 5 + length, bytes.byteCount)
            message += bytes.extracting(offset + 5..<end).array()
            if let type = message.first, type != 1 { throw .malformed }
            if message.count >= 4 {
                needed = 4 + Int(message[1]) << 16 + Int(message[2]) << 8 + Int(message[3])
                guard needed <= SharedPortRouter.peekBytesMax else { throw .malformed }
            }
            guard end == offset + 5 + length || message.count >= needed else { throw .incomplete }
            offset = end
        }
        guard parse(message[4..<needed]) else { throw .malformed }
    }

    /// A vector with `lengthBytes` of length before it.
    private static func vector(_ rest: inout ArraySlice<UInt8>, _ lengthBytes: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= lengthBytes else { return nil }
        let length = rest.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(lengthBytes)
        guard rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length)
    }

    private mutating func parse(_ body: ArraySlice<UInt8>) -> Bool {
        // The version and the random number.
        guard body.count >= 34 else { return false }
        var rest = body.dropFirst(34)
        guard Self.vector(&rest, 1) != nil, Self.vector(&rest, 2) != nil, Self.vector(&rest, 1) != nil else {
            return false
        }
        guard !rest.isEmpty else { return true }
        guard var extensions = Self.vector(&rest, 2) else { return false }
        while !extensions.isEmpty {
            guard extensions.count >= 2 else { return false }
            let type = extensions.prefix(2).reduce(0) { $0 << 8 | Int($1) }
            extensions = extensions.dropFirst(2)
            guard var value = Self.vector(&extensions, 2) else { return false }
            switch type {
            case 0: guard parseServerName(&value) else { return false }
            case 16: guard parseProtocols(&value) else { return false }
            default: break
            }
        }
        return true
    }

    private mutating func parseServerName(_ value: inout ArraySlice<UInt8>) -> Bool {
        // An empty value is legal in a server's answer only, and other types of names do not exist.
        guard var names = Self.vector(&value, 2), names.popFirst() == 0, let name = Self.vector(&names, 2) else {
            return false
        }
        serverName = String(decoding: name, as: UTF8.self).lowercased()
        return true
    }

    private mutating func parseProtocols(_ value: inout ArraySlice<UInt8>) -> Bool {
        guard var names = Self.vector(&value, 2) else { return false }
        while !names.isEmpty, applicationProtocols.count < Self.protocolsMax {
            guard let name = Self.vector(&names, 1), !name.isEmpty else { return false }
            applicationProtocols.append(String(decoding: name, as: UTF8.self))
        }
        return true
    }
}
