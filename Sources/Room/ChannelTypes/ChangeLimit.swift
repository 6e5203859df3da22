/// What happened to a change of a member beyond its budget.
package enum ChangeLimit: String, Hashable, Sendable, Codable, CaseIterable {
    /// Others are told later, of the latest state only.
    case delayed
    /// The member was told to repeat it later.
    case refused
}
