import ChannelTypes
import HTTPTypes
import JSON

/// One operation of the operators' API. Both the routing and the OpenAPI document come from it.
struct APIOperation: Sendable {
    /// A part of a path between two slashes.
    enum Segment: Hashable, Sendable {
        case literal(String)
        case parameter(PathParameter)
    }
    /// The named parts of paths.
    enum PathParameter: String, Hashable, Sendable {
        case channel, user, kind, name, subscription, connection
    }

    let id: String
    let method: HTTPRequest.Method
    let path: [Segment]
    let summary: String
    var query: [APIProperty] = []
    /// The body; `nil` for none.
    var body: APISchema?
    var isBodyRequired = false
    /// The status of success.
    var status = 200
    /// The body of success; `nil` for none.
    var answer: APISchema?
    /// The problems of this operation, besides ``commonProblems`` and those that follow from its parameters and body.
    var problems: [Problem.Kind] = []
    /// Whether it needs no token.
    var isPublic = false
    let handle: @Sendable (OperatorsAPI, APICall) async throws -> JSONValue?

    /// What every operation may answer.
    static let commonProblems: [Problem.Kind] = [
        .invalidRequest, .unauthenticated, .forbidden, .tooManyRequests, .failed,
    ]

    /// All problems that the operation may answer.
    var allProblems: [Problem.Kind] {
        var kinds = Self.commonProblems + problems
        if path.contains(where: { if case .parameter = $0 { true } else { false } }) { kinds.append(.pathUnknown) }
        if body != nil { kinds += [.bodyTooLarge, .mediaTypeUnsupported] }
        return kinds
    }

    /// The path's template, such as `/v1/channels/{channel}`.
    var template: String {
        path.map { segment in
            switch segment {
            case .literal(let text): "/\(text)"
            case .parameter(let parameter): "/{\(parameter.rawValue)}"
            }
        }
        .joined()
    }

    /// The values of the path's parameters; `nil` for another path.
    func match(_ segments: [String]) -> [PathParameter: String]? {
        guard segments.count == path.count else { return nil }
        var values: [PathParameter: String] = [:]
        for (pattern, text) in zip(path, segments) {
            switch pattern {
            case .literal(let literal): guard literal == text else { return nil }
            case .parameter(let parameter): values[parameter] = text
            }
        }
        return values
    }

    /// Makes a path of a template.
    static func path(_ template: String) -> [Segment] {
        template.split(separator: "/").map { part in
            guard part.hasPrefix("{"), let parameter = PathParameter(rawValue: String(part.dropFirst().dropLast()))
            else {
                return .literal(String(part))
            }
            return .parameter(parameter)
        }
    }
}

extension APIOperation.PathParameter {
    /// The permitted values.
    var schema: APISchema {
        switch self {
        case .channel, .user, .name, .subscription: .string(1...255)
        case .connection: .string(1...64)
        case .kind: .choice(BlockKind.allCases.map(\.rawValue))
        }
    }

    var description: String {
        switch self {
        case .channel: "The channel's name. It \(ChannelName.rule)."
        case .user: "The user's ID: the client ID of its connections."
        case .kind: "Whether streams or users are blocked."
        case .subscription: "The subscription's ID."
        case .connection: "The connection's ID."
        case .name: "The name of a channel for streams, or the ID of a user."
        }
    }
}

/// What the block lists hold.
enum BlockKind: String, CaseIterable, Sendable {
    /// Channels to which nobody may publish.
    case streams
    /// Users who may join no channel.
    case users
}

/// A request with valid parameters and body.
struct APICall: Sendable {
    let path: [APIOperation.PathParameter: String]
    let query: [String: JSONValue]
    let body: JSONFields
    /// The role of whoever asks. Some answers have more for ``OperatorRole/operate``.
    let role: OperatorRole

    /// A name that no channel can have is one of an unknown resource.
    func channel() throws(Problem) -> ChannelName { try Self.channel(path[.channel]) }

    static func channel(_ text: String?) throws(Problem) -> ChannelName {
        guard let channel = ChannelName(text ?? "") else {
            throw Problem(.pathUnknown, "No channel can have this name: a name \(ChannelName.rule).")
        }
        return channel
    }

    var user: String { path[.user] ?? "" }

    /// The most items of one page.
    var limit: Int { query["limit"]?.integer ?? Page<Never>.countDefault }
    /// The last item of the previous page.
    var after: String? { query["after"]?.string }
}

/// One page of a list that is sorted by name.
struct Page<Item> {
    let items: ArraySlice<Item>
    /// The name to pass as `after` for the next page; `nil` on the last one.
    let next: String?

    /// - Parameter items: sorted by name, which is unique.
    init(_ items: [Item], _ call: APICall, by name: (Item) -> String) {
        let rest = items.drop { item in
            call.after.map { !APIOrder.precedes($0, name(item)) } ?? false
        }
        self.items = rest.prefix(call.limit)
        next = rest.count > call.limit ? self.items.last.map(name) : nil
    }
}

extension Page<Never> {
    static let countMax = 100
    static let countDefault = 50

    /// The parameters of lists.
    static let query = [
        APIProperty("limit", .integer(1...Int64(countMax)), "The most items of the page; \(countDefault) without it."),
        APIProperty("after", .string(1...255), "Items after this name only: \"next\" of the previous page."),
    ]
    /// The member of lists.
    static let next = APIProperty(
        "next",
        .string(1...255),
        "Pass it as \"after\" for the next page. The last page has none."
    )
}

/// The order of lists: by the bytes of names.
enum APIOrder {
    static func precedes(_ one: String, _ other: String) -> Bool {
        one.utf8.lexicographicallyPrecedes(other.utf8)
    }
}
