/// Keeps some senders' tracks from a receiver, without a change of its session.
///
/// Of several filters the one with the greatest ``priority`` that fits a track decides about it; among equals the
/// older one. A track that none fits is forwarded, unless a filter with rules allows others: then only what is
/// allowed is.
public struct ForwardingFilter: Hashable, Sendable, Codable {
    /// A condition about the sender of a track.
    public struct Rule: Hashable, Sendable, Codable {
        public enum Field: Hashable, Sendable, Codable {
            case connectionID, clientID
            /// `audio` or `video`.
            case kind
        }
        public enum Operator: Hashable, Sendable, Codable { case isIn, isNotIn }
        public var field: Field
        public var `operator`: Operator
        public var values: [String]

        public init(field: Field, operator: Operator, values: [String]) {
            self.field = field
            self.operator = `operator`
            self.values = values
        }
    }
    public enum Action: Hashable, Sendable, Codable { case block, allow }

    /// The name of one that was given none.
    public static let nameDefault = "default"
    /// The priority of one that was given none.
    public static let priorityDefault = 32_767
    /// Filters in one list.
    public static let filtersMax = 32
    /// Rules of all filters of one list together. A list without rules within ``rules`` counts as one.
    public static let rulesMax = 64
    /// Values of the rules of all filters of one list together.
    public static let valuesMax = 1_024
    /// The longest name, version or value, in bytes.
    public static let textBytesMax = 255
    /// The longest metadata in bytes.
    public static let metadataBytesMax = 4_096

    /// Unique in its list.
    public var name: String
    public var priority: Int
    public var action: Action
    /// It fits a track when all rules of one of the lists hold.
    public var rules: [[Rule]]
    /// What a change of the filter has to name, if it names any.
    public var version: String?
    /// The caller's own: JSON text.
    public var metadataJSON: String?

    public init(
        name: String = Self.nameDefault,
        priority: Int = Self.priorityDefault,
        action: Action = .block,
        rules: [[Rule]],
        version: String? = nil,
        metadataJSON: String? = nil
    ) {
        self.name = name
        self.priority = priority
        self.action = action
        self.rules = rules
        self.version = version
        self.metadataJSON = metadataJSON
    }

    /// What it takes of ``rulesMax``.
    public var ruleCount: Int { rules.reduce(0) { $0 + max($1.count, 1) } }
    /// What it takes of ``valuesMax``.
    public var valueCount: Int { rules.joined().reduce(0) { $0 + $1.values.count } }

    /// Whether its texts are within what one filter may hold.
    var isWithinLimits: Bool {
        let all = rules.joined()
        return name.utf8.count <= Self.textBytesMax && (version?.utf8.count ?? 0) <= Self.textBytesMax
            && all.allSatisfy { $0.values.allSatisfy { $0.utf8.count <= Self.textBytesMax } }
            && (metadataJSON?.utf8.count ?? 0) <= Self.metadataBytesMax
    }
}

/// What a list of filters belongs to.
public enum FilterScope: Hashable, Sendable {
    /// Every receiver of the channel's session, as long as that lasts.
    case channel(ChannelName)
    /// One receiver. What it allows itself is not forwarded when the channel blocks it.
    case connection(ChannelName, ParticipantID)

    var channel: ChannelName {
        switch self {
        case .channel(let name), .connection(let name, _): name
        }
    }
}
