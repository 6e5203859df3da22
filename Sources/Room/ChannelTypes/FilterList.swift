package import Wire

/// The filters of a channel's session or of one receiver, in the order of evaluation.
package struct FilterList: Sendable, Codable {
    private struct Compiled: Sendable {
        var filter: ForwardingFilter
        var rules: [[(field: ForwardingFilter.Rule.Field, isIn: Bool, values: Set<String>)]]

        init(_ filter: ForwardingFilter) {
            self.filter = filter
            rules = filter.rules.map { $0.map { ($0.field, $0.operator == .isIn, Set($0.values)) } }
        }

        /// - Parameter visited: the number of visited rules is added to it.
        func matches(_ connectionID: String, _ clientID: String, _ kind: MediaKind, visited: inout Int) -> Bool {
            for all in rules {
                var holds = true
                for rule in all where holds {
                    let value =
                        switch rule.field {
                        case .connectionID: connectionID
                        case .clientID: clientID
                        case .kind: kind.rawValue
                        }
                    visited += 1
                    holds = rule.values.contains(value) == rule.isIn
                }
                if holds { return true }
            }
            return false
        }
    }
    private var list: [Compiled] = []

    package init() {}

    package init(from decoder: any Decoder) throws {
        list = try decoder.singleValueContainer().decode([ForwardingFilter].self).map(Compiled.init)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(filters)
    }

    /// Throws ``RoomError/filterExists`` for two of one name, and ``RoomError/filtersTooLarge``.
    package init(_ filters: [ForwardingFilter]) throws(RoomError) {
        for filter in filters { try create(filter) }
    }

    package var filters: [ForwardingFilter] { list.map(\.filter) }
    package var isEmpty: Bool { list.isEmpty }

    package mutating func create(_ filter: ForwardingFilter) throws(RoomError) {
        guard !list.contains(where: { $0.filter.name == filter.name }) else { throw .filterExists }
        guard list.count < ForwardingFilter.filtersMax else { throw .filtersTooLarge }
        try checkSize(with: filter)
        insert(filter)
    }

    /// Refuses a filter that would make the list too large once it replaces the one of its name.
    private func checkSize(with filter: ForwardingFilter) throws(RoomError) {
        let others = list.lazy.map(\.filter).filter { $0.name != filter.name }
        let rules = others.reduce(filter.ruleCount) { $0 + $1.ruleCount }
        let values = others.reduce(filter.valueCount) { $0 + $1.valueCount }
        guard filter.isWithinLimits, rules <= ForwardingFilter.rulesMax, values <= ForwardingFilter.valuesMax
        else { throw .filtersTooLarge }
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` accepts any.
    package mutating func update(_ filter: ForwardingFilter, expected: String?) throws(RoomError) {
        let index = try index(of: filter.name, expected: expected)
        try checkSize(with: filter)
        if list[index].filter.priority == filter.priority {
            list[index] = Compiled(filter)
        } else {
            list.remove(at: index)
            insert(filter)
        }
    }

    package mutating func delete(_ name: String, expected: String?) throws(RoomError) {
        list.remove(at: try index(of: name, expected: expected))
    }

    private func index(of name: String, expected: String?) throws(RoomError) -> Int {
        guard let index = list.firstIndex(where: { $0.filter.name == name }) else { throw .filterUnknown }
        guard expected == nil || expected == list[index].filter.version else { throw .filterVersionMismatch }
        return index
    }

    private mutating func insert(_ filter: ForwardingFilter) {
        let place = list.firstIndex { $0.filter.priority < filter.priority } ?? list.endIndex
        list.insert(Compiled(filter), at: place)
    }

    /// The kinds of a sender's media that the filters block. The verdict does not change while the sender is connected.
    ///
    /// - Parameters:
    ///   - connectionID: the sender's connection.
    ///   - clientID: what the sender calls itself.
    ///   - visited: the number of visited rules is added to it.
    package func verdict(on connectionID: String, _ clientID: String, visited: inout Int) -> FilterDecision {
        guard !list.isEmpty else { return FilterDecision() }
        let blocks = { (kind: MediaKind, visited: inout Int) in
            if let first = list.first(where: { $0.matches(connectionID, clientID, kind, visited: &visited) }) {
                return first.filter.action == .block
            }
            return list.contains { $0.filter.action == .allow && !$0.rules.isEmpty }
        }
        return FilterDecision(audio: blocks(.audio, &visited), video: blocks(.video, &visited))
    }
}

/// The kinds of one sender's media that filters block for a receiver.
package struct FilterDecision: Hashable, Sendable, Codable {
    package var audio: Bool
    package var video: Bool

    package init(audio: Bool = false, video: Bool = false) {
        self.audio = audio
        self.video = video
    }

    package func blocks(_ kind: MediaKind) -> Bool {
        switch kind {
        case .audio: audio
        case .video: video
        }
    }
}
