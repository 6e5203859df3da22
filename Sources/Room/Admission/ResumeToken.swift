package import ChannelTypes

/// The token with which a client takes its place again: its participant and a secret of 128 random bits.
package struct ResumeToken {
    package let participant: ParticipantID
    package let secret: Substring

    /// `nil` for another form.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let participant = ParticipantID(parts[0]), !parts[1].isEmpty else { return nil }
        self.participant = participant
        secret = parts[1]
    }

    package static func text(_ participant: ParticipantID, secret: String) -> String {
        "\(participant.value).\(secret)"
    }
}
