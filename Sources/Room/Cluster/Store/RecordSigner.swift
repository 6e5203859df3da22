internal import Room
internal import Signatures

/// Whether a node's record in the store is signed with a secret of the cluster.
package enum RecordSignature: Hashable, Sendable {
    case valid
    /// There is none: the record is of an earlier build, or of somebody without the secret.
    case missing
    /// The secret is another one, or the record was changed, or it is that of another node, run or cluster.
    case invalid
}

/// Signs what a node tells the store of itself, and verifies what the store tells of others.
///
/// Whoever writes to the store without the cluster's secret can make no record that the nodes accept. The signature is an HMAC with
/// SHA-256 (RFC 2104), cut to its first 128 bits (RFC 2104 §5), over the cluster's name, the node's run and the record. It is the
/// last member of the record's JSON, which earlier builds ignore.
package struct RecordSigner: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What a signature adds to a record, in bytes: the member `"h"` with 32 hexadecimal digits.
    static let overheadBytes = opening.count + 2 * codeBytes + closing.count - 1

    private static let codeBytes = 16
    private static let opening = Array(#","h":""#.utf8)
    private static let closing = Array(#""}"#.utf8)

    private let keys: [SignatureKey]

    /// - Parameter secrets: those of the cluster that are accepted, the one to sign with first.
    package init(secrets: [String]) { keys = secrets.map { SignatureKey(hmacSecret: Array($0.utf8)) } }

    /// The record with its signature.
    /// - Parameter record: a JSON object with members.
    func sign(_ record: String, of instance: NodeInstance, in cluster: ClusterName) -> String {
        var bytes = Array(record.utf8)
        guard let key = keys.first, let code = Self.code(of: bytes, instance, cluster, key) else { return record }
        bytes.removeLast()
        bytes += Self.opening + code + Self.closing
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Parameter record: what the store has of the run, with or without a signature.
    func verify(_ record: String, of instance: NodeInstance, in cluster: ClusterName) -> RecordSignature {
        let bytes = Array(record.utf8)
        let start = bytes.count - Self.overheadBytes - 1
        guard start > 0, bytes[start...].starts(with: Self.opening),
            bytes.suffix(Self.closing.count) == Self.closing[...]
        else { return .missing }
        let unsigned = Array(bytes[..<start]) + [UInt8(ascii: "}")]
        let code = bytes[(start + Self.opening.count)...].prefix(2 * Self.codeBytes)
        let isValid = keys.contains { key in
            guard let expected = Self.code(of: unsigned, instance, cluster, key) else { return false }
            // Takes the same time wherever they differ.
            return zip(code, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
        }
        return isValid ? .valid : .invalid
    }

    /// Hexadecimal digits; `nil` only when OpenSSL is out of memory.
    private static func code(
        of record: [UInt8],
        _ instance: NodeInstance,
        _ cluster: ClusterName,
        _ key: SignatureKey
    ) -> [UInt8]? {
        // No name has a line break. The first words keep the code apart from what else the secret may authenticate.
        let head = Array("nagare record\n\(cluster)\n\(instance)\n".utf8)
        guard let code = key.signature(over: head + record) else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        return code.prefix(codeBytes).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    package var description: String { "record signer (hidden)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
