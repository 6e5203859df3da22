import Base
import ChannelTypes
import JSON
import Web

// Events of direct calls of the 1:1 relay.

extension CallReport {
    fileprivate var kind: EventSubscriptions.Kind {
        switch event {
        case .opened: .channelOpened
        case .joined: .memberJoined
        case .left: .memberLeft
        case .closed: .channelClosed
        }
    }
}

extension EventSubscriptions {
    /// Queues the events of one report.
    func take(_ report: CallReport) async {
        var members: [String: JSONValue] = ["session_id": .string(report.session.value), "relay": true]
        if let member = report.member {
            members["user_id"] = .string(member.user)
            members["connection_id"] = .string(member.connectionID)
            members["role"] = .string(Role.sendrecv.rawValue)
            members["signaling"] = .string(ClientAgent.Signaling.other.rawValue)
        }
        members["reason"] = report.reason.map { .string($0) }
        // A registration costs a client nothing, so it displaces no event of a channel's members.
        await enqueue(
            report.kind,
            of: report.member?.user,
            in: report.room,
            at: report.unixNanoseconds,
            isEssential: false,
            members
        )
    }
}

extension Webhooks {
    /// Queues the event of one report.
    func take(_ report: CallReport) async {
        await enqueue(
            bodies.relay(report),
            of: report.member.flatMap { ParticipantID($0.connectionID) },
            in: report.room,
            isEssential: false
        )
    }
}

extension WebhookBodies {
    /// The body of an event of the relay.
    fileprivate func relay(_ report: CallReport) -> JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(makeID()),
            "type": .string(report.kind.rawValue),
            "timestamp": .string(Timestamp.text(unixNanoseconds: report.unixNanoseconds)),
            "channel_id": .string(report.room.value),
            "session_id": .string(report.session.value),
            "relay": true,
            "data": .object(report.reason.map { ["reason": .string($0)] } ?? [:]),
        ]
        if let member = report.member {
            members["client_id"] = .string(member.user)
            members["connection_id"] = .string(member.connectionID)
            members["role"] = .string(Role.sendrecv.rawValue)
        }
        members.merge(node.members) { $1 }
        return .object(members)
    }
}
