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
        if !participant.publications.isEmpty {
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
        } else if !participant.publications.isEmpty {
            effects.append(.notify(.tracksChanged(participant.tracks.stopped), to: observers))
        }
    }

    /// Announces the tracks of a participant if they differ from those before. Members that do not know the channel extension are not
    /// told of the first packets: they know from the announcement that the participant publishes.
    mutating func announceTracks(
        of id: ParticipantID,
        changedFrom before: Participant,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id], participant.isAnnounced, participant.tracks != before.tracks,
            !participant.publications.isEmpty || !before.publications.isEmpty
        else { return }
        var receivers = observers(of: participant)
        let isFirst = participant.flowing != before.flowing && participant.flowChanges(since: before).isEmpty
        if !isFirst { receivers += plainMembers(besides: participant) + followers(of: participant) }
        if !receivers.isEmpty { effects.append(.notify(.tracksChanged(participant.tracks), to: receivers)) }
    }

    /// The members that get notifications and do not know the channel extension, except a participant's bundle.
    mutating func plainMembers(besides participant: Participant) -> [ParticipantID] {
        let bundleMembers = bundleMembers(of: participant)
        workDone += state.notified.count
        return state.notified.filter { participants[$0]?.terms.options == nil && !bundleMembers.contains($0) }
    }

    /// The viewers that follow a participant and get no notifications: those of WHEP may read a stream of events.
    func followers(of participant: Participant) -> [ParticipantID] {
        let bundleMembers = bundleMembers(of: participant)
        let isCurrent = state.live.last == participant.id
        let followers = [state.followers[participant.id], isCurrent ? state.followersOfCurrent : nil]
        return followers.compactMap(\.self).joined().filter { viewer in
            participants[viewer]?.receivesNotifications == false && !bundleMembers.contains(viewer)
        }
    }

    /// What a newcomer that knows the channel extension is told of its channel.
    mutating func tellOfChannel(_ newcomer: Participant, into effects: inout [Effect]) {
        guard newcomer.terms.options != nil, newcomer.receivesNotifications else { return }
        effects.append(.notify(.channelJoined(joinedChannel(newcomer)), to: [newcomer.id]))
        for kind in MediaKind.allCases where newcomer.mutedByOperator.contains(kind) {
            effects.append(.notify(.muted(kind, isMuted: true, by: .operator), to: [newcomer.id]))
        }
        for kind in MediaKind.allCases where newcomer.mutedByModerator.contains(kind) {
            effects.append(.notify(.muted(kind, isMuted: true, by: .moderator), to: [newcomer.id]))
        }
    }

    /// Whether a member is told what was written in the chat before it joined: one that knows the channel extension.
    func readsChat(_ id: ParticipantID) -> Bool {
        participants[id].map { $0.terms.options != nil && $0.receivesNotifications } ?? false
    }

    /// What a connected member is told of its channel when it asks. The list costs as much as a change that is announced, and counts
    /// as one of the member's changes.
    ///
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/changesTooFrequent``.
    mutating func joinedChannel(asToldTo id: ParticipantID) throws(RoomError) -> (JoinedChannel, [Effect]) {
        guard let participant = participants[id], participant.isConnected else { throw .participantUnknown }
        var effects: [Effect] = []
        try takeChange(of: id, into: &effects)
        return (joinedChannel(participant), effects)
    }

    private mutating func joinedChannel(_ newcomer: Participant) -> JoinedChannel {
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
        return JoinedChannel(
            user: newcomer.member.clientID,
            connection: newcomer.id,
            profile: profile,
            role: newcomer.channelRole,
            resumeToken: resumeToken(of: newcomer.id),
            graceSeconds: newcomer.resumption == nil ? 0 : Int(graceSeconds),
            elapsedMilliseconds: newcomer.peer == newcomer.firstPeer
                ? newcomer.elapsedMilliseconds(at: newcomer.connectedAt) : nil,
            mayModerate: newcomer.mayModerate,
            users: groups.compactMap(Self.user),
            hands: hands(asSeenBy: newcomer)
        )
    }

    /// - Parameter connections: of one user, in the order of joining.
    private static func user(_ connections: [Participant]) -> JoinedChannel.User? {
        guard let first = connections.first(where: { $0.channelRole == .host }) ?? connections.first else { return nil }
        return JoinedChannel.User(
            user: first.channelUser,
            connections: connections.map { connection in
                JoinedChannel.Connection(
                    tracks: connection.tracks,
                    isInterrupted: connection.isInterrupted,
                    notifyMetadataJSON: connection.member.metadataJSON,
                    quality: connection.quality
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
            audio: flowing.contains(.audio),
            video: flowing.contains(.video),
            isAudioMuted: muted.contains(.audio),
            isVideoMuted: muted.contains(.video)
        )
    }
}

extension PublishedTracks {
    /// The connection with nothing published.
    fileprivate var stopped: Self {
        Self(
            user: user,
            connection: connection,
            source: source,
            audio: false,
            video: false,
            isAudioMuted: isAudioMuted,
            isVideoMuted: isVideoMuted,
            hasEnded: true
        )
    }
}
