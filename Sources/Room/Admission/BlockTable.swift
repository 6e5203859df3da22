import ChannelTypes

/// The users and streams that operators refuse. The table is bounded, and expired blocks make room for new ones.
struct BlockTable: Sendable {
    /// The maximum number of blocks.
    static let countMax = 10_000

    private var blocks: [Block.Subject: Block] = [:]

    /// Adds a block, or replaces the one of the same subject.
    /// - Parameter countMax: the most blocks that there are with it.
    /// - Throws: ``RoomError/blocksFull``.
    mutating func set(_ block: Block, countMax: Int = Self.countMax, at now: RoomTime) throws(RoomError) {
        if blocks[block.subject] == nil, blocks.count >= countMax {
            blocks = blocks.filter { !$0.value.isOver(at: now.unixSeconds) }
            guard blocks.count < countMax else { throw .blocksFull }
        }
        blocks[block.subject] = block
    }

    /// - Returns: whether there was a block that has not expired.
    mutating func lift(_ subject: Block.Subject, at now: RoomTime) -> Bool {
        blocks.removeValue(forKey: subject).map { !$0.isOver(at: now.unixSeconds) } ?? false
    }

    /// The block of a subject; `nil` without one, or when it has expired.
    func block(of subject: Block.Subject, at now: RoomTime) -> Block? {
        blocks[subject].flatMap { $0.isOver(at: now.unixSeconds) ? nil : $0 }
    }

    /// The blocks that have not expired, in no particular order.
    func all(at now: RoomTime) -> [Block] { blocks.values.filter { !$0.isOver(at: now.unixSeconds) } }

    /// Why a newcomer is refused; `nil` when nothing blocks it.
    func refusal(of request: JoinRequest, at now: RoomTime) -> RoomError? {
        guard !blocks.isEmpty else { return nil }
        if let user = request.clientID {
            let subjects: [Block.Subject] = [.user(user), .member(user, of: request.channel)]
            let found = subjects.compactMap { block(of: $0, at: now) }
            // Of two blocks, the one that ends later.
            if let last = found.max(by: { ($0.untilUnixSeconds ?? .max) < ($1.untilUnixSeconds ?? .max) }) {
                return .banned(untilUnixSeconds: last.untilUnixSeconds)
            }
        }
        guard request.role.publishes, let block = block(of: .stream(request.channel), at: now) else { return nil }
        return .streamBlocked(untilUnixSeconds: block.untilUnixSeconds)
    }
}
