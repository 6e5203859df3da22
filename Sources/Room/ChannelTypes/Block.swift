/// An operator's refusal of a user or a stream, until it expires or is lifted.
package struct Block: Hashable, Sendable, Codable {
    /// Who or what is refused.
    package enum Subject: Hashable, Sendable, Codable {
        /// A user, by client ID, in all channels.
        case user(String)
        /// A user, by client ID, in one channel.
        case member(String, of: ChannelName)
        /// Everyone who publishes to a channel. Viewers are admitted.
        case stream(ChannelName)
    }

    package let subject: Subject
    /// When it expires, in seconds since 1970 UTC; `nil` for never.
    package let untilUnixSeconds: Int64?

    package init(_ subject: Subject, untilUnixSeconds: Int64? = nil) {
        self.subject = subject
        self.untilUnixSeconds = untilUnixSeconds
    }

    /// Whether it has expired at a time in seconds since 1970 UTC.
    package func isOver(at unixSeconds: Int64) -> Bool { untilUnixSeconds.map { $0 <= unixSeconds } ?? false }
}

extension RoomTime {
    /// In seconds since 1970 UTC.
    package var unixSeconds: Int64 { unixNanoseconds / 1_000_000_000 }
}
