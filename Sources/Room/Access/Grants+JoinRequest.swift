package import ChannelTypes
import JSON

extension Grants {
    /// The bit rate announced to the client for its video. Audio, headers and retransmissions take the rest of
    /// `publish_bit_rate`.
    package var announcedVideoBitsPerSecond: Int? { permissions.publishBitsPerSecondMax.map { $0 / 100 * 85 } }

    /// Applies the permissions and overrides that all signaling protocols have in common.
    package func apply(to request: inout JoinRequest) {
        if let clientID {
            request.clientID = clientID
            request.user = UserIdentity(clientID, .authorized)
            request.bundleScope = .client(clientID)
        }
        if let app { request.app = app }
        if let duplicateUsers { request.duplicateUsers = duplicateUsers }
        if let bundleID {
            request.bundleID = bundleID
            request.bundleScope = .granted
        }
        if let eventMetadata { request.eventMetadataJSON = eventMetadata.text }
        if let notifyMetadata { request.authorizedMetadataJSON = notifyMetadata.text }
        if let notifies { request.receivesNotifications = notifies }
        if let requestedRID { request.layer = requestedRID.layer }
        if let forwardingFilters { request.filters = request.role.watches ? forwardingFilters : [] }
        if let options { request.options = options.memberOptions }
        request.mayPublish = permissions.permits(.publisher)
        request.mayModerate = permissions.moderates
        if let lifetime = permissions.lifetime { request.lifetime = lifetime }
        if let expiry = permissions.expiry { request.expiry = expiry }
        if let most = permissions.publishBitsPerSecondMax { request.publishBitsPerSecondMax = most }
        if let most = permissions.receiveBitsPerSecondMax { request.receiveBitsPerSecondMax = most }
        if let most = permissions.channelConnectionsMax { request.channelConnectionsMax = most }
    }
}
