/// The connected members of a channel.
package struct ChannelCounts: Hashable, Sendable, Codable {
    package var sendrecv: Int
    package var sendonly: Int
    package var recvonly: Int
    package var connections: Int { sendrecv + sendonly + recvonly }

    package init(sendrecv: Int = 0, sendonly: Int = 0, recvonly: Int = 0) {
        self.sendrecv = sendrecv
        self.sendonly = sendonly
        self.recvonly = recvonly
    }

    package func subtracting(_ other: Self) -> Self {
        Self(
            sendrecv: sendrecv - other.sendrecv,
            sendonly: sendonly - other.sendonly,
            recvonly: recvonly - other.recvonly
        )
    }

    package mutating func add(_ change: Int, _ role: Role) {
        switch role {
        case .sendrecv: sendrecv += change
        case .sendonly: sendonly += change
        case .recvonly: recvonly += change
        }
    }
}
