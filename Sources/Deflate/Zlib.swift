internal import CZlib

/// Why bytes are not a zlib stream that is accepted.
public enum ZlibError: Error, Hashable, Sendable {
    /// Not one whole stream, or damaged.
    case malformed
    /// The content is longer than allowed.
    case tooLong
}

/// Messages as zlib streams (RFC 1950).
public enum Zlib {
    /// The first guess of how much longer the content is than the stream.
    private static let expansion = 4

    /// Compresses a message of at most some megabytes.
    /// - Returns: an empty array when the library has no memory.
    public static func compress(_ bytes: [UInt8]) -> [UInt8] {
        let capacity = nagare_deflate_bound(bytes.count)
        return unsafe [UInt8](unsafeUninitializedCapacity: capacity) { out, count in
            guard let target = out.baseAddress else { return }
            let length = unsafe bytes.withUnsafeBufferPointer { source in
                unsafe nagare_deflate(source.baseAddress, source.count, target, capacity)
            }
            count = max(length, 0)
        }
    }

    /// Decompresses a whole stream. Memory and time are bounded by `bytesMax`.
    public static func decompress(_ bytes: [UInt8], bytesMax: Int) throws(ZlibError) -> [UInt8] {
        var capacity = min(max(bytes.count &* expansion, 1_024), bytesMax)
        while true {
            var result = -1
            let content = unsafe [UInt8](unsafeUninitializedCapacity: max(capacity, 1)) { out, count in
                guard let target = out.baseAddress else { return }
                let limit = capacity
                result = unsafe bytes.withUnsafeBufferPointer { source in
                    unsafe nagare_inflate(source.baseAddress, source.count, target, limit)
                }
                count = max(result, 0)
            }
            switch result {
            case 0...: return content
            case -2:
                guard capacity < bytesMax else { throw .tooLong }
                capacity = min(capacity &* expansion, bytesMax)
            default: throw .malformed
            }
        }
    }
}
