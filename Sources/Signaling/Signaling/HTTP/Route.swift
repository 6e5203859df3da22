import HTTPTypes
import Pages
import Room

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

extension HTTPFailure {
    static let unknownPath = HTTPFailure(.notFound, "This path does not exist.")
}

/// The path and query of a request target (RFC 9112 §3.2), percent-encoded.
struct RequestTarget: Hashable, Sendable {
    /// The path as sent.
    let path: Substring
    /// The path segments; none for `/`.
    let segments: [Substring]
    let query: Substring?

    init(_ target: String) {
        var rest = target[...]
        // Absolute form, which proxies send: the authority is ignored.
        if rest.first != "/", let scheme = rest.firstRange(of: "://") {
            rest = rest[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        }
        rest = rest.prefix { $0 != "#" }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        query = parts.count == 2 ? parts[1] : nil
        path = parts.first ?? ""
        segments =
            path.isEmpty || path == "/"
            ? [] : (path.first == "/" ? path.dropFirst() : path).split(separator: "/", omittingEmptySubsequences: false)
    }

    /// The path and query as sent.
    var text: String { String(path) + (query.map { "?\($0)" } ?? "") }

    /// The first value of a query parameter; `nil` without one or when it is not valid UTF-8.
    func queryValue(_ name: String) -> String? {
        for pair in query?.split(separator: "&") ?? [] {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.first.flatMap({ percentDecoded($0, plusIsSpace: true) }) == name else { continue }
            return percentDecoded(parts.count == 2 ? parts[1] : "", plusIsSpace: true)
        }
        return nil
    }
}

/// Percent-decodes (RFC 3986 §2.1). `nil` when two hexadecimal digits do not follow a `%`, or the bytes are not UTF-8.
func percentDecoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
    var bytes: [UInt8] = []
    var iterator = text.utf8.makeIterator()
    while let byte = iterator.next() {
        switch byte {
        case UInt8(ascii: "%"):
            guard let high = iterator.next().flatMap(hexadecimalValue),
                let low = iterator.next().flatMap(hexadecimalValue)
            else { return nil }
            bytes.append(high << 4 | low)
        case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
        default: bytes.append(byte)
        }
    }
    return String(validating: bytes, as: UTF8.self)
}

private func hexadecimalValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
}
