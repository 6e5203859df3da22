/// A reply of the Redis protocol, version 2 (RESP2).
package enum RESPValue: Hashable, Sendable {
    /// A bulk string, which may hold any bytes.
    case bytes([UInt8])
    /// A simple string, as `OK`.
    case status(String)
    /// An error reply: a word in capitals and a sentence, as `NOSCRIPT No matching script.`
    case error(String)
    case integer(Int64)
    case null
    case array([RESPValue])

    /// The text of a bulk or simple string, with replacement characters where it is not UTF-8.
    package var text: String? {
        switch self {
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .status(let text): text
        default: nil
        }
    }

    /// An integer, or a string of decimal digits.
    package var number: Int64? {
        switch self {
        case .integer(let number): number
        case .bytes, .status: text.flatMap { Int64($0) }
        default: nil
        }
    }

    package var array: [RESPValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The first word of an error reply, which names its kind.
    package var errorCode: String? {
        guard case .error(let text) = self else { return nil }
        return String(text.prefix { $0 != " " }.prefix(32))
    }
}

/// Why a stream of replies cannot be read any further.
package enum RESPError: Error, Hashable, Sendable {
    /// Not the Redis protocol, or arrays nested deeper than seven levels.
    case malformed
    /// A reply is longer than ``RESPReader/replyBytesMax``.
    case tooLong
    /// The library has no memory.
    case noMemory
}
