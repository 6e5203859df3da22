internal import JSON
package import MediaTypes
internal import Room

/// A node as it introduces itself on a link.
package struct LinkHello: Hashable, Sendable {
    /// The versions of the link's protocol that this build speaks. A later build speaks the last one of this build too.
    package static let versions: ClosedRange<Int> = 1...1

    package var cluster: ClusterName
    package var instance: NodeInstance
    /// The incarnation in the locations and identifiers of its members: that of the store, or the provisional one that the
    /// node started with.
    package var media: NodeIncarnation
    package var versions: ClosedRange<Int> = Self.versions
    /// Where clients reach the node's signaling, at most 255 bytes; empty when other nodes send it no clients. They follow with
    /// their tokens, so it holds as the node itself says it, and not as the store tells it (``NodeRecord/publicURL``).
    package var publicURL = ""

    package init(cluster: ClusterName, instance: NodeInstance, media: NodeIncarnation) {
        self.cluster = cluster
        self.instance = instance
        self.media = media
    }

    /// Whether a run of the node said it. A node that started while the store was away goes on with the hello that it began with,
    /// so one of a provisional incarnation may be of any run.
    func mayBeOf(_ run: NodeInstance) -> Bool {
        instance.node == run.node && (instance == run || !instance.incarnation.isAssigned)
    }

    /// The highest version that both sides speak; `nil` without any.
    package func version(with other: Self) -> Int? {
        let version = min(versions.upperBound, other.versions.upperBound)
        return version >= max(versions.lowerBound, other.versions.lowerBound) ? version : nil
    }

    var encoded: [UInt8] {
        var object: [String: JSONValue] = [
            "cluster": .string(cluster.rawValue), "node": .string(instance.description),
            "media": .integer(Int(media.rawValue)), "min": .integer(versions.lowerBound),
            "max": .integer(versions.upperBound),
        ]
        if !publicURL.isEmpty { object["url"] = .string(publicURL) }
        return Array(JSONValue.object(object).text.utf8)
    }

    /// Fields that are not known are ignored.
    /// - Returns: `nil` for bytes that are no hello.
    init?(encoded bytes: some Collection<UInt8>) {
        guard bytes.count <= LinkFrame.helloBytesMax,
            let value = try? JSONValue(parsing: Array(bytes)), let fields = try? JSONFields(value),
            let cluster = (try? fields.requiredString("cluster")).flatMap(ClusterName.init(rawValue:)),
            let instance = (try? fields.requiredString("node")).flatMap(NodeInstance.init),
            let media = (try? fields.integer("media", 0...Int(UInt32.max))).flatMap(\.self)
                .flatMap({ NodeIncarnation(rawValue: UInt32(truncatingIfNeeded: $0)) }),
            let least = (try? fields.integer("min", 0...255)).flatMap(\.self),
            let most = (try? fields.integer("max", 0...255)).flatMap(\.self), least <= most,
            let url = try? fields.string("url") ?? ""
        else { return nil }
        self.cluster = cluster
        self.instance = instance
        self.media = media
        versions = least...most
        publicURL = url
    }
}
