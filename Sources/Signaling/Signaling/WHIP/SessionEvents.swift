import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Sora
import Webhooks

/// The events of one WHIP or WHEP session as a state machine: events of its participant and instants in, texts out. It does no
/// I/O and reads no clock.
struct SessionEvents {
    /// The quality of the session's network; `nil` before it is known.
    private var quality: QualityMessage?

    /// The text of an event; `nil` for one that is not for the session, and for a quality that is reported later.
    mutating func received(_ event: ParticipantEvent, at now: Instant) -> String? {
        guard case .notification(let notification) = event, case .networkQuality(let level) = notification.content
        else {
            return Self.text(of: event)
        }
        quality = QualityMessage(level, unixNanoseconds: notification.timestamp, at: now, after: quality)
        return handleTimeout(at: now)
    }

    /// The time of the next ``handleTimeout(at:)``; `nil` when there is none.
    var nextDeadline: Instant? { quality?.dueAt }

    /// The quality of the session's network, if it is due.
    mutating func handleTimeout(at now: Instant) -> String? {
        quality?.takeDue(at: now).flatMap { Self.text(of: .notification($0)) }
    }

    /// `nil` for an event that is not for clients of WHIP and WHEP.
    private static func text(of event: ParticipantEvent) -> String? {
        switch event {
        case .ended(let reason): text("ended", ended(reason))
        case .notification(let notification):
            switch notification.content {
            case .accessExpires(let second): text("token.expiring", ["expires_at": .integer(second)])
            case .interrupted(let member): text("interrupted", member.reference)
            case .resumed(let member): text("resumed", member.reference)
            case .tracksChanged(let tracks):
                text(
                    "track.changed",
                    [
                        "user_id": .string(tracks.user), "connection_id": .string(tracks.connection.value),
                        "audio": .bool(tracks.audio), "video": .bool(tracks.video),
                        "audio_muted": .bool(tracks.isAudioMuted), "video_muted": .bool(tracks.isVideoMuted),
                    ]
                )
            case .networkQuality(let quality):
                text(
                    "network.quality",
                    ["uplink": .integer(quality.uplink.rawValue), "downlink": .integer(quality.downlink.rawValue)]
                )
            default: nil
            }
        case .subscriptionsChanged, .connected, .unusedLayers, .push, .data: nil
        }
    }

    private static func ended(_ reason: EndReason) -> [String: JSONValue] {
        var members: [String: JSONValue] = ["reason": .string(reason.name)]
        members["code"] = reason.code.map { .integer($0.rawValue) }
        return members
    }

    private static func text(_ name: String, _ members: [String: JSONValue]) -> String {
        "event: \(name)\ndata: \(JSONValue.object(members).text)\n\n"
    }
}

extension Member {
    fileprivate var reference: [String: JSONValue] {
        ["user_id": .string(clientID), "connection_id": .string(id.value)]
    }
}
