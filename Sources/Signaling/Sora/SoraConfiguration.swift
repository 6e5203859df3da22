package import Access
import Base
package import MediaTypes
package import Web
package import Wire

/// The configuration of Sora signaling.
package struct SoraConfiguration: Sendable {
    /// The TURN servers for clients. The iOS SDK connects only through one by default.
    package struct TURN: Hashable, Sendable {
        /// For example `turn:HOST:PORT?transport=udp`.
        package var urls: [String]
        package var username: String
        package var credential: String

        package init(urls: [String], username: String, credential: String) {
            self.urls = urls
            self.username = username
            self.credential = credential
        }

        /// The TURN server of a media loop.
        package init(_ access: TURNAccess) {
            self.init(urls: access.urls, username: access.username, credential: access.password)
        }

        /// The server with the URLs that a client's grants permit; `nil` without any.
        package func permitted(by grants: Grants) -> Self? {
            var permitted = self
            permitted.urls = urls.filter { url in
                if grants.turnTLSOnly == true { return url.hasPrefix("turns:") }
                return grants.turnTCPOnly != true || url.hasSuffix("transport=tcp")
            }
            return permitted.urls.isEmpty ? nil : permitted
        }
    }

    package var turn: TURN?
    /// Which clients are told of the media loops' own TURN servers.
    package var embeddedTURN = TURNAnnouncement.off
    /// The time between two pings of a connection.
    package var pingInterval: Duration = .seconds(5)
    /// The time without any message from a connected client after which the connection closes.
    var pongTimeout: Duration = .seconds(60)
    /// The time limit for the `connect` message.
    var connectTimeout: Duration = .seconds(10)
    /// The time limit for the answer to an offer.
    var answerTimeout: Duration = .seconds(30)
    /// The time limit from the first answer until the transport is connected.
    var connectionCreatedTimeout: Duration = .seconds(60)
    /// The codec of clients that choose none; `nil` for ``defaultVideoCodec(ofModule:)``.
    package var videoCodec: CodecName?
    /// The default number of speakers in focus: 1…8.
    package var spotlightNumber = 8
    package var spotlightFocusRID: RequestedRID = .r1
    package var spotlightUnfocusRID: RequestedRID = .r0
    /// Whether clients may have data channels, those of WHIP and WHEP included.
    package var offersDataChannels = true
    /// Whether a client may choose its own `bundle_id`.
    package var acceptsBundleID = true
    /// The node's identity in messages, webhooks and the admin API.
    package var node = NodeIdentity()

    package init() {}

    /// VP9 for Sora's SDKs, as they expect. VP8 for the browser module: every WebRTC client can decode it (RFC 7742), so those
    /// who join a call later can too.
    static func defaultVideoCodec(ofModule isModule: Bool) -> CodecName { isModule ? .vp8 : .vp9 }
}

/// Which clients are told of the node's own TURN server.
package enum TURNAnnouncement: String, Hashable, Sendable, CaseIterable {
    /// None, and there is no server.
    case off
    /// Those that need one: members of one-to-one calls whose media does not pass the node, and clients that connect only
    /// through a TURN server and are told of no other, the Sora iOS SDK.
    case auto
    /// Members of these calls, and all clients of Sora, WHIP and WHEP.
    case on
}
