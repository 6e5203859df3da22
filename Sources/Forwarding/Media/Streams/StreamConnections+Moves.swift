import Base
import Wire

/// Connections that move between loops. They stay counted by the admission, which the loops share.
extension StreamConnections {
    /// Takes a connection that another loop sent off, and delivers its messages. While too many connections are not
    /// authenticated, the oldest of this loop is closed for it.
    /// - Parameter path: the connection on this loop.
    func arrive(_ moved: StreamConnection, on path: NetworkPath, at now: Instant, deliver: Deliver) {
        if admission.isCrowded, let oldest = oldestNewcomer() { end(oldest, .displaced) }
        var connection = moved
        let messages = connection.move(to: path)
        insert(connection, at: now)
        markPending(path.local)
        for message in messages where (connections[path.local]?.messagesLeft ?? 0) > 0 {
            counted.packetsReceived &+= 1
            judge(path.local, pass(unsafe message.span.bytes, path, .turn, deliver), 1)
        }
    }

    /// The connections for other loops, since the last call. They are no longer among those of this loop.
    func takeDeparting() -> [StreamConnection] {
        guard !departing.isEmpty else { return [] }
        defer { departing.removeAll() }
        return departing
    }

    /// A connection that moves was closed on its way.
    func abandon(_ connection: StreamConnection) {
        admission.release(connection.path.remote.ip, wasAuthenticated: connection.isAuthenticated)
        counted.ended[.ended, default: 0] &+= 1
    }
}
