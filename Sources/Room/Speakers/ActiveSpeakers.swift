package import ChannelTypes

/// The members of a channel's session that are in focus: those that were fixed, then those that spoke last.
///
/// Members that speak rank before silent ones. Among speaking members the one that started last ranks first, among
/// silent ones the one that stopped last. A member that was focused by request counts as speaking until somebody starts
/// to speak.
package struct ActiveSpeakers: Sendable, Codable {
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
    /// Members that other nodes may fix: more than are ever in focus.
    private static let fixedMax = 64
    /// In the order of the requests. One without an entry has not come to this node yet, and is in focus when it does.
    package private(set) var fixed: [ParticipantID] = []
    private var changeNext: UInt64 = 0
    package private(set) var requestedNumber: Int?
    /// `nil` while nobody joined with spotlight.
    private var defaultNumber: Int?
    /// In the order of rank; empty while nobody uses the spotlight.
    package private(set) var focused: [ParticipantID] = []

    package init() {}

    /// Whether anybody joined with spotlight. Nobody is notified of focus before.
    package var isInUse: Bool { defaultNumber != nil }
    /// The most members in focus.
    package var number: Int { requestedNumber ?? defaultNumber ?? Spotlight.numberDefault }
    package func isFocused(_ id: ParticipantID) -> Bool { focused.contains(id) }
    package func isFixed(_ id: ParticipantID) -> Bool { fixed.contains(id) }

    package mutating func joined(with spotlight: Spotlight) {
        let nearest = { (number: Int) in
            min(max(number, Spotlight.numbers.lowerBound), Spotlight.numbers.upperBound)
        }
        defaultNumber = defaultNumber ?? nearest(spotlight.defaultNumber)
        requestedNumber = requestedNumber ?? spotlight.number.map(nearest)
    }

    package mutating func change(number: Int) { requestedNumber = number }

    package mutating func startedSpeaking(_ id: ParticipantID) {
        for (other, entry) in entries where entry.state == .focusedByRequest { entries[other]?.state = .silent }
        entries[id] = Entry(state: .speaking, since: nextChange())
    }

    package mutating func stoppedSpeaking(_ id: ParticipantID) {
        guard entries[id]?.state == .speaking else { return }
        entries[id] = Entry(state: .silent, since: nextChange())
    }

    package mutating func focus(_ id: ParticipantID, isFixed: Bool) {
        entries[id] = Entry(state: .focusedByRequest, since: nextChange())
        if !isFixed {
            fixed.removeAll { $0 == id }
        } else if !fixed.contains(id) {
            fixed.append(id)
        }
    }

    /// Takes over which members are fixed. Those that are not here yet are fixed when they come.
    package mutating func setFixed(_ members: [ParticipantID], isHere: (ParticipantID) -> Bool) {
        fixed = []
        for id in members.prefix(Self.fixedMax) where !fixed.contains(id) {
            fixed.append(id)
            if isHere(id) { _ = came(id) }
        }
    }

    /// A member may be in focus from now on.
    /// - Returns: whether it is fixed and was not here before.
    package mutating func came(_ id: ParticipantID) -> Bool {
        guard fixed.contains(id), entries[id] == nil else { return false }
        entries[id] = Entry(state: .silent, since: nextChange())
        return true
    }

    /// Removes a member from the ranking until it speaks again.
    package mutating func remove(_ id: ParticipantID) {
        entries[id] = nil
        fixed.removeAll { $0 == id }
    }

    /// Ranks all members and returns those whose focus changed.
    package mutating func update() -> (focused: [ParticipantID], unfocused: [ParticipantID]) {
        guard isInUse else { return ([], []) }
        let pinned = fixed.filter { entries[$0] != nil }
        let others = entries.filter { !pinned.contains($0.key) }
        let ranked = others.sorted { $0.value.ranksAbove($1.value) }.map(\.key)
        let before = focused
        focused = Array((pinned + ranked).prefix(number))
        return (focused.filter { !before.contains($0) }, before.filter { !focused.contains($0) })
    }

    private mutating func nextChange() -> UInt64 {
        changeNext += 1
        return changeNext
    }
}
