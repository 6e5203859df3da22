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

    private typealias Change = (key: RecordKey, value: String?, until: Int64?)

    private let records: RecordExchange
    private let logger: Logger
    /// What operators changed here, in order.
    private let changes: AsyncStream<Change>
    private let changed: AsyncStream<Change>.Continuation

    init(records: RecordExchange, logger: Logger) {
        self.records = records
        self.logger = logger
        (changes, changed) = AsyncStream.makeStream()
    }

    /// Tells the other nodes of a block that was set here or, with `nil`, lifted.
    func tell(_ block: Block?, of subject: Block.Subject) {
        guard let name = Self.text(of: subject) else { return }
        let value = block.flatMap { Self.text(of: $0) }
        changed.yield((RecordKey(kind: Self.block, name: name), value, block?.untilUnixSeconds))
    }

    /// Tells the other nodes of a subscription that began here or, with `nil`, ended.
    func tell(subscription: String?, of id: String) {
        changed.yield((RecordKey(kind: Self.subscription, name: id), subscription, nil))
    }

    /// Tells the other nodes what is to be told, until its task is cancelled.
    func run() async {
        for await (key, value, until) in changes {
            guard await !records.set(key, value, until: until) else { continue }
            logger.warning(
                "The cluster has too many blocks and subscriptions. This change holds at this node only; remove some.",
                metadata: ["kind": "\(key.kind)"]
            )
        }
    }

    /// Has the rooms and subscriptions of this node take what the other nodes tell.
    func deliver(to directory: ChannelDirectory, _ subscriptions: EventSubscriptions) async {
        await records.use(Self.block) { [logger] name, value in
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
        await records.use(Self.subscription) { id, value in await subscriptions.take(value, of: id) }
    }

    /// The same text for equal values.
    private static func text(of value: some Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
    }
}
