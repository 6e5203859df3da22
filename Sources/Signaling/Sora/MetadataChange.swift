import JSON

/// A change of the metadata that other clients know of a client.
enum MetadataChange: Hashable, Sendable {
    /// Replaces all.
    case whole(JSONValue)
    /// Sets one member of an object.
    case item(String, JSONValue)

    /// The changed metadata.
    ///
    /// - Parameter present: the metadata as JSON text; `nil` for none.
    /// - Throws: the failure when the result is no object, or too long.
    func applied(to present: String?) throws(RequestFailure) -> JSONValue {
        let changed: JSONValue
        switch self {
        case .whole(let metadata): changed = metadata
        case .item(let key, let value):
            var members: [String: JSONValue] = [:]
            if let present, let known = try? JSONValue(parsing: present), !known.isNull {
                guard let object = known.object else {
                    throw RequestFailure(
                        .parametersInvalid,
                        "The present metadata is no object, so it has no items; put an object as metadata first."
                    )
                }
                members = object
            }
            members[key] = value
            changed = .object(members)
        }
        guard changed.bytes.count <= SoraConnect.notifyMetadataBytesMax else {
            throw RequestFailure(
                .parametersInvalid,
                "The metadata may have at most \(SoraConnect.notifyMetadataBytesMax) bytes."
            )
        }
        return changed
    }
}
