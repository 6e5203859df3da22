internal import JSON
internal import Room

/// What a node keeps on disk, to find the others when it starts without the store.
package struct SavedView: Hashable, Sendable {
    /// The longest file that is read, in bytes.
    package static let bytesMax = 2 << 20

    /// The run that saved it. The view of another node is of no use.
    package var instance: NodeInstance
    package var members: [HeartbeatAnswer.Change]

    package init(instance: NodeInstance, members: [HeartbeatAnswer.Change]) {
        self.instance = instance
        self.members = members
    }

    /// The view as JSON. The records of later versions keep only what this version knows.
    package var encoded: String {
        let members: [JSONValue] = members.compactMap { member in
            guard let record = member.record.encoded() else { return nil }
            return ["node": .string(member.instance.description), "record": .string(record)]
        }
        return JSONValue.object(["node": .string(instance.description), "members": .array(members)]).text
    }

    /// - Returns: `nil` when the text is no saved view. A member that is not understood is left out.
    package init?(encoded text: String) {
        guard text.utf8.count <= Self.bytesMax,
            let fields = (try? JSONValue(parsing: text)).flatMap({ try? JSONFields($0) }),
            let instance = (try? fields.requiredString("node")).flatMap(NodeInstance.init),
            let objects = try? fields.objects("members", countMax: ClusterView.nodesMax)
        else { return nil }
        self.instance = instance
        members = objects.compactMap { object in
            guard let instance = object["node"]?.string.flatMap(NodeInstance.init),
                let record = object["record"]?.string.flatMap(NodeRecord.init(encoded:))
            else { return nil }
            return HeartbeatAnswer.Change(instance: instance, record: record)
        }
    }
}
