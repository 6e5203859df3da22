/// A keyed hash of the token that created a resource. The node does not keep the token itself. The keys are random in
/// every process.
public struct OwnerProof: Hashable, Sendable {
    // SipHash under two random keys, 128 bits together.
    private static let keys = (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max))
    private let first: Int
    private let second: Int

    public init(token: String) {
        func hash(_ key: UInt64) -> Int {
            var hasher = Hasher()
            hasher.combine(key)
            for byte in token.utf8 { hasher.combine(byte) }
            return hasher.finalize()
        }
        first = hash(Self.keys.0)
        second = hash(Self.keys.1)
    }
}
