import ChannelTypes
import HTTPTypes
import Pages
import Web

/// A path of the public listener.
enum Route: Hashable, Sendable {
    case asset(PageAsset)
    case whip(ChannelName)
    case whep(ChannelName)
    case whepParticipant(ChannelName, ParticipantID)
    /// A WHIP or WHEP session; `nil` for an invalid identifier.
    case session(ResourceID?)
    /// What a session is sent; `nil` for an invalid identifier.
    case sessionStatistics(ResourceID?)
    /// The events of a session; `nil` for an invalid identifier.
    case sessionEvents(ResourceID?)
    case channel(ChannelName)
    case channelEvents(ChannelName)
    /// The WebSocket path of Sora signaling.
    case signaling
    /// The WebSocket path of the 1:1 relay.
    case relay

    /// - Throws: 404 for an unknown path, 400 for invalid percent-encoding or an invalid name.
    init(target: RequestTarget) throws(HTTPFailure) {
        var segments: [String] = []
        for raw in target.segments {
            guard let segment = percentDecoded(raw) else {
                throw HTTPFailure(.badRequest, "The path has invalid percent-encoding; encode names as UTF-8.")
            }
            segments.append(segment)
        }
        switch (segments.first, segments.count) {
        case ("whip", 2): self = .whip(try Self.channel(segments[1]))
        case ("whep", 2): self = .whep(try Self.channel(segments[1]))
        case ("whep", 3):
            let channel = try Self.channel(segments[1])
            guard let participant = ParticipantID(segments[2]) else {
                throw HTTPFailure(.notFound, "There is no such participant in this channel.")
            }
            self = .whepParticipant(channel, participant)
        case ("whip", 1), ("whep", 1):
            throw HTTPFailure(
                .notFound,
                "The path lacks the channel: write /\(segments[0])/CHANNEL. A channel name \(ChannelName.rule)."
            )
        case ("signaling", 1): self = .signaling
        case ("relay", 1): self = .relay
        case ("sessions", 2): self = .session(ResourceID(segments[1]))
        case ("sessions", 3) where segments[2] == "statistics": self = .sessionStatistics(ResourceID(segments[1]))
        case ("sessions", 3) where segments[2] == "events": self = .sessionEvents(ResourceID(segments[1]))
        case ("api", 3) where segments[1] == "channels": self = .channel(try Self.channel(segments[2]))
        case ("api", 4) where segments[1] == "channels" && segments[3] == "events":
            self = .channelEvents(try Self.channel(segments[2]))
        case (_, 0), (_, 1):
            guard let asset = PageAsset(name: segments.first ?? "") else { throw .unknownPath }
            self = .asset(asset)
        default: throw .unknownPath
        }
    }

    private static func channel(_ name: String) throws(HTTPFailure) -> ChannelName {
        guard let channel = ChannelName(name) else {
            throw HTTPFailure(.badRequest, "A channel name \(ChannelName.rule).")
        }
        return channel
    }
}

extension Route {
    /// The channel in the path; `nil` for a path without one.
    var channel: ChannelName? {
        switch self {
        case .whip(let channel), .whep(let channel), .whepParticipant(let channel, _), .channel(let channel),
            .channelEvents(let channel):
            channel
        case .asset, .session, .sessionStatistics, .sessionEvents, .signaling, .relay: nil
        }
    }

    /// The protocol of the path, for the log.
    var protocolName: String {
        switch self {
        case .whip: "whip"
        case .whep, .whepParticipant: "whep"
        case .session, .sessionStatistics, .sessionEvents: "session"
        case .signaling: "sora"
        case .relay: "relay"
        case .asset, .channel, .channelEvents: "http"
        }
    }
}
