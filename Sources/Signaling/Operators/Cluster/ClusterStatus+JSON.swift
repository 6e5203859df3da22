import Base
import ChannelTypes
import JSON
import MediaTypes
import Web

extension ClusterStatus {
    /// The document of `/clusterz` and `GET /v1/cluster`.
    var document: JSONValue {
        [
            "cluster": .string(name), "node": .string(own.name), "incarnation": .string(own.incarnation.description),
            "store": .string(store.rawValue),
            "nodes": .array([own.document(isOwn: true)] + others.map { $0.document(isOwn: false) }),
            "rooms_by_nodes": .array(
                roomsByNodeCount.sorted { $0.key < $1.key }.map { count, rooms in
                    ["nodes": .integer(count), "rooms": .integer(rooms)]
                }
            ),
        ]
    }

    /// The schema of the ``document``.
    static let schema = APISchema.object([
        APIProperty("cluster", .string(0...255), required: true, "The cluster's name."),
        APIProperty("node", .string(0...255), required: true, "The name of the node that answers."),
        APIProperty("incarnation", .string(6...6), required: true, "The run of the node that answers."),
        APIProperty(
            "store",
            .choice(StoreState.allCases.map(\.rawValue)),
            required: true,
            "The directory that the nodes share: none when the cluster runs without one. Calls do not need it."
        ),
        APIProperty(
            "nodes",
            .array(Node.schema, 1...100_000, isUnique: false),
            required: true,
            "The node that answers, then the others by name, those that it ignores last."
        ),
        APIProperty(
            "rooms_by_nodes",
            .array(
                .object([
                    APIProperty("nodes", .integer(1...100_000), required: true, "So many nodes have them."),
                    APIProperty("rooms", .integer(0...Int64(Int32.max)), required: true, "Channels of this node."),
                ]),
                0...100_000,
                isUnique: false
            ),
            required: true,
            "How many channels of the node that answers are shared with how many nodes, itself included."
        ),
    ])
}

extension ClusterStatus.Node {
    /// The text of no link.
    static let noLink = "none"

    fileprivate func document(isOwn: Bool) -> JSONValue {
        var members: [String: JSONValue] = [
            "name": .string(name), "incarnation": .string(incarnation.description), "state": .string(state.rawValue),
            "region": .string(region), "zone": .string(zone), "version": .string(version), "load": .integer(load),
            "members": .integer(self.members), "rooms": .integer(rooms), "absent": .bool(isAbsent),
            "ignored": .bool(isIgnored),
        ]
        members["address"] = address.map { .string($0.url) }
        if !isOwn { members["link"] = .string(link?.rawValue ?? Self.noLink) }
        members["round_trip_us"] = roundTrip.map { .integer($0.nanoseconds / 1_000) }
        return .object(members)
    }

    fileprivate static let schema = APISchema.object([
        APIProperty("name", .string(0...255), required: true, "The same after a restart."),
        APIProperty("incarnation", .string(6...6), required: true, "The run of the node; the greatest is the last."),
        APIProperty(
            "state",
            .choice(NodeState.allCases.map(\.rawValue)),
            required: true,
            "Where the node is between its start and its end."
        ),
        APIProperty("address", .string(1...255), "Where clients reach it; absent when it did not tell."),
        APIProperty("region", .string(0...255), required: true, "Empty without one."),
        APIProperty("zone", .string(0...255), required: true, "Empty without one."),
        APIProperty("version", .string(0...255), required: true, "The version of its program."),
        APIProperty("load", .integer(0...100), required: true, "In per cent of what it can carry."),
        APIProperty("members", .integer(0...Int64(Int32.max)), required: true, "Its clients."),
        APIProperty("rooms", .integer(0...Int64(Int32.max)), required: true, "Its channels."),
        APIProperty(
            "absent",
            .boolean,
            required: true,
            "Whether the store has not heard of it for a while. It gets no new channels; its calls go on."
        ),
        APIProperty(
            "ignored",
            .boolean,
            required: true,
            "Whether the node that answers ignores it, because the cluster's secret did not sign its record in the store."
        ),
        APIProperty(
            "link",
            .choice([noLink] + LinkState.allCases.map(\.rawValue)),
            "The link from the node that answers; absent for that node itself."
        ),
        APIProperty("round_trip_us", .integer(0...Int64.max), "Of the link, in microseconds, once it is measured."),
    ])
}
