package import ChannelTypes
package import JSON

extension ForwardingFilter {
    /// Parses a filter of a client, a webhook or an operator.
    /// - Throws: a sentence that names the first invalid member.
    package init(_ members: [String: JSONValue]) throws(JSONShapeError) {
        let fields = JSONFields(members)
        let name = try fields.string("name")
        let priority = try fields.integer("priority", 0...Self.priorityDefault)
        guard (name == nil) == (priority == nil) else {
            throw JSONShapeError("\"name\" and \"priority\" of a forwarding filter go together: give both or neither.")
        }
        guard let alternatives = try fields.array("rules", countMax: Self.rulesMax) else {
            throw JSONShapeError("\"rules\" of a forwarding filter is missing.")
        }
        var rules: [[Rule]] = []
        var size = Size()
        for alternative in alternatives {
            guard let conjunction = alternative.array else {
                throw JSONShapeError("\"rules\" of a forwarding filter has to be an array of arrays of rules.")
            }
            try size.add(rules: max(conjunction.count, 1))
            var parsed: [Rule] = []
            for element in conjunction {
                let rule = try Self.rule(element)
                try size.add(values: rule.values.count)
                parsed.append(rule)
            }
            rules.append(parsed)
        }
        self.init(
            name: name ?? Self.nameDefault,
            priority: priority ?? Self.priorityDefault,
            action: try Self.action(fields),
            rules: rules,
            version: try fields.string("version"),
            metadataJSON: fields.value("metadata")?.text
        )
    }

    /// The size of a list of filters, checked while the list is parsed.
    private struct Size {
        private var rules = 0
        private var values = 0

        mutating func add(rules count: Int = 0, values valueCount: Int = 0) throws(JSONShapeError) {
            rules += count
            values += valueCount
            let (rulesMax, valuesMax) = (ForwardingFilter.rulesMax, ForwardingFilter.valuesMax)
            guard rules <= rulesMax else {
                throw JSONShapeError("Forwarding filters may have at most \(rulesMax) rules in all.")
            }
            guard values <= valuesMax else {
                throw JSONShapeError("The rules of forwarding filters may have at most \(valuesMax) values in all.")
            }
        }
    }

    /// The filters of `forwarding_filters`, otherwise the filter of `forwarding_filter`; `nil` without both.
    package static func list(_ fields: JSONFields) throws(JSONShapeError) -> [ForwardingFilter]? {
        guard let filters = try list(json: fields.value("forwarding_filters")) else {
            guard let object = try fields.object("forwarding_filter") else { return nil }
            return [try ForwardingFilter(object)]
        }
        return filters
    }

    /// The filters of an array; `nil` for `null`.
    package static func list(json: JSONValue?) throws(JSONShapeError) -> [ForwardingFilter]? {
        let fields = JSONFields(["forwarding_filters": json ?? .null])
        guard let objects = try fields.objects("forwarding_filters", countMax: filtersMax) else { return nil }
        var filters: [ForwardingFilter] = []
        var size = Size()
        for object in objects {
            let filter = try ForwardingFilter(object)
            try size.add(rules: filter.ruleCount, values: filter.valueCount)
            guard !filters.contains(where: { $0.name == filter.name }) else {
                throw JSONShapeError("\"forwarding_filters\" has two filters of the name \"\(filter.name)\".")
            }
            filters.append(filter)
        }
        return filters
    }

    /// The filter as the admin API returns it.
    package var json: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "name": .string(name), "priority": .integer(priority), "action": action == .allow ? "allow" : "block",
            "rules": .array(rules.map { conjunction in .array(conjunction.map(Self.json)) }),
        ]
        members["version"] = version.map { .string($0) }
        members["metadata"] = metadataJSON.flatMap { try? JSONValue(parsing: $0) }
        return members
    }

    private static func action(_ fields: JSONFields) throws(JSONShapeError) -> Action {
        switch try fields.string("action") {
        case nil, "block": .block
        case "allow": .allow
        default: throw JSONShapeError("\"action\" has to be \"block\" or \"allow\".")
        }
    }

    private static func rule(_ value: JSONValue) throws(JSONShapeError) -> Rule {
        let fields = try JSONFields(value)
        let field: Rule.Field =
            switch try fields.string("field") {
            case "connection_id": .connectionID
            case "client_id": .clientID
            case "kind": .kind
            default: throw JSONShapeError("\"field\" has to be \"connection_id\", \"client_id\" or \"kind\".")
            }
        let comparison: Rule.Operator =
            switch try fields.string("operator") {
            case "is_in": .isIn
            case "is_not_in": .isNotIn
            default: throw JSONShapeError("\"operator\" has to be \"is_in\" or \"is_not_in\".")
            }
        guard let values = try fields.strings("values", countMax: valuesMax) else {
            throw JSONShapeError("\"values\" of a rule is missing.")
        }
        if field == .kind, let wrong = values.first(where: { $0 != "audio" && $0 != "video" }) {
            throw JSONShapeError("\"\(wrong)\" is not a kind of media: \"values\" may have \"audio\" and \"video\".")
        }
        return Rule(field: field, operator: comparison, values: values)
    }

    private static func json(_ rule: Rule) -> JSONValue {
        let field =
            switch rule.field {
            case .connectionID: "connection_id"
            case .clientID: "client_id"
            case .kind: "kind"
            }
        return [
            "field": .string(field), "operator": rule.operator == .isIn ? "is_in" : "is_not_in",
            "values": .array(rule.values.map { .string($0) }),
        ]
    }
}
