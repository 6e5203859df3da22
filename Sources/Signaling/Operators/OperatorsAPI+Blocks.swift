import ChannelTypes
import HTTPTypes
import JSON
import Room

// Bans of users from one channel, and blocks of users and streams in all channels.

extension OperatorsAPI {
    /// The longest ban or block with an end, ten years in seconds.
    static let blockSecondsMax: Int64 = 315_360_000

    private static let blockBody = APISchema.object([
        APIProperty("seconds", .integer(1...blockSecondsMax), "How long it lasts; without it, until it is lifted.")
    ])
    private static let until = APIProperty(
        "until",
        .nullable(.integer(0...secondsMax)),
        required: true,
        "When it expires, in seconds since 1970; null for never."
    )
    private static let banProperties = [
        APIProperty("channel", .string(1...255), required: true, "The channel that the user may not join."),
        APIProperty("user_id", .string(1...255), required: true, "The user's ID."),
        until,
    ]
    private static let blockProperties = [
        APIProperty("kind", .choice(BlockKind.allCases.map(\.rawValue)), required: true, "What is blocked."),
        APIProperty("name", .string(1...255), required: true, "The channel of the stream, or the user's ID."),
        until,
    ]

    static let banOperations = [
        APIOperation(
            id: "listBans",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}/bans"),
            summary: "The users who are banned from a channel, by ID.",
            query: Page<Never>.query,
            answer: list("bans", banProperties)
        ) { try await $0.listBans($1) },
        APIOperation(
            id: "getBan",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}/bans/{user}"),
            summary: "A user's ban from a channel.",
            answer: .object(banProperties),
            problems: [.blockUnknown]
        ) { try await $0.get($0.ban($1)) },
        APIOperation(
            id: "ban",
            method: .put,
            path: APIOperation.path("/v1/channels/{channel}/bans/{user}"),
            summary: "Bans a user from a channel, and ends its connections there. The channel need not exist.",
            body: blockBody,
            answer: .object(banProperties + [endedProperty]),
            problems: [.blocksFull]
        ) { try await $0.put($0.ban($1), $1) },
        APIOperation(
            id: "unban",
            method: .delete,
            path: APIOperation.path("/v1/channels/{channel}/bans/{user}"),
            summary: "Lifts a user's ban from a channel.",
            status: 204,
            problems: [.blockUnknown]
        ) { try await $0.lift($0.ban($1)) },
    ]

    static let blockOperations = [
        APIOperation(
            id: "listBlocks",
            method: .get,
            path: APIOperation.path("/v1/blocks/{kind}"),
            summary: "The streams or users that are blocked, by name.",
            query: Page<Never>.query,
            answer: list("blocks", blockProperties)
        ) { try await $0.listBlocks($1) },
        APIOperation(
            id: "getBlock",
            method: .get,
            path: APIOperation.path("/v1/blocks/{kind}/{name}"),
            summary: "The block of a stream or user.",
            answer: .object(blockProperties),
            problems: [.blockUnknown]
        ) { try await $0.get($0.block($1)) },
        APIOperation(
            id: "block",
            method: .put,
            path: APIOperation.path("/v1/blocks/{kind}/{name}"),
            summary: """
                Blocks a stream, so that nobody may publish to the channel of this name, or a user, who may join no channel. \
                Ends the connections that it refuses.
                """,
            body: blockBody,
            answer: .object(blockProperties + [endedProperty]),
            problems: [.blocksFull]
        ) { try await $0.put($0.block($1), $1) },
        APIOperation(
            id: "unblock",
            method: .delete,
            path: APIOperation.path("/v1/blocks/{kind}/{name}"),
            summary: "Lifts a block.",
            status: 204,
            problems: [.blockUnknown]
        ) { try await $0.lift($0.block($1)) },
    ]

    private static func list(_ name: String, _ properties: [APIProperty]) -> APISchema {
        .object([
            APIProperty(
                name,
                .array(.object(properties), 0...Page<Never>.countMax, isUnique: false),
                required: true,
                "A page."
            ),
            Page<Never>.next,
        ])
    }

    // MARK: Subjects

    private func ban(_ call: APICall) throws(Problem) -> Block.Subject { .member(call.user, of: try call.channel()) }

    private func block(_ call: APICall) throws(Problem) -> Block.Subject {
        let name = call.path[.name] ?? ""
        return switch Self.kind(call) {
        case .streams: .stream(try APICall.channel(name))
        case .users: .user(name)
        }
    }

    private static func kind(_ call: APICall) -> BlockKind { call.path[.kind].flatMap(BlockKind.init) ?? .users }

    // MARK: Handlers

    private func get(_ subject: Block.Subject) async throws -> JSONValue {
        guard let block = await directory.block(of: subject) else { throw Problem.blockUnknown }
        return .object(Self.describe(block))
    }

    private func put(_ subject: Block.Subject, _ call: APICall) async throws -> JSONValue {
        let seconds = try call.body.integer("seconds", 1...Int(Self.blockSecondsMax))
        let block = Block(subject, untilUnixSeconds: seconds.map { directory.unixSeconds + Int64($0) })
        let ended = try await directory.block(block)
        var answer = Self.describe(block)
        answer["ended"] = .integer(ended.count)
        return .object(answer)
    }

    private func lift(_ subject: Block.Subject) async throws -> JSONValue? {
        guard await directory.liftBlock(of: subject) else { throw Problem.blockUnknown }
        return nil
    }

    private func listBans(_ call: APICall) async throws -> JSONValue {
        let channel = try call.channel()
        let bans = await directory.blocks.compactMap { block -> (name: String, block: Block)? in
            guard case .member(let user, channel) = block.subject else { return nil }
            return (user, block)
        }
        return Self.page("bans", bans, call)
    }

    private func listBlocks(_ call: APICall) async throws -> JSONValue {
        let kind = Self.kind(call)
        let blocks = await directory.blocks.compactMap { block -> (name: String, block: Block)? in
            switch (kind, block.subject) {
            case (.streams, .stream(let channel)): (channel.value, block)
            case (.users, .user(let user)): (user, block)
            default: nil
            }
        }
        return Self.page("blocks", blocks, call)
    }

    private static func page(_ name: String, _ blocks: [(name: String, block: Block)], _ call: APICall) -> JSONValue {
        let page = Page(blocks.sorted { APIOrder.precedes($0.name, $1.name) }, call) { $0.name }
        var answer: [String: JSONValue] = [name: .array(page.items.map { .object(describe($0.block)) })]
        answer["next"] = page.next.map { .string($0) }
        return .object(answer)
    }

    private static func describe(_ block: Block) -> [String: JSONValue] {
        let until = block.untilUnixSeconds.map { JSONValue.integer($0) } ?? .null
        return switch block.subject {
        case .member(let user, let channel):
            ["channel": .string(channel.value), "user_id": .string(user), "until": until]
        case .user(let user): ["kind": .string(BlockKind.users.rawValue), "name": .string(user), "until": until]
        case .stream(let channel):
            ["kind": .string(BlockKind.streams.rawValue), "name": .string(channel.value), "until": until]
        }
    }
}
