/// How much a receiver cares for one source beside its others, where its network does not carry all of them.
public enum SlotImportance: UInt8, Hashable, Sendable, Codable, CaseIterable, Comparable {
    /// One picture of many.
    case other
    /// Who speaks, or spoke a moment ago.
    case speaker
    /// A shared screen.
    case screen
    /// What the receiver looks at: pinned, or large on its stage.
    case stage

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// What a receiver prefers of one source. Room decides it.
public struct LayerPreference: Hashable, Sendable, Codable {
    /// The highest simulcast layer that it may get, or ``LayerChoice/nothing``.
    public var cap: LayerChoice
    /// Sources of a higher importance get their layers first where the rate does not suffice for all.
    public var importance: SlotImportance
    /// The height in pixels at which the receiver shows the source: a layer that is higher than the lowest one that fills it is
    /// not worth its rate. `nil` for as high as there is.
    public var height: Int?

    /// Without arguments: the richest layer, with no importance over other sources.
    public init(cap: LayerChoice = .richest, importance: SlotImportance = .other, height: Int? = nil) {
        self.cap = cap
        self.importance = importance
        self.height = height
    }
}
