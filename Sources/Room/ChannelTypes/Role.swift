/// Whether a participant sends media, receives media, or both.
package enum Role: String, Hashable, Sendable, Codable, CaseIterable {
    case sendonly, recvonly, sendrecv
    package var publishes: Bool { self != .recvonly }
    package var watches: Bool { self != .sendonly }
}

/// Which participants' tracks a viewer's slots play.
package enum Following: Hashable, Sendable, Codable {
    /// The live publisher of the channel that went live last.
    case currentPublisher
    /// One participant; nothing after its end, because identifiers are not reused.
    case participant(ParticipantID)
    /// Every live publisher except the participant itself and those of its bundle, each in slots of its own.
    case everyone
}
