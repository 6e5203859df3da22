import Wire

/// The credentials of both sides from one offer/answer exchange, in the forms that checks need. An ICE restart creates
/// the next generation (RFC 8445 §9).
struct ICEGeneration: Sendable {
    let local: ICECredentials
    let remote: ICECredentials
    /// USERNAME of incoming requests: the local fragment first (RFC 8445 §7.2.2).
    let incomingUsername: [UInt8]
    /// USERNAME of outgoing requests.
    let outgoingUsername: [UInt8]
    /// The key of incoming requests and of our responses.
    let localKey: [UInt8]
    /// The key of our requests and of the responses to them.
    let remoteKey: [UInt8]

    init(local: ICECredentials, remote: ICECredentials) {
        self.local = local
        self.remote = remote
        incomingUsername = Array("\(local.usernameFragment):\(remote.usernameFragment)".utf8)
        outgoingUsername = Array("\(remote.usernameFragment):\(local.usernameFragment)".utf8)
        localKey = Array(local.password.utf8)
        remoteKey = Array(remote.password.utf8)
    }
}
