import Foundation
package import Room

/// What nodes tell each other of channels over their link, as JSON. Fields that are not known are ignored, and a message
/// that is not understood is dropped and counted.
package enum ChannelMessage: Hashable, Sendable, Codable {
    case news(ChannelName, ChannelNews)
    /// The sender does not have the channel.
    case gone(ChannelName)
    /// The sender has the channel and needs all news of it.
    case want(ChannelName)
    case request(ChannelName, MemberRequest)
    /// Channels that the sender has, for a node that is asked for them while there is no store.
    case keep([ChannelName])

    var channel: ChannelName? {
        switch self {
        case .news(let channel, _), .gone(let channel), .want(let channel), .request(let channel, _): channel
        case .keep: nil
        }
    }

    package var encoded: [UInt8] {
        // Every part of a message can be encoded.
        guard let data = try? JSONEncoder().encode(self) else { return [] }
        return Array(data)
    }

    /// `nil` for bytes that are no message.
    package init?(encoded bytes: [UInt8]) {
        guard let message = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = message
    }
}
