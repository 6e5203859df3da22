import Admission
import ChannelTypes
import Wire

// What members that know the channel extension are told of users. A user is online while one of its connections is
// announced. A user is not told of itself.

extension ChannelModel {
    /// The members that are told of a participant's user.
    mutating func observers(of participant: Participant) -> [ParticipantID] {
        workDone += state.extended.count
        return state.extended.filter { participants[$0]?.member.clientID != participant.member.clientID }
    }

    /// A participant is announced.
    mutating func userAppeared(_ participant: Participant, into effects: inout [Effect]) {
        let user = participant.member.clientID
        let isFirst = state.users[user] == nil
        state.users[user, default: ParticipantList()].insert(participant.id, order: participant.order)
        let observers = observers(of: participant)
        guard !observers.isEmpty else { return }
        if isFirst { effects.append(.notify(.userOnline(participant.channelUser), to: observers)) }
        if participant.tracks.isPublishing {
            effects.append(.notify(.tracksChanged(participant.tracks), to: observers))
        }
    }

    /// An announced participant left or is audience now.
    ///
    /// - Parameter participant: as it was announced.
    mutating func userDisappeared(
        _ participant: Participant,
        _ departure: Departure,
        into effects: inout [Effect]
    ) {
        let user = participant.member.clientID
        state.users[user]?.remove(order: participant.order)
        let isLast = state.users[user]?.isEmpty ?? true
        if isLast { state.users[user] = nil }
        let observers = observers(of: participant)
        guard !observers.isEmpty else { return }
        if isLast {
            effects.append(.notify(.userOffline(user, departure), to: observers))
        } else if participant.tracks.isPublishing {
            effects.append(.notify(.tracksChanged(participant.tracks.stopped), to: observers))
        }
    }

    /// Announces the tracks of a participant if they differ from `before`.
    mutating func announceTracks(
        of id: ParticipantID,
        changedFrom before: PublishedTracks,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id], participant.isAnnounced, participant.tracks != before,
            participant.tracks.isPublishing || before.isPublishing
        else { return }
        let observers = observers(of: participant)
        if !observers.isEmpty { effects.append(.notify(.tracksChanged(participant.tracks), to: observers)) }
    }

    /// What a newcomer that knows the channel extension is told of its channel.
    mutating func tellOfChannel(_ newcomer: Participant, into effects: inout [Effect]) {
        guard newcomer.terms.options != nil, newcomer.receivesNotifications else { return }
        var positions: [String: Int] = [:]
        var groups: [[Participant]] = []
        workDone += state.connected.count
        for id in state.connected {
            guard let participant = participants[id], participant.isAnnounced,
                participant.member.clientID != newcomer.member.clientID
            else { continue }
            if let position = positions[participant.member.clientID] {
                groups[position].append(participant)
            } else {
                positions[participant.member.clientID] = groups.count
                groups.append([participant])
            }
        }
        let joined = JoinedChannel(
            user: newcomer.member.clientID,
            connection: newcomer.id,
            profile: profile,
            role: newcomer.channelRole,
            resumeToken: resumeToken(of: newcomer.id),
            graceSeconds: newcomer.resumption == nil ? 0 : Int(graceSeconds),
            users: groups.compactMap(Self.user)
        )
        effects.append(.notify(.channelJoined(joined), to: [newcomer.id]))
        for kind in MediaKind.allCases where newcomer.mutedByOperator.contains(kind) {
            effects.append(.notify(.muted(kind, isMuted: true, by: .operator), to: [newcomer.id]))
        }
    }

    /// - Parameter connections: of one user, in the order of joining.
    private static func user(_ connections: [Participant]) -> JoinedChannel.User? {
        guard let first = connections.first(where: { $0.channelRole == .host }) ?? connections.first else { return nil }
        return JoinedChannel.User(
            user: first.channelUser,
            connections: connections.map { connection in
                JoinedChannel.Connection(
                    tracks: connection.tracks,
                    isInterrupted: connection.resumption?.interruption != nil,
                    notifyMetadataJSON: connection.member.metadataJSON
                )
            }
        )
    }
}

extension Participant {
    var channelRole: ChannelRole { role.publishes ? .host : .audience }

    /// Its user as others are told of it.
    var channelUser: ChannelUser {
        ChannelUser(
            id: member.clientID,
            displayName: terms.displayName,
            role: channelRole,
            notifyMetadataJSON: member.metadataJSON
        )
    }

    /// What others are told that it publishes.
    var tracks: PublishedTracks {
        PublishedTracks(
            user: member.clientID,
            connection: id,
            source: terms.options?.source ?? .camera,
            audio: publications.contains { $0.kind == .audio },
            video: publications.contains { $0.kind == .video },
            isAudioMuted: muted.contains(.audio),
            isVideoMuted: muted.contains(.video)
        )
    }
}

extension PublishedTracks {
    fileprivate var isPublishing: Bool { audio || video }

    /// The connection with nothing published.
    fileprivate var stopped: Self {
        Self(
            user: user,
            connection: connection,
            source: source,
            audio: false,
            video: false,
            isAudioMuted: isAudioMuted,
            isVideoMuted: isVideoMuted
        )
    }
}
