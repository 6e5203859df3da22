package import Access
package import ChannelTypes
import JSON

extension AccessRequest {
    /// A newcomer to `lobby` that presents a token as Sora's clients do.
    package static func newcomer(
        _ token: String?,
        channel: String = "lobby",
        role: Role = .sendrecv,
        counts: ChannelCounts = ChannelCounts(),
        bearer: String? = nil
    ) -> AccessRequest {
        var generator = SystemRandomNumberGenerator()
        return AccessRequest(
            channel: ChannelName(channel)!,
            role: role,
            participant: ParticipantID(using: &generator),
            session: ChannelSessionID(using: &generator),
            agent: ClientAgent(signaling: .sora, name: "Sora Python SDK 1"),
            metadata: token.map { ["access_token": .string($0)] },
            credential: bearer.map { Credential(token: $0) },
            counts: counts
        )
    }
}

extension Authorizer {
    /// Decides on a request from an unknown address.
    package func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization {
        await authorize(action, credential, from: .unknown)
    }
}

extension AccessDecision {
    package var grants: Grants? {
        if case .allowed(let grants) = self { grants } else { nil }
    }
    package var isDenied: Bool {
        if case .denied = self { true } else { false }
    }
    package var isFailed: Bool {
        if case .failed = self { true } else { false }
    }
}
