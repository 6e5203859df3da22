/// The members of a channel's session that are in focus: those that were fixed, then those that spoke last.
///
/// Members that speak rank before silent ones. Among speaking members the one that started last ranks first, among
/// silent ones the one that stopped last. A member that was focused by request counts as speaking until somebody starts
/// to speak.
struct ActiveSpeakers: Sendable, Codable {
    private struct Entry: Sendable, Codable {
        enum State: Sendable, Codable { case speaking, focusedByRequest, silent }
        var state: State
        /// The number of the change that began the state.
        var since: UInt64

        func ranksAbove(_ other: Self) -> Bool {
            let (speaks, otherSpeaks) = (state != .silent, other.state != .silent)
            return speaks == otherSpeaks ? since > other.since : speaks
        }
    }
    private var entries: [ParticipantID: Entry] = [:]
    private var fixed: [ParticipantID: UInt64] = [:]
    private var changeNext: UInt64 = 0
    private(set) var requestedNumber: Int?
    /// `nil` while nobody joined with spotlight.
    private var defaultNumber: Int?
    /// In the order of rank; empty while nobody uses the spotlight.
    private(set) var focused: [ParticipantID] = []

    /// Whether anybody joined with spotlight. Nobody is notified of focus before.
    var isInUse: Bool { defaultNumber != nil }
    /// The most members in focus.
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

    mutating func startedSpeaking(_ id: ParticipantID) {
        for (other, entry) in entries where entry.state == .focusedByRequest { entries[other]?.state = .silent }
        entries[id] = Entry(state: .speaking, since: nextChange())
    }

    mutating func stoppedSpeaking(_ id: ParticipantID) {
        guard entries[id]?.state == .speaking else { return }
        entries[id] = Entry(state: .silent, since: nextChange())
    }

    mutating func focus(_ id: ParticipantID, isFixed: Bool) {
        entries[id] = Entry(state: .focusedByRequest, since: nextChange())
        fixed[id] = isFixed ? fixed[id] ?? nextChange() : nil
    }

    /// Removes a member from the ranking until it speaks again.
    mutating func remove(_ id: ParticipantID) {
        entries[id] = nil
        fixed[id] = nil
    }

    /// Ranks all members and returns those whose focus changed.
    mutating func update() -> (focused: [ParticipantID], unfocused: [ParticipantID]) {
        guard isInUse else { return ([], []) }
        let pinned = fixed.sorted { $0.value < $1.value }.map(\.key)
        let ranked = entries.filter { fixed[$0.key] == nil }.sorted { $0.value.ranksAbove($1.value) }.map(\.key)
        let before = focused
        focused = Array((pinned + ranked).prefix(number))
        return (focused.filter { !before.contains($0) }, before.filter { !focused.contains($0) })
    }

    private mutating func nextChange() -> UInt64 {
        changeNext += 1
        return changeNext
    }
}
