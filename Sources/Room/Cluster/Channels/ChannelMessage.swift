package import ChannelTypes
import Foundation
package import Room

/// What nodes tell each other of channels over their link: the length of a JSON text in four bytes, the text, and for
/// ``data(_:sender:label:isText:)`` the message.
///
/// Fields that are not known are ignored. A message that is not understood is dropped and counted.
package enum ChannelMessage: Hashable, Sendable, Codable {
    case news(ChannelName, ChannelUpdate)
    /// The sender does not have the channel, perhaps because its session ended.
    case gone(ChannelName, ended: ChannelSession?)
    /// The sender has the channel and needs all news of it.
    case want(ChannelName)
    /// The receiver performs its part of a command that the sender performed.
    case command(ChannelName, ChannelCommand)
    /// The sender refused a command of the receiver. `command` is its name, and `reason` a sentence or the error's name.
    case refused(ChannelName, command: String, reason: String)
    /// A message of a participant's data channel.
    case data(ChannelName, sender: ParticipantID, label: String, isText: Bool)
    /// Channels that the sender has, for a node that is asked for them while there is no store.
    case keep([ChannelName])

    var channel: ChannelName? {
        switch self {
        case .news(let channel, _), .gone(let channel, _), .want(let channel), .command(let channel, _),
            .refused(let channel, _, _), .data(let channel, _, _, _):
            channel
        case .keep: nil
        }
    }

    /// - Parameter attachment: the bytes of ``data(_:sender:label:isText:)``.
    package func encoded(with attachment: [UInt8] = []) -> [UInt8] {
        // Every part of a message can be encoded.
        guard let text = try? JSONEncoder().encode(self) else { return [] }
        return LengthPrefix.prepend(to: text) + attachment
    }

    /// `nil` for bytes that are no message. A message is not whole when records of a later version were left out of it.
    package static func decode(_ bytes: [UInt8]) -> (message: Self, attachment: [UInt8], isWhole: Bool)? {
        let content = bytes.dropFirst(LengthPrefix.bytes)
        let decoder = JSONDecoder()
        let unknown = UnknownElements()
        if let key = UnknownElements.key { decoder.userInfo[key] = unknown }
        guard let length = LengthPrefix.read(bytes[...]), length <= content.count,
            let message = try? decoder.decode(Self.self, from: Data(content.prefix(length)))
        else { return nil }
        return (message, Array(content.dropFirst(length)), unknown.count == 0)
    }
}
