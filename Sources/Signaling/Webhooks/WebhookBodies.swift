package import Access
import Base
package import ChannelTypes
import JSON
import MediaTypes
import Room
import Web
import Wire

/// Makes the JSON bodies of the event and session webhooks.
struct WebhookBodies: Sendable {
    let node: NodeIdentity
    /// Makes the `id` of an event, by which a server detects duplicates.
    let makeID: @Sendable () -> String

    /// The body of a connection event.
    /// - Parameters:
    ///   - reason: why the connection, or its publishing, ended; `nil` for other events.
    ///   - media: how its media was in all; `nil` for other events.
    func event(
        _ type: String,
        _ report: ConnectionReport,
        reason: String? = nil,
        media: JSONValue? = nil,
        flowing: Set<MediaKind>? = nil,
        elapsedMilliseconds: Int? = nil
    ) -> JSONValue {
        let connection = report.connection
        let member = connection.member
        var data: [String: JSONValue] = [
            "minutes": .integer(report.minutes),
            "channel_connections": .integer(report.counts.connections),
            "channel_sendrecv_connections": .integer(report.counts.sendrecv),
            "channel_sendonly_connections": .integer(report.counts.sendonly),
            "channel_recvonly_connections": .integer(report.counts.recvonly),
            "turn_transport_type": .string(member.transport.rawValue),
            "audio": Self.media(.audio, member.sendsAudio, connection),
            "video": Self.media(.video, member.sendsVideo, connection),
            "simulcast": .bool(connection.isSimulcast),
            "spotlight": .bool(connection.spotlight != nil),
        ]
        data["reason"] = reason.map { .string($0) }
        data["media"] = media
        data["flow"] = flowing.map { ["audio": .bool($0.contains(.audio)), "video": .bool($0.contains(.video))] }
        data["elapsed"] = elapsedMilliseconds.map { .integer($0) }
        var members: [String: JSONValue] = [
            "id": .string(makeID()),
            "type": .string(type),
            "timestamp": .string(Timestamp.text(unixNanoseconds: report.unixNanoseconds)),
            "channel_id": .string(connection.channel.value),
            "session_id": .string(connection.session.value),
            "client_id": .string(member.clientID),
            "bundle_id": .string(member.bundleID),
            "connection_id": .string(member.id.value),
            "role": .string(member.role.rawValue),
            "created_time": .integer(connection.createdAt / 1_000_000_000),
            "created_timestamp": .string(Timestamp.text(unixNanoseconds: connection.createdAt)),
            "data": .object(data),
        ]
        members.merge(node.members) { $1 }
        members.merge(connection.agent.members) { $1 }
        members["event_metadata"] = connection.eventMetadataJSON.flatMap { try? JSONValue(parsing: $0) }
        return .object(members)
    }

    /// `false` for a kind that is not sent; otherwise an object with the codec, if known.
    private static func media(_ kind: MediaKind, _ isSent: Bool, _ connection: Connection) -> JSONValue {
        guard isSent else { return false }
        let publication = connection.publications.first { $0.kind == kind }
        let codec = publication?.codec ?? publication?.formats.first?.name
        return .object(codec.map { ["codec_type": .string($0.rawValue.uppercased())] } ?? [:])
    }

    /// The body of what a connection's client reported.
    /// - Parameter statistics: An array.
    func statistics(
        _ type: String,
        _ statistics: JSONValue,
        of connection: Connection,
        unixNanoseconds: Int64
    ) -> JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(makeID()),
            "type": .string(type),
            "timestamp": .string(Timestamp.text(unixNanoseconds: unixNanoseconds)),
            "channel_id": .string(connection.channel.value),
            "session_id": .string(connection.session.value),
            "client_id": .string(connection.member.clientID),
            "bundle_id": .string(connection.member.bundleID),
            "connection_id": .string(connection.member.id.value),
            "role": .string(connection.member.role.rawValue),
            "multistream": true,
            "simulcast": .bool(connection.isSimulcast),
            "spotlight": .bool(connection.spotlight != nil),
            "stats": statistics,
        ]
        members.merge(node.members) { $1 }
        return .object(members)
    }

    /// The body of a session event.
    func session(_ type: String, _ session: ChannelSession, unixNanoseconds: Int64) -> JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(makeID()),
            "type": .string(type),
            "timestamp": .string(Timestamp.text(unixNanoseconds: unixNanoseconds)),
            "channel_id": .string(session.channel.value),
            "session_id": .string(session.id.value),
            "created_time": .integer(session.createdAt / 1_000_000_000),
            "created_timestamp": .string(Timestamp.text(unixNanoseconds: session.createdAt)),
        ]
        members.merge(node.members) { $1 }
        return .object(members)
    }
}

extension EndReason {
    /// The result code for applications that know those; `nil` without one. It is the code that the browser module has for
    /// the close.
    package var code: ResultCode? {
        switch self {
        case .kicked: .sessionRemoved
        case .banned: .joinFailed
        case .tokenExpired: .badToken
        case .channelExpired: .channelInvalid
        case .madeAudience: .roleChangeFailed
        case .pongTimedOut: .heartbeatTimeout
        case .left, .shutdown, .setupFailed, .transport, .disconnectedByOperator, .channelTerminated, .lifetimeExpired,
            .sessionTerminated, .tooSlow, .unanswered, .unreachable, .evicted, .replaced, .signalingLost, .rejected:
            nil
        }
    }
}
