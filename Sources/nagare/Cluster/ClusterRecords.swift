import ChannelTypes
import Cluster
import Foundation
import Logging
import Room
import Webhooks

/// What operators set at one node and all nodes of the cluster have: blocks, bans, and subscriptions to events.
struct ClusterRecords: Sendable {
    private static let block = "block"
    private static let subscription = "subscription"

    let records: RecordExchange
    let logger: Logger

    /// Tells the other nodes of a block that was set here or, with `nil`, lifted.
    func tell(_ block: Block?, of subject: Block.Subject) {
        guard let name = Self.text(of: subject) else { return }
        set(
            RecordKey(kind: Self.block, name: name),
            block.flatMap { Self.text(of: $0) },
            until: block?.untilUnixSeconds
        )
    }

    /// Tells the other nodes of a subscription that began here or, with `nil`, ended.
    func tell(subscription: String?, of id: String) {
        set(RecordKey(kind: Self.subscription, name: id), subscription, until: nil)
    }

    private func set(_ key: RecordKey, _ value: String?, until: Int64?) {
        guard !records.set(key, value, until: until) else { return }
        logger.warning(
            "The cluster has too many blocks and subscriptions. This change holds at this node only; remove some.",
            metadata: ["kind": "\(key.kind)"]
        )
    }

    /// Has the rooms and subscriptions of this node take what the other nodes tell.
    func deliver(to directory: ChannelDirectory, _ subscriptions: EventSubscriptions) {
        records.use(Self.block) { [logger] name, value in
            guard let subject = try? JSONDecoder().decode(Block.Subject.self, from: Data(name.utf8)) else { return }
            guard let value else {
                _ = await directory.take(nil, of: subject)
                return
            }
            // A block of a later version is none that this build could lift.
            guard let block = try? JSONDecoder().decode(Block.self, from: Data(value.utf8)), block.subject == subject
            else { return }
            if await !directory.take(block, of: subject) {
                logger.warning(
                    "A block of another node is not kept, because this node has too many blocks. Lift some.",
                    metadata: ["kind": "\(Self.block)"]
                )
            }
        }
        records.use(Self.subscription) { id, value in subscriptions.take(value, of: id) }
    }

    /// The same text for equal values.
    private static func text(of value: some Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
    }
}
