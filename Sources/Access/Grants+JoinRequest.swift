import JSON
package import Room

extension Grants {
    /// The rate that the client's video is told; audio, headers and retransmissions take the rest of the permitted one.
    package var announcedVideoBitsPerSecond: Int? { permissions.publishBitsPerSecondMax.map { $0 / 100 * 85 } }

    /// Applies the overrides that every signaling protocol has to a request to join.
    package func apply(to request: inout JoinRequest) {
        if let clientID {
            request.clientID = clientID
            request.bundleScope = .client(clientID)
        }
        if let bundleID {
            request.bundleID = bundleID
            request.bundleScope = .granted
        }
        if let eventMetadata { request.eventMetadataJSON = eventMetadata.text }
        if let notifyMetadata { request.authorizedMetadataJSON = notifyMetadata.text }
        if let notifies { request.receivesNotifications = notifies }
        if let requestedRID { request.layer = requestedRID.layer }
        if let forwardingFilters { request.filters = request.role.watches ? forwardingFilters : [] }
        if let lifetime = permissions.lifetime { request.lifetime = lifetime }
        if let most = permissions.publishBitsPerSecondMax { request.publishBitsPerSecondMax = most }
        if let most = permissions.channelConnectionsMax { request.channelConnectionsMax = most }
    }
}
