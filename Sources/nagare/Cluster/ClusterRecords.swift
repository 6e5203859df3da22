import ChannelTypes
import Cluster
import Foundation
import Logging
import Room
import Webhooks

/// What operators set at one node and all nodes of the cluster have: blocks, bans, and subscriptions to events.
enum ClusterRecords {
    private static let block = "block"
    private static let subscription = "subscription"

    /// Has the rooms and subscriptions of this node take the values of all nodes, and tell theirs.
    static func connect(
        _ directory: ChannelDirectory,
        _ subscriptions: EventSubscriptions,
        to records: RecordExchange,
        logger: Logger
    ) {
        let set: @Sendable (RecordKey, String?, Int64?) -> Void = { key, value, until in
            if !records.set(key, value, until: until) {
                logger.warning(
                    "The cluster has too many blocks and subscriptions. This change holds at this node only; remove some.",
                    metadata: ["kind": "\(key.kind)"]
                )
            }
        }
        directory.onBlockChange { subject, block in
            guard let name = text(of: subject) else { return }
            set(RecordKey(kind: Self.block, name: name), block.flatMap { text(of: $0) }, block?.untilUnixSeconds)
        }
        records.use(block) { name, value in
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
        subscriptions.onChange { id, value in set(RecordKey(kind: subscription, name: id), value, nil) }
        records.use(subscription) { id, value in subscriptions.take(value, of: id) }
    }

    /// The same text for equal values.
    private static func text(of value: some Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
    }
}
