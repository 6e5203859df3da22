import Forwarding
import Wire

/// The filters of a channel's session or of one receiver, in the order in which they decide.
struct FilterList: Sendable {
    private struct Compiled: Sendable {
        var filter: ForwardingFilter
        var rules: [[(field: ForwardingFilter.Rule.Field, isIn: Bool, values: Set<String>)]]

        init(_ filter: ForwardingFilter) {
            self.filter = filter
            rules = filter.rules.map { $0.map { ($0.field, $0.operator == .isIn, Set($0.values)) } }
        }

        func fits(_ source: Source, _ kind: MediaKind) -> Bool {
            rules.contains { all in
                all.allSatisfy { rule in
                    let value =
                        switch rule.field {
                        case .connectionID: source.id.value
                        case .clientID: source.clientID
                        case .kind: kind.rawValue
                        }
                    return rule.values.contains(value) == rule.isIn
                }
            }
        }
    }
    private var list: [Compiled] = []

    init() {}

    /// Throws ``RoomError/filterExists`` for two of one name, and ``RoomError/filtersTooLarge``.
    init(_ filters: [ForwardingFilter]) throws(RoomError) {
        for filter in filters { try create(filter) }
    }

    var filters: [ForwardingFilter] { list.map(\.filter) }
    var isEmpty: Bool { list.isEmpty }

    mutating func create(_ filter: ForwardingFilter) throws(RoomError) {
        guard !list.contains(where: { $0.filter.name == filter.name }) else { throw .filterExists }
        guard filter.isWithinLimits, list.count < ForwardingFilter.filtersMax else { throw .filtersTooLarge }
        insert(filter)
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` takes any.
    mutating func update(_ filter: ForwardingFilter, expected: String?) throws(RoomError) {
        let index = try index(of: filter.name, expected: expected)
        guard filter.isWithinLimits else { throw .filtersTooLarge }
        if list[index].filter.priority == filter.priority {
            list[index] = Compiled(filter)
        } else {
            list.remove(at: index)
            insert(filter)
        }
    }

    mutating func delete(_ name: String, expected: String?) throws(RoomError) {
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

    func blocks(_ source: Source, _ kind: MediaKind) -> Bool {
        guard !list.isEmpty else { return false }
        if let first = list.first(where: { $0.fits(source, kind) }) { return first.filter.action == .block }
        return list.contains { $0.filter.action == .allow && !$0.rules.isEmpty }
    }
}
