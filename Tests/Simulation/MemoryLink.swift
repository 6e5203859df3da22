import Base
import Forwarding
import Wire

/// A way between two loops of the world, which can be told to lose records.
final class MemoryLink: TransferLink {
    private var records: [(TransferRecord, [UInt8])] = []
    /// Whether a record is lost, asked for each.
    var loses: (TransferRecord) -> Bool = { _ in false }
    private(set) var packetsCarried = 0
    /// Messages cross as bytes, and nothing but these bytes.
    private let isEncoded: Bool

    init(isEncoded: Bool = false) { self.isEncoded = isEncoded }

    override func send(_ record: TransferRecord, _ bytes: RawSpan) -> Bool {
        guard !loses(record) else { return false }
        if !record.isControl { packetsCarried += 1 }
        guard isEncoded else {
            records.append((record, bytes.array()))
            return true
        }
        let encoded = record.message.encoded(bytes)
        guard let decoded = try? TransferMessage.decode(unsafe encoded.span.bytes) else {
            preconditionFailure("what was encoded is read")
        }
        records.append((TransferRecord(decoded.message), Array(encoded[decoded.bodyOffset...])))
        return true
    }

    func take() -> [(TransferRecord, [UInt8])] {
        defer { records = [] }
        return records
    }
}
