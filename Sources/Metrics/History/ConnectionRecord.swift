import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Wire

/// A connection from when it was up, or failed, to its end, or to now.
struct ConnectionRecord: Sendable {
    /// Something that happened to the connection.
    struct Event: Hashable, Sendable {
        enum Kind: String, Hashable, Sendable, CaseIterable {
            case connected, interrupted, resumed, ended, failed
            case roleChanged = "role_changed"
            case pathChanged = "path_changed"
        }
        /// In nanoseconds since 1970 UTC.
        let at: Int64
        let kind: Kind
        /// The reason, the new role, or the new path; `nil` without one.
        var detail: String?
    }

    /// The most events that are kept. Later ones, except for the end, are only counted.
    static let eventsMax = 64

    var connection: Connection
    /// Since it was up.
    var duration: Duration = .zero
    /// When it ended, in nanoseconds since 1970 UTC; `nil` while it lasts.
    var endedAt: Int64?
    /// Why it ended; `nil` while it lasts.
    var reason: String?
    /// The addresses that the media last took.
    var path: NetworkPath?
    var totals = MediaTotals()
    var timeline = QualityTimeline()
    private(set) var events: [Event] = []
    private(set) var eventsDropped = 0

    init(_ connection: Connection) { self.connection = connection }

    mutating func add(_ event: Event) {
        let isEnd = event.kind == .ended || event.kind == .failed
        guard events.count < Self.eventsMax || isEnd else {
            eventsDropped &+= 1
            return
        }
        events.append(event)
    }
}

/// What a connection is doing, or how it went.
package enum ConnectionOutcome: String, Hashable, Sendable, CaseIterable {
    /// It is connected, or lost while its place is kept.
    case live
    case ended
    /// It never was connected.
    case failed
}

extension ConnectionRecord {
    var outcome: ConnectionOutcome {
        guard endedAt != nil else { return .live }
        return connection.connectedAt == nil ? .failed : .ended
    }

    /// The record without its events and samples, for lists.
    func summary(node: String) -> [String: JSONValue] {
        let member = connection.member
        var document: [String: JSONValue] = [
            "connection_id": .string(member.id.value), "channel": .string(connection.channel.value),
            "session_id": .string(connection.session.value), "user_id": .string(member.clientID),
            "bundle_id": .string(member.bundleID), "role": .string(member.role.rawValue), "node": .string(node),
            "signaling": .string(connection.agent.signaling.rawValue), "outcome": .string(outcome.rawValue),
            "created_at": .integer(connection.createdAt / 1_000_000),
            "duration_s": .integer(duration.components.seconds),
        ]
        document.merge(media) { $1 }
        document["without_picture_ms"] = .integer(timeline.samples.millisecondsWithoutPicture)
        document["display_name"] = connection.displayName.map { .string($0) }
        document["client"] = connection.agent.name.isEmpty ? nil : .string(connection.agent.name)
        document["environment"] = connection.agent.environment.map { .string($0) }
        document["connected_at"] = connection.connectedAt.map { .integer($0 / 1_000_000) }
        document["setup_ms"] = connection.setupTime.map { .integer($0.milliseconds) }
        document["ended_at"] = endedAt.map { .integer($0 / 1_000_000) }
        document["reason"] = reason.map { .string($0) }
        document["protocol"] = connection.isConnected ? .string(member.transport.rawValue) : nil
        document["remote_address"] = path.map { .string($0.remote.description) }
        return document
    }

    /// How the media was in all.
    var media: [String: JSONValue] {
        [
            "received_bytes": .integer(totals.receivedBytes), "sent_bytes": .integer(totals.sentBytes),
            "received_loss": Self.share(totals.receivedLoss), "sent_loss": Self.share(totals.sentLoss),
            "round_trip_ms": .integer(timeline.samples.map(\.roundTrip).max() ?? 0),
            "worst_uplink": .integer(worst(\.uplink).rawValue), "worst_downlink": .integer(worst(\.downlink).rawValue),
            "freezes": .integer(timeline.samples.reduce(0) { $0 &+ Int($1.freezes) }), "setup": setup,
        ]
    }

    /// The events and samples.
    var detail: [String: JSONValue] {
        [
            "events": .array(
                events.map { event in
                    var document: [String: JSONValue] = [
                        "at": .integer(event.at / 1_000_000), "event": .string(event.kind.rawValue),
                    ]
                    document["detail"] = event.detail.map { .string($0) }
                    return .object(document)
                }
            ),
            "events_dropped": .integer(eventsDropped),
            "timeline": timeline.document,
        ]
    }

    private func worst(_ direction: KeyPath<LinkQuality, LinkQuality.Level>) -> LinkQuality.Level {
        timeline.samples.reduce(.unknown) { QualitySample.worse($0, $1.quality[keyPath: direction]) }
    }

    private static func share(_ thousandths: UInt16) -> JSONValue { .double(Double(thousandths) / 1_000) }
}

extension QualityTimeline {
    /// One array for each quantity, all of the same length.
    var document: JSONValue {
        func column(_ value: (QualitySample) -> JSONValue) -> JSONValue { .array(samples.map(value)) }
        return [
            "interval_s": .integer(interval),
            "at_s": column { .integer($0.seconds) },
            "received_bps": column { .integer($0.received) },
            "sent_bps": column { .integer($0.sent) },
            "demand_bps": column { .integer($0.demand) },
            "received_loss": column { .double(Double($0.receivedLoss) / 1_000) },
            "sent_loss": column { .double(Double($0.sentLoss) / 1_000) },
            "round_trip_ms": column { .integer($0.roundTrip) },
            "jitter_ms": column { .integer($0.jitter) },
            "videos": column { .integer($0.videos) },
            "reduced": column { .integer($0.reduced) },
            "paused": column { .integer($0.paused) },
            "freezes": column { .integer($0.freezes) },
            "frozen_ms": column { .integer($0.frozen) },
            "uplink": column { .integer($0.quality.uplink.rawValue) },
            "downlink": column { .integer($0.quality.downlink.rawValue) },
            "limit": column { .string($0.limit.rawValue) },
        ]
    }
}

extension Sequence<QualitySample> {
    /// How long the client had no moving picture: the freezes that it reported, and the intervals in which the node sent it none of the
    /// videos that it wanted.
    var millisecondsWithoutPicture: Int {
        var previous: UInt32 = 0
        return reduce(0) { sum, sample in
            let interval = Int(sample.seconds &- Swift.min(previous, sample.seconds)) * 1_000
            previous = sample.seconds
            let isWithout = sample.videos > 0 && sample.paused >= sample.videos
            return sum &+ Swift.min(isWithout ? interval : Int(sample.frozen), interval)
        }
    }
}

extension Duration {
    /// Whole milliseconds.
    fileprivate var milliseconds: Int64 {
        components.seconds &* 1_000 &+ components.attoseconds / 1_000_000_000_000_000
    }
}
