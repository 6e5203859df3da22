import ChannelTypes
import MediaTypes

// Users that join again. A user's connections that only publish and only watch are halves of one presence. Two that
// publish, or two that watch, are duplicates.

extension ChannelModel {
    func duplicatePolicy(of request: JoinRequest) -> DuplicateUserPolicy {
        request.duplicateUsers ?? limits.duplicateUsers
    }

    /// The members that a newcomer is a duplicate of, the oldest first.
    func duplicates(of request: JoinRequest) -> [ParticipantID] {
        duplicates(
            user: request.user,
            role: request.role,
            bundleID: request.bundleID,
            source: request.options?.source ?? .camera
        )
    }

    /// Connections of one bundle with different sources, a user's camera and screen, are no duplicates. Clients that chose
    /// the same name are none either: otherwise a client could end or refuse the connections of another one by its name.
    func duplicates(
        user: UserIdentity?,
        role: Role,
        bundleID: String?,
        source: VideoSource
    ) -> [ParticipantID] {
        guard let user, user.isProven, let ids = state.identities[user] else { return [] }
        return ids.compactMap { participants[$0] }.filter { other in
            let (negotiated, isInBundle) = (other.terms.negotiatedRole, other.terms.bundle.id == bundleID)
            let isSame = negotiated.publishes && role.publishes || negotiated.watches && role.watches
            return isSame && !(isInBundle && (other.terms.options?.source ?? .camera) != source)
        }
        .sorted { $0.order < $1.order }.map(\.id)
    }

    /// Whether a newcomer is a duplicate of these members because both publish, and not because both watch.
    func conflictsByPublishingOnly(_ request: JoinRequest, with duplicates: [ParticipantID]) -> Bool {
        !request.role.watches || duplicates.allSatisfy { participants[$0]?.terms.negotiatedRole.watches != true }
    }

    /// A newcomer replaces duplicates that never connected, so that a user has one newcomer at a time.
    mutating func replaceUnconnected(before request: JoinRequest, into effects: inout [Effect]) {
        guard duplicatePolicy(of: request) == .replace else { return }
        for id in duplicates(of: request) where participants[id]?.isConnected == false {
            effects += left(id, reason: .replaced)
        }
    }

    /// A newcomer that is connected replaces the members that it is a duplicate of. The user never goes offline.
    mutating func replaceDuplicates(of newcomer: Participant, into effects: inout [Effect]) {
        guard (newcomer.terms.duplicateUsers ?? limits.duplicateUsers) == .replace else { return }
        let duplicates = duplicates(
            user: newcomer.terms.user,
            role: newcomer.terms.negotiatedRole,
            bundleID: newcomer.terms.bundle.id,
            source: newcomer.terms.options?.source ?? .camera
        )
        for id in duplicates where id != newcomer.id {
            guard let other = participants[id], other.order < newcomer.order else { continue }
            participants[id]?.resumption = nil
            effects += left(id, reason: .replaced)
        }
    }
}
