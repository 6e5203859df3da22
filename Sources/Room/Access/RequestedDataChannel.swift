package import JSON

/// A data channel for messages between clients, as a Sora client or authorization requests it (`data_channels`).
package struct RequestedDataChannel: Hashable, Sendable {
    /// As the client sees it.
    package enum Direction: String, Hashable, Sendable, CaseIterable { case sendrecv, sendonly, recvonly }

    /// The most channels of a client.
    package static let channelsMax = 64
    /// The longest label and subprotocol, in bytes.
    package static let textBytesMax = 64
    private static let headersMax = 8

    /// Starts with `#`.
    package var label: String
    package var direction: Direction
    package var isOrdered: Bool
    /// In milliseconds. Without this and `retransmitsMax` the channel is reliable.
    package var packetLifetimeMax: Int?
    package var retransmitsMax: Int?
    /// Empty for none.
    package var subprotocol: String
    package var isCompressed: Bool
    /// Whether each message to the client begins with the `connection_id` of its sender.
    package var hasSenderHeader: Bool

    /// A reliable channel in both directions.
    package init(label: String) {
        self.label = label
        direction = .sendrecv
        isOrdered = true
        subprotocol = ""
        isCompressed = false
        hasSenderHeader = false
    }

    /// - Throws: a sentence that names the first invalid member.
    package init(_ members: [String: JSONValue]) throws(JSONShapeError) {
        let fields = JSONFields(members)
        label = try fields.requiredString("label", bytesMax: Self.textBytesMax)
        guard label.utf8.first == UInt8(ascii: "#"), label.utf8.count > 1 else {
            throw JSONShapeError(
                "The \"label\" of a data channel has to start with \"#\" and to have a name behind it."
            )
        }
        guard let direction: Direction = try fields.choice("direction") else {
            throw JSONShapeError("\"direction\" of a data channel is missing.")
        }
        self.direction = direction
        isOrdered = try fields.bool("ordered") ?? true
        packetLifetimeMax = try fields.integer("max_packet_life_time", 0...65_535)
        retransmitsMax = try fields.integer("max_retransmits", 0...65_535)
        guard packetLifetimeMax == nil || retransmitsMax == nil else {
            throw JSONShapeError("A data channel has either \"max_packet_life_time\" or \"max_retransmits\".")
        }
        subprotocol = try fields.string("protocol", bytesMax: Self.textBytesMax) ?? ""
        isCompressed = try fields.bool("compress") ?? false
        hasSenderHeader = false
        for header in try fields.objects("header", countMax: Self.headersMax) ?? [] {
            guard header["type"]?.string == "sender_connection_id" else {
                throw JSONShapeError("The only \"type\" of a \"header\" is \"sender_connection_id\".")
            }
            hasSenderHeader = true
        }
    }

    /// The channels of `data_channels`; `nil` without.
    package static func list(_ fields: JSONFields) throws(JSONShapeError) -> [Self]? {
        guard let objects = try fields.objects("data_channels", countMax: channelsMax) else { return nil }
        var channels: [Self] = []
        for object in objects {
            let channel = try Self(object)
            guard !channels.contains(where: { $0.label == channel.label }) else {
                throw JSONShapeError("\"data_channels\" has two channels of the label \"\(channel.label)\".")
            }
            channels.append(channel)
        }
        return channels
    }
}

extension RequestedDataChannel {
    /// An element of `data_channels`.
    package var json: JSONValue {
        var members: [String: JSONValue] = [
            "label": .string(label), "direction": .string(direction.rawValue), "ordered": .bool(isOrdered),
            "compress": .bool(isCompressed),
        ]
        members["max_packet_life_time"] = packetLifetimeMax.map { .integer($0) }
        members["max_retransmits"] = retransmitsMax.map { .integer($0) }
        if !subprotocol.isEmpty { members["protocol"] = .string(subprotocol) }
        if hasSenderHeader { members["header"] = [["type": "sender_connection_id"]] }
        return .object(members)
    }
}
