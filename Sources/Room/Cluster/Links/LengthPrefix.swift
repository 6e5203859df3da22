import Base

/// The length of what follows, in four bytes, big-endian.
enum LengthPrefix {
    static let bytes = 4

    /// - Parameter content: less than 4 GiB.
    static func prepend(to content: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.bytes + content.count)
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: content.count))
        bytes.append(contentsOf: content)
        return bytes
    }

    /// The length that the first bytes tell; `nil` when they are too few.
    static func read(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= Self.bytes else { return nil }
        return bytes.prefix(Self.bytes).reduce(0) { $0 << 8 | Int($1) }
    }
}
