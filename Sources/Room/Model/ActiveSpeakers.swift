/// The focused members of a channel's session: those that were fixed, then those that spoke last.
///
/// Members that speak rank before those that are silent. Of two that speak the one that started later ranks first, of two
/// that are silent the one that stopped later. A member that is put into focus by hand counts as speaking until somebody
/// starts to speak.
struct ActiveSpeakers: Sendable, Codable {
    private struct Turn: Sendable, Codable {
        enum State: Sendable, Codable { case speaking, putForward, silent }
        var state: State
        /// When the state began, among all turns.
        var since: UInt64

        func comesBefore(_ other: Self) -> Bool {
            let (speaks, otherSpeaks) = (state != .silent, other.state != .silent)
            return speaks == otherSpeaks ? since > other.since : speaks
        }
    }
    private var turns: [ParticipantID: Turn] = [:]
    private var fixed: [ParticipantID: UInt64] = [:]
    private var turnNext: UInt64 = 0
    private var requestedNumber: Int?
    /// `nil` while nobody joined with spotlight.
    private var defaultNumber: Int?
    /// In the order of rank; empty while nobody uses the spotlight.
    private(set) var focused: [ParticipantID] = []

    /// Whether anybody joined with spotlight. Nobody is notified of focus before.
    var isInUse: Bool { defaultNumber != nil }
    /// How many are focused at most.
    var number: Int { requestedNumber ?? defaultNumber ?? Spotlight.numberDefault }
    func isFocused(_ id: ParticipantID) -> Bool { focused.contains(id) }
    func isFixed(_ id: ParticipantID) -> Bool { fixed[id] != nil }

    mutating func joined(with spotlight: Spotlight) {
        let nearest = { (number: Int) in
            min(max(number, Spotlight.numbers.lowerBound), Spotlight.numbers.upperBound)
        }
        defaultNumber = defaultNumber ?? nearest(spotlight.defaultNumber)
        requestedNumber = requestedNumber ?? spotlight.number.map(nearest)
    }

    mutating func change(number: Int) { requestedNumber = number }

    mutating func began(_ id: ParticipantID) {
        for (other, turn) in turns where turn.state == .putForward { turns[other]?.state = .silent }
        turns[id] = Turn(state: .speaking, since: turn())
    }

    mutating func ceased(_ id: ParticipantID) {
        guard turns[id]?.state == .speaking else { return }
        turns[id] = Turn(state: .silent, since: turn())
    }

    mutating func putForward(_ id: ParticipantID, isFixed: Bool) {
        turns[id] = Turn(state: .putForward, since: turn())
        fixed[id] = isFixed ? fixed[id] ?? turn() : nil
    }

    /// Removes a member from the ranking until it speaks again.
    mutating func dismiss(_ id: ParticipantID) {
        turns[id] = nil
        fixed[id] = nil
    }

    /// Ranks everybody, and returns whose focus changed.
    mutating func update() -> (focused: [ParticipantID], unfocused: [ParticipantID]) {
        guard isInUse else { return ([], []) }
        let pinned = fixed.sorted { $0.value < $1.value }.map(\.key)
        let ranked = turns.filter { fixed[$0.key] == nil }.sorted { $0.value.comesBefore($1.value) }.map(\.key)
        let before = focused
        focused = Array((pinned + ranked).prefix(number))
        return (focused.filter { !before.contains($0) }, before.filter { !focused.contains($0) })
    }

    private mutating func turn() -> UInt64 {
        turnNext += 1
        return turnNext
    }
}
