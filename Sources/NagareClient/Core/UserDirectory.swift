/// The other users of a channel, from what the server announces and from what the engine receives.
struct UserDirectory: Sendable {
    /// More than any node has in a channel: a bound for a server that announces without end.
    private static let usersMax = 5_000
    private static let connectionsOfUserMax = 64
    private static let tracksMax = 10_000

    private struct Received: Sendable {
        var track: ReceivedTrack
        var isAnnounced = false
        var hasFrame = false
    }

    private let ownUser: String
    private var users: [String: RemoteUser] = [:]
    /// The users of connections.
    private var owners: [String: String] = [:]
    /// What the engine receives, by m-line.
    private var received: [String: Received] = [:]
    private var events: [ChannelEvent] = []

    init(ownUser: String) { self.ownUser = ownUser }

    /// In the order of their names.
    var all: [RemoteUser] { users.values.sorted { $0.id < $1.id } }

    mutating func takeEvents() -> [ChannelEvent] {
        defer { events = [] }
        return events
    }

    /// A new session of the client: everything is received again.
    mutating func restart() { received = [:] }

    // MARK: What the server announces

    /// The list of users when joining.
    mutating func joined(_ list: [Notification.User], elapsed: Duration) {
        let others = list.filter { $0.userID != ownUser }
        let present = Set(others.map(\.userID))
        for id in users.keys.sorted() where !present.contains(id) { offline(id, .quit) }
        for user in others {
            let connections = user.connections ?? []
            let kept = Set(connections.map(\.connectionID))
            online(user.userID, name: user.displayName, role: user.role, metadata: user.metadata, elapsed: elapsed)
            for gone in users[user.userID]?.connections.map(\.id) ?? [] where !kept.contains(gone) {
                connectionEnded(gone)
            }
            for connection in connections {
                changed(connection, of: user.userID, elapsed: elapsed)
                quality(of: connection.connectionID, connection.uplink, connection.downlink)
            }
            interrupt(user.userID, connections.contains { $0.interrupted == true })
        }
        attach()
    }

    mutating func online(_ id: String, name: String?, role: String?, metadata: JSONValue?, elapsed: Duration) {
        guard id != ownUser, users[id] != nil || users.count < Self.usersMax else { return }
        let isNew = users[id] == nil
        var user = users[id] ?? RemoteUser(id: id)
        user.name = name ?? user.name
        user.role = role.flatMap { ChannelRole(rawValue: $0) } ?? user.role
        user.metadata = metadata ?? user.metadata
        user.isInterrupted = false
        users[id] = user
        if isNew { events.append(.userOnline(user, elapsed: elapsed)) }
    }

    mutating func offline(_ id: String, _ reason: OfflineReason) {
        guard let user = users.removeValue(forKey: id) else { return }
        for connection in user.connections { owners[connection.id] = nil }
        events.append(.userOffline(user, reason))
    }

    mutating func interrupt(_ id: String, _ isInterrupted: Bool) {
        guard var user = users[id], user.isInterrupted != isInterrupted else { return }
        user.isInterrupted = isInterrupted
        users[id] = user
        events.append(isInterrupted ? .userInterrupted(user) : .userResumed(user))
    }

    mutating func changed(_ message: Notification.Connection, of id: String, elapsed: Duration) {
        guard id != ownUser else { return }
        if users[id] == nil { online(id, name: nil, role: nil, metadata: nil, elapsed: elapsed) }
        guard var user = users[id] else { return }
        let index = user.connections.firstIndex { $0.id == message.connectionID }
        guard index != nil || user.connections.count < Self.connectionsOfUserMax else { return }
        let before = index.map { user.connections[$0] } ?? RemoteConnection(id: message.connectionID)
        var connection = before
        connection.source = message.source.flatMap { TrackSource(rawValue: $0) } ?? before.source
        connection.audio = message.audio ?? false
        connection.video = message.video ?? false
        connection.isAudioMuted = message.isAudioMuted ?? false
        connection.isVideoMuted = message.isVideoMuted ?? false
        connection.metadata = message.metadata ?? before.metadata
        if let index { user.connections[index] = connection } else { user.connections.append(connection) }
        users[id] = user
        owners[connection.id] = id
        if index == nil || connection.audio != before.audio || connection.video != before.video {
            events.append(.trackAvailable(user, connection))
        }
        if connection.isAudioMuted != before.isAudioMuted {
            events.append(.remoteMuted(user, connection, .audio, isMuted: connection.isAudioMuted))
        }
        if connection.isVideoMuted != before.isVideoMuted {
            events.append(.remoteMuted(user, connection, .video, isMuted: connection.isVideoMuted))
        }
        attach()
    }

    mutating func connectionEnded(_ id: String) {
        guard let owner = owners.removeValue(forKey: id), var user = users[owner],
            let index = user.connections.firstIndex(where: { $0.id == id })
        else { return }
        var connection = user.connections.remove(at: index)
        connection.audio = false
        connection.video = false
        connection.hasEnded = true
        users[owner] = user
        events.append(.trackAvailable(user, connection))
    }

    mutating func quality(of id: String, _ uplink: Int?, _ downlink: Int?) {
        guard let owner = owners[id], var user = users[owner],
            let index = user.connections.firstIndex(where: { $0.id == id })
        else { return }
        let quality = NetworkQuality(uplink: uplink ?? 0, downlink: downlink ?? 0)
        guard user.connections[index].networkQuality != quality else { return }
        user.connections[index].networkQuality = quality
        users[owner] = user
        events.append(.userNetworkQuality(user, user.connections[index]))
    }

    mutating func firstFrame(of id: String, user: String) {
        guard let user = users[user] else { return }
        events.append(.firstFrameSent(user, connectionID: id))
    }

    /// The client's own membership ended.
    mutating func clear() {
        for id in users.keys.sorted() { offline(id, .ended) }
        received = [:]
    }

    // MARK: What the engine receives

    mutating func media(_ event: MediaConnectionEvent) {
        switch event {
        case .trackAdded(let track):
            guard received.count < Self.tracksMax else { return }
            received[track.mid] = Received(track: track)
        case .trackRemoved(let mid): received[mid] = nil
        case .firstFrame(let mid):
            guard received[mid]?.hasFrame == false else { return }
            received[mid]?.hasFrame = true
            if received[mid]?.isAnnounced == true, let track = received[mid].flatMap({ remote($0.track) }) {
                events.append(.firstFrameReceived(track))
            }
        case .stateChanged: break
        }
        attach()
    }

    /// Announces the tracks whose users are known.
    private mutating func attach() {
        for mid in received.filter({ !$0.value.isAnnounced }).keys.sorted() {
            guard let entry = received[mid], let track = remote(entry.track) else { continue }
            received[mid]?.isAnnounced = true
            events.append(.trackReceived(track))
            if entry.hasFrame { events.append(.firstFrameReceived(track)) }
        }
    }

    private func remote(_ track: ReceivedTrack) -> RemoteTrack? {
        guard let owner = owners[track.streamID],
            let connection = users[owner]?.connections.first(where: { $0.id == track.streamID })
        else { return nil }
        return RemoteTrack(
            user: owner,
            connectionID: connection.id,
            source: connection.source,
            kind: track.kind,
            mid: track.mid
        )
    }
}
