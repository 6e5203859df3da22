import MediaTypes
public import Wire

extension Rooms {
    /// What is known of a session; `nil` once it ended.
    public func session(_ id: SessionID) -> Session? { sessions[id] }

    /// Ends a session for its owner and frees all of it. Returns whether there was one.
    public func end(_ id: SessionID) -> Bool {
        guard let session = sessions[id] else { return false }
        return end(session.participant, reason: .left)
    }

    /// Puts new ICE credentials in force, the remote ones given and local ones made here.
    ///
    /// When it fails, the session goes on with what it had.
    /// - Parameter expected: refuse unless this is the current version; `nil` takes any.
    public func restartICE(
        _ id: SessionID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> Session {
        guard let session = sessions[id] else { throw .sessionUnknown }
        guard expected == nil || expected == session.iceVersion else { throw .versionMismatch }
        guard !session.isRestarting else { throw .restartUnderWay }
        sessions[id]?.isRestarting = true
        let local = ICECredentials(using: &generator)
        do {
            try await planes[session.home].restartICE(session.peer, local: local, remote: remote)
        } catch {
            sessions[id]?.isRestarting = false
            throw sessions[id] == nil ? .sessionUnknown : .media("\(error)")
        }
        guard var restarted = sessions[id] else { throw .sessionUnknown }
        restarted.isRestarting = false
        restarted.local.credentials = local
        restarted.remoteCredentials = remote
        restarted.iceVersion = ICEVersion(using: &generator)
        sessions[id] = restarted
        return restarted
    }
}
