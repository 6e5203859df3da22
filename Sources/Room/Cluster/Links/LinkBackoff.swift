import Base
import ChannelTypes
internal import Room

/// The nodes that are left alone for a while: what they send is not understood, or one of the two refused the other.
///
/// Without it, nodes that cannot work together would dial each other for ever.
struct LinkBackoff: Sendable {
    /// A node is left alone for so long.
    static let duration = Interval.seconds(30)
    /// A node whose links ended so many times in ``flawWindow`` with bytes that are no message is refused.
    static let flawsMax = 3
    static let flawWindow = Interval.seconds(10)
    /// The most nodes that are kept. Those beyond are treated as any other.
    static let nodesMax = 1_024

    private struct Entry: Sendable {
        var flaws: [Instant] = []
        var heldUntil: Instant?
        var refusedUntil: Instant?

        func isOver(at now: Instant) -> Bool {
            let end = [heldUntil, refusedUntil, flaws.last.map { $0 + LinkBackoff.flawWindow }].compactMap(\.self).max()
            return end.map { $0 <= now } ?? true
        }
    }

    private var entries: [NodeID: Entry] = [:]

    var count: Int { entries.count }

    /// The node is not dialed for a while.
    mutating func hold(_ node: NodeID, at now: Instant) { change(node) { $0.heldUntil = now + Self.duration } }

    func isHeld(_ node: NodeID, at now: Instant) -> Bool {
        isRefused(node, at: now) || entries[node]?.heldUntil.map { now < $0 } ?? false
    }

    /// A link to the node ended with bytes that are no message.
    /// - Returns: whether its links are refused from now on.
    mutating func noteFlaw(_ node: NodeID, at now: Instant) -> Bool {
        change(node) { entry in
            entry.flaws.removeAll { now - $0 >= Self.flawWindow }
            entry.flaws.append(now)
            guard entry.flaws.count >= Self.flawsMax else { return }
            entry.flaws = []
            entry.refusedUntil = now + Self.duration
        }
        return isRefused(node, at: now)
    }

    /// Whether a link to the node is refused, whoever dials.
    func isRefused(_ node: NodeID, at now: Instant) -> Bool {
        entries[node]?.refusedUntil.map { now < $0 } ?? false
    }

    /// Another run of the node is there, or it has another address.
    mutating func lift(_ node: NodeID) { entries[node] = nil }

    mutating func expire(at now: Instant) {
        guard !entries.isEmpty else { return }
        entries = entries.filter { !$0.value.isOver(at: now) }
    }

    private mutating func change(_ node: NodeID, _ body: (inout Entry) -> Void) {
        guard entries[node] != nil || entries.count < Self.nodesMax else { return }
        body(&entries[node, default: Entry()])
    }
}
