/// Who of a channel's session is focused: those that were fixed, then those that spoke last.
///
/// Who speaks now comes before who spoke; of two that speak the one that began later comes first, of two that are
/// silent the one that fell silent later. One that is put into focus by hand counts as speaking until somebody begins
/// to.
struct SpotlightStage: Sendable {
    private struct Turn: Sendable {
        enum State: Sendable { case speaking, putForward, silent }
        var state: State
        /// When the state began, among all the stage's turns.
        var since: UInt64

        func comesBefore(_ other: Self) -> Bool {
            let (speaks, otherSpeaks) = (state != .silent, other.state != .silent)
            return speaks == otherSpeaks ? since > other.since : speaks
        }
    }
    private var turns: [ParticipantID: Turn] = [:]
    private var fixed: [ParticipantID: UInt64] = [:]
    private var turnNext: UInt64 = 0
    private var numberSaid: Int?
    /// `nil` while nobody joined with spotlight.
    private var numberUnsaid: Int?
    /// In the order of rank; empty while the stage is not in use.
    private(set) var focused: [ParticipantID] = []

    /// Whether anybody here joined with spotlight; nothing is said of focus before.
    var isInUse: Bool { numberUnsaid != nil }
    /// How many are focused at most.
    var number: Int { numberSaid ?? numberUnsaid ?? Spotlight.numberDefault }
    func isFocused(_ id: ParticipantID) -> Bool { focused.contains(id) }
    func isFixed(_ id: ParticipantID) -> Bool { fixed[id] != nil }

    mutating func joined(with spotlight: Spotlight) {
        let nearest = { (number: Int) in
            min(max(number, Spotlight.numbers.lowerBound), Spotlight.numbers.upperBound)
        }
        numberUnsaid = numberUnsaid ?? nearest(spotlight.numberUnsaid)
        numberSaid = numberSaid ?? spotlight.number.map(nearest)
    }

    mutating func change(number: Int) { numberSaid = number }

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

    /// It is out of focus until it speaks again, or for good.
    mutating func dismiss(_ id: ParticipantID) {
        turns[id] = nil
        fixed[id] = nil
    }

    /// Ranks everybody anew, and says who came into focus and who fell out of it.
    mutating func settle() -> (focused: [ParticipantID], unfocused: [ParticipantID]) {
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
