package import ChannelTypes
internal import JSON
internal import MediaTypes

/// What a node tells the others about itself, through the store.
package struct NodeRecord: Hashable, Sendable {
    /// The most bytes of a record in the store, with its signature.
    package static let bytesMax = 400
    /// How many of them are kept for the signature: see ``RecordSigner``.
    static let signatureBytes = 39
    /// Loads are told in steps of this many per cent, so that a record seldom changes.
    package static let loadStep = 5

    package var state: NodeState
    package var region = ""
    package var zone = ""
    /// Where clients reach the node's signaling, by which other nodes see that it takes clients of theirs. They are sent where the
    /// node itself says: see ``LinkHello/publicURL``.
    package var publicURL = ""
    /// Where other nodes reach it.
    package var linkAddress = ""
    package var build = ""
    /// In per cent of what the node can carry, a multiple of ``loadStep``.
    package private(set) var load = 0
    package var members = 0
    package var rooms = 0

    package init(state: NodeState) { self.state = state }

    /// Rounds the load up to a step. What is above 100 % or no number counts as full.
    /// - Parameter fraction: 1 is as much as the node can carry.
    package mutating func setLoad(_ fraction: Double) {
        guard fraction < 1 else {
            load = 100
            return
        }
        let steps = (max(fraction, 0) * 100 / Double(Self.loadStep)).rounded(.up)
        load = Int(steps) * Self.loadStep
    }

    /// The record without what changes all the time: records that differ otherwise are worth telling at once.
    var withoutMeasurements: NodeRecord {
        var record = self
        record.load = 0
        record.members = 0
        record.rooms = 0
        return record
    }

    /// The record as JSON with short names; `nil` when it is longer than ``bytesMax`` with a signature.
    package func encoded() -> String? {
        var object: [String: JSONValue] = [
            "s": .string(state.rawValue), "l": .integer(load), "m": .integer(members), "n": .integer(rooms),
        ]
        for (name, text) in [("r", region), ("z", zone), ("u", publicURL), ("k", linkAddress), ("b", build)]
        where !text.isEmpty {
            object[name] = .string(text)
        }
        let text = JSONValue.object(object).text
        return text.utf8.count <= Self.bytesMax - Self.signatureBytes ? text : nil
    }

    /// Members of an object that are not known are ignored, because later versions may add some.
    /// - Returns: `nil` when the text is not a record.
    package init?(encoded text: String) {
        guard text.utf8.count <= Self.bytesMax, let value = try? JSONValue(parsing: Array(text.utf8)),
            let fields = try? JSONFields(value), let state = try? fields.choice("s", as: NodeState.self)
        else { return nil }
        do throws(JSONShapeError) {
            self.state = state
            region = try fields.string("r") ?? ""
            zone = try fields.string("z") ?? ""
            publicURL = try fields.string("u") ?? ""
            linkAddress = try fields.string("k") ?? ""
            build = try fields.string("b") ?? ""
            load = try fields.integer("l", 0...100) ?? 0
            members = try fields.integer("m", 0...Int(Int32.max)) ?? 0
            rooms = try fields.integer("n", 0...Int(Int32.max)) ?? 0
        } catch { return nil }
    }
}

/// A record would have more than ``NodeRecord/bytesMax`` bytes with its signature: its addresses and names are too long.
package struct RecordTooLong: Error, Hashable, Sendable {}

extension NodeRecord {
    func requireLength() throws(RecordTooLong) {
        guard encoded() != nil else { throw RecordTooLong() }
    }
}
