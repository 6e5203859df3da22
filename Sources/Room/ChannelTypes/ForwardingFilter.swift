/// Blocks or allows tracks of senders for a receiver, without renegotiation.
///
/// The matching filter with the greatest ``priority`` decides about a track; among equals the oldest. A track without a
/// matching filter is forwarded, unless there is an `allow` filter with rules: then it is blocked.
package struct ForwardingFilter: Hashable, Sendable, Codable {
    /// A condition about the sender of a track.
    package struct Rule: Hashable, Sendable, Codable {
        package enum Field: Hashable, Sendable, Codable {
            case connectionID, clientID
            /// `audio` or `video`.
            case kind
        }
        package enum Operator: Hashable, Sendable, Codable { case isIn, isNotIn }
        package var field: Field
        package var `operator`: Operator
        package var values: [String]

        package init(field: Field, operator: Operator, values: [String]) {
            self.field = field
            self.operator = `operator`
            self.values = values
        }
    }
    package enum Action: Hashable, Sendable, Codable { case block, allow }

    /// The name of a filter without a name.
    package static let nameDefault = "default"
    /// The priority of a filter without a priority.
    package static let priorityDefault = 32_767
    /// Filters in one list.
    package static let filtersMax = 32
    /// Rules of all filters of one list together. A list without rules within ``rules`` counts as one.
    package static let rulesMax = 64
    /// Values of the rules of all filters of one list together.
    package static let valuesMax = 1_024
    /// The longest name, version or value, in bytes.
    package static let textBytesMax = 255
    /// The longest metadata in bytes.
    package static let metadataBytesMax = 4_096

    /// Unique in its list.
    package var name: String
    package var priority: Int
    package var action: Action
    /// A disjunction of conjunctions: the filter matches a track when all rules of one list hold.
    package var rules: [[Rule]]
    /// An opaque version that an update can require.
    package var version: String?
    /// Opaque to the node: JSON text.
    package var metadataJSON: String?

    package init(
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

    /// What a list may have at most, in words for the reasons of refusals.
    package static var bounds: String {
        "\(filtersMax) forwarding filters, \(rulesMax) rules and \(valuesMax) values in all, "
            + "texts of \(textBytesMax) bytes and metadata of \(metadataBytesMax) bytes"
    }

    /// Its part of ``rulesMax``.
    package var ruleCount: Int { rules.reduce(0) { $0 + max($1.count, 1) } }
    /// Its part of ``valuesMax``.
    package var valueCount: Int { rules.joined().reduce(0) { $0 + $1.values.count } }

    /// Whether its texts are within ``textBytesMax`` and ``metadataBytesMax``.
    package var isWithinLimits: Bool {
        let all = rules.joined()
        return name.utf8.count <= Self.textBytesMax && (version?.utf8.count ?? 0) <= Self.textBytesMax
            && all.allSatisfy { $0.values.allSatisfy { $0.utf8.count <= Self.textBytesMax } }
            && (metadataJSON?.utf8.count ?? 0) <= Self.metadataBytesMax
    }
}

/// The owner of a list of filters.
package enum FilterScope: Hashable, Sendable, Codable {
    /// All receivers of the channel's session.
    case channel
    /// One receiver. It does not receive what the channel's filters block, even if its own filters allow it.
    case participant(ParticipantID)
}
