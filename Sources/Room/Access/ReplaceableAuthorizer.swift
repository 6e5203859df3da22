import Base
package import ChannelTypes

/// The authorizer of a node, which a reload replaces while clients are served.
///
/// A decision is that of the authorizer in force when it is asked for. Who is admitted already stays.
package final class ReplaceableAuthorizer: Authorizer {
    private let state: Replaceable<any Authorizer>

    package init(_ authorizer: any Authorizer) { state = Replaceable(authorizer) }

    /// The authorizer in force.
    private var current: any Authorizer { state.current }

    /// Puts another authorizer in force.
    package func replace(with authorizer: any Authorizer) { state.current = authorizer }

    package func verify(_ token: String) async -> Credential { await current.verify(token) }

    package func verify(signature: String, ofPath path: String, for action: AuthorizedAction) -> Credential? {
        current.verify(signature: signature, ofPath: path, for: action)
    }

    package func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization {
        await current.authorize(action, credential, from: network)
    }

    package func admit(_ request: AccessRequest) async -> AccessDecision { await current.admit(request) }

    package func refresh(_ request: RefreshRequest) async -> AccessDecision { await current.refresh(request) }
}
