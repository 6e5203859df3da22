package import ChannelTypes
package import JSON

/// What was said of a member in the terms of channels, in an object `nagare`. `nil` where nothing was said.
///
/// It is said in three places, each of which decides over the next: the grants (a token's claims, or the answer of the
/// authentication webhook), the client's `connect` message, and the `metadata` in it, which every Sora SDK lets its application set.
package struct StatedOptions: Hashable, Sendable {
    package var profile: ChannelProfile?
    /// What the member is first. Whether it may publish is a permission, and another matter.
    package var role: ChannelRole?
    package var source: VideoSource?
    /// Whether it receives nothing before it subscribes.
    package var subscribesManually: Bool?
    /// The token of an earlier connection whose place it takes.
    package var resumeToken: String?

    /// The longest resume token, in bytes.
    private static let resumeTokenBytesMax = 128

    private enum SubscriptionMode: String, CaseIterable { case auto, manual }

    package init(profile: ChannelProfile? = nil) { self.profile = profile }

    /// Unknown members are ignored.
    package init(_ members: JSONFields) throws(JSONShapeError) {
        do throws(JSONShapeError) {
            let subscription: SubscriptionMode? = try members.choice("subscribe")
            profile = try members.choice("profile")
            role = try members.choice("role")
            source = try members.choice("source")
            subscribesManually = subscription.map { $0 == .manual }
            resumeToken = try members.string("resume", bytesMax: Self.resumeTokenBytesMax)
        } catch {
            throw JSONShapeError("in \"nagare\", \(error.message)")
        }
    }

    /// The options of an object's member `nagare`; `nil` without one.
    package init?(in fields: JSONFields) throws(JSONShapeError) {
        guard let members = try fields.object("nagare") else { return nil }
        try self.init(JSONFields(members))
    }

    /// These options, and where they say nothing those of `other`.
    package func over(_ other: Self?) -> Self {
        var merged = self
        merged.profile = profile ?? other?.profile
        merged.role = role ?? other?.role
        merged.source = source ?? other?.source
        merged.subscribesManually = subscribesManually ?? other?.subscribesManually
        merged.resumeToken = resumeToken ?? other?.resumeToken
        return merged
    }

    /// - Throws: a sentence when a client that connects with this role cannot be what the options say.
    package func check(_ connected: Role) throws(JSONShapeError) {
        switch (role, connected) {
        case (.host, .recvonly):
            throw JSONShapeError("\"nagare.role\" is \"host\", so \"role\" has to be \"sendrecv\" or \"sendonly\".")
        case (.audience, .sendonly):
            throw JSONShapeError("\"nagare.role\" is \"audience\", so \"role\" has to be \"sendrecv\" or \"recvonly\".")
        default: break
        }
    }

    package var memberOptions: MemberOptions {
        MemberOptions(
            profile: profile,
            role: role,
            source: source ?? .camera,
            subscribesManually: subscribesManually ?? false,
            resumeToken: resumeToken
        )
    }
}
