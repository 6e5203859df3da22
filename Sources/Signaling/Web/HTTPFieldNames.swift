package import HTTPTypes

// Header fields that HTTPTypes has no names for.
extension HTTPField.Name {
    package static let referrerPolicy = Self("Referrer-Policy")!
    package static let link = Self("Link")!
    package static let participant = Self("Nagare-Participant")!
    package static let acceptPost = Self("Accept-Post")!
    package static let acceptPatch = Self("Accept-Patch")!
    package static let xForwardedFor = Self("X-Forwarded-For")!

    /// Turns off response buffering in nginx.
    package static let xAccelBuffering = Self("X-Accel-Buffering")!
}
