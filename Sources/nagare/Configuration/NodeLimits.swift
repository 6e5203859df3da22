import ChannelTypes
import Media
import TURN
import ToolCommands
import Web
import Webhooks

/// The limits of all modules on what clients may use. The setting `limit` changes them.
struct NodeLimits: Equatable, Sendable {
    var rooms = RoomLimits()
    var http = HTTPLimits()
    var webSocket = WebSocketLimits()
    var webhooks = WebhookLimits()
    var tcp = TCPLimits()
    var turnCalls = TURNCallLimits()
}

/// A limit under its name in the settings. The setting `limit`, `nagare limits` and the reference follow from ``all``.
struct Limit: Sendable {
    /// As in `--limit NAME=VALUE`.
    let name: String
    /// The bounded quantity in one phrase, with its unit.
    let meaning: String
    let range: ClosedRange<Int>
    let value: @Sendable (NodeLimits) -> Int
    let set: @Sendable (inout NodeLimits, Int) -> Void

    private init(
        _ name: String,
        _ range: ClosedRange<Int>,
        _ meaning: String,
        value: @escaping @Sendable (NodeLimits) -> Int,
        set: @escaping @Sendable (inout NodeLimits, Int) -> Void
    ) {
        self.name = name
        self.meaning = meaning
        self.range = range
        self.value = value
        self.set = set
    }

    /// A count, or a number of bytes.
    private init(
        _ name: String,
        _ path: any WritableKeyPath<NodeLimits, Int> & Sendable,
        _ range: ClosedRange<Int>,
        _ meaning: String
    ) {
        self.init(name, range, meaning, value: { $0[keyPath: path] }, set: { $0[keyPath: path] = $1 })
    }

    /// A rate, in whole units a second.
    private init(
        _ name: String,
        _ path: any WritableKeyPath<NodeLimits, Double> & Sendable,
        _ range: ClosedRange<Int>,
        _ meaning: String
    ) {
        self.init(name, range, meaning, value: { Int($0[keyPath: path]) }, set: { $0[keyPath: path] = Double($1) })
    }

    /// A time, in whole seconds.
    private init(
        _ name: String,
        _ path: any WritableKeyPath<NodeLimits, Duration> & Sendable,
        _ range: ClosedRange<Int>,
        _ meaning: String
    ) {
        self.init(
            name,
            range,
            meaning,
            value: { Int($0[keyPath: path].components.seconds) },
            set: { $0[keyPath: path] = .seconds($1) }
        )
    }

    var defaultValue: Int { value(NodeLimits()) }
}

extension Limit {
    private static let many = 1...10_000_000
    private static let bytes = 1_048_576...1_099_511_627_776

    static let all: [Limit] = [
        Limit("channels", \.rooms.channelsMax, many, "channels of the node"),
        Limit("participants", \.rooms.participantsMax, many, "participants of the node"),
        Limit("channel-participants", \.rooms.participantsPerChannelMax, many, "participants of one channel"),
        Limit("channel-publishers", \.rooms.publishersPerChannelMax, many, "publishers of one channel"),
        Limit("publishers", \.rooms.publishersMax, 0...10_000_000, "publishers of the node; 0 for no limit"),
        Limit(
            "app-publishers",
            \.rooms.publishersPerAppMax,
            0...10_000_000,
            "publishers with tokens of one app; 0 for no limit"
        ),
        Limit(
            "address-channels",
            \.rooms.channelsPerNetworkMax,
            many,
            "channels with participants of one client address; beyond it the address cannot open another"
        ),
        Limit("address-participants", \.rooms.participantsPerNetworkMax, many, "participants of one client address"),
        Limit(
            "address-unconnected",
            \.rooms.unconnectedPerNetworkMax,
            many,
            "participants of one client address that are not connected yet"
        ),
        Limit(
            "unanswered-seconds",
            \.rooms.unansweredTimeout,
            1...60,
            "seconds until a participant that does not answer or connect is removed"
        ),
        Limit(
            "publish-kbps",
            0...1_000_000,
            "kbit/s that one participant may publish; 0 for no limit",
            value: { ($0.rooms.publishBitsPerSecondMax ?? 0) / 1_000 },
            set: { $0.rooms.publishBitsPerSecondMax = $1 == 0 ? nil : $1 * 1_000 }
        ),
        Limit(
            "messages-per-second",
            \.rooms.dataMessagesPerSecond,
            0...1_000_000,
            "messages per second that one participant may send to others over data channels, and the largest burst"
        ),
        Limit(
            "message-bytes-per-second",
            \.rooms.dataBytesPerSecond,
            0...1_000_000_000,
            "bytes of content per second of these messages, at most 196608 of them at once"
        ),
        Limit(
            "changes-per-second",
            \.rooms.changesPerSecond,
            1...1_000,
            "changes per second of mutes, role and metadata that one participant may make after the burst; beyond it "
                + "others are told of the latest mute later, and roles and pushes are refused"
        ),
        Limit("change-burst", \.rooms.changeBurst, 1...1_000_000, "burst of these changes"),
        Limit(
            "deliveries-per-second",
            \.rooms.dataDeliveriesPerSecond,
            many,
            "deliveries per second of the messages of one participant, and the largest burst; a delivery is up to 1160 "
                + "bytes of a message to one receiver"
        ),
        Limit(
            "channel-deliveries-per-second",
            \.rooms.channelDeliveriesPerSecond,
            many,
            "deliveries per second of the messages of one channel, and the largest burst"
        ),
        Limit(
            "node-deliveries-per-second",
            \.rooms.nodeDeliveriesPerSecond,
            many,
            "deliveries per second of all messages on the node; beyond it each channel has an equal part"
        ),
        Limit(
            "chat-history",
            \.rooms.chatHistoryMax,
            0...1_000,
            "texts of a channel's chat (label #chat) that the node keeps for those who join later, 32 KiB of them at most; 0 for "
                + "none"
        ),
        Limit("event-streams", \.rooms.listenersMax, many, "channel event streams of the node"),
        Limit("channel-event-streams", \.rooms.listenersPerChannelMax, many, "event streams of one channel"),
        Limit(
            "address-event-streams",
            \.rooms.listenersPerNetworkMax,
            0...10_000_000,
            "event streams of one client address; 0 for no limit"
        ),
        Limit("connections", \.http.connectionsMax, many, "HTTP and WebSocket connections of the public listener"),
        Limit(
            "address-connections",
            \.http.connectionsPerNetworkMax,
            0...10_000_000,
            "connections of one client address; 0 for no limit"
        ),
        Limit(
            "waiting-bytes",
            \.http.waitingBytesMax,
            bytes,
            "memory of the unsent messages of all clients together, and of those that have not arrived whole, in bytes; beyond "
                + "it the slowest client is closed first"
        ),
        Limit(
            "address-request-burst",
            \.http.requestBurst,
            0...1_000_000,
            "burst of requests of one client address, and of its TLS handshakes; 0 for no limit"
        ),
        Limit(
            "address-requests-per-second",
            \.http.requestsPerSecond,
            1...1_000_000,
            "requests per second of one client address after the burst"
        ),
        Limit(
            "address-message-burst",
            \.http.messageBurst,
            0...1_000_000,
            "burst of the cost of WebSocket messages of one client address before admission; a message costs 1, and 1 more "
                + "for each 64 values and each 8 KiB; 0 for no limit"
        ),
        Limit(
            "address-messages-per-second",
            \.http.messagesPerSecond,
            1...1_000_000,
            "cost per second of these messages after the burst"
        ),
        Limit(
            "address-member-message-burst",
            \.http.memberMessageBurst,
            0...10_000_000,
            "burst of the cost of statistics of one client address's participants; beyond it they are dropped"
        ),
        Limit(
            "address-member-messages-per-second",
            \.http.memberMessagesPerSecond,
            1...1_000_000,
            "cost per second of these statistics after the burst"
        ),
        Limit(
            "socket-cheap-frame-burst",
            \.webSocket.cheapFrameBurst,
            many,
            "burst of pings, pongs and small fragments of one WebSocket"
        ),
        Limit(
            "socket-cheap-frames-per-second",
            \.webSocket.cheapFramesPerSecond,
            many,
            "pings, pongs and small fragments per second of one WebSocket after the burst"
        ),
        Limit(
            "tcp-connections",
            \.tcp.connectionsMax,
            many,
            "TCP connections of the media ports (ICE and TURN over TCP)"
        ),
        Limit(
            "address-tcp-connections",
            \.tcp.connectionsPerNetworkMax,
            many,
            "TCP connections of the media ports of one client address"
        ),
        Limit(
            "unauthenticated-tcp-connections",
            \.tcp.unauthenticatedMax,
            many,
            "TCP connections of the media ports without a check or an allocation of a session yet; beyond it the oldest one is closed"
        ),
        Limit(
            "tcp-authentication-seconds",
            \.tcp.authenticationTimeout,
            1...60,
            "seconds until a TCP connection without such a check or allocation is closed"
        ),
        Limit(
            "turn-tls-handshakes-per-second",
            \.tcp.handshakesPerSecond,
            1...1_000_000,
            "TLS handshakes per second of the TURN server, and the largest burst; connections beyond it are closed"
        ),
        Limit(
            "address-turn-tls-handshakes-per-second",
            \.tcp.handshakesPerNetworkPerSecond,
            1...1_000_000,
            "TLS handshakes per second of one client address with the TURN server, and the largest burst"
        ),
        Limit(
            "turn-calls",
            \.turnCalls.callsMax,
            0...10_000_000,
            "one-to-one calls of a media loop whose members have TURN credentials; further ones go without the relay"
        ),
        Limit(
            "turn-call-kbps",
            1...1_000_000,
            "kbit/s that one member of a one-to-one call may send through the TURN relay, and half of it at once; beyond it "
                + "datagrams are dropped",
            value: { $0.turnCalls.memberBytesPerSecond / 125 },
            set: { $0.turnCalls.memberBytesPerSecond = $1 * 125 }
        ),
        Limit(
            "loop-turn-call-kbps",
            1...10_000_000,
            "kbit/s of all these calls of one media loop together",
            value: { $0.turnCalls.bytesPerSecond / 125 },
            set: { $0.turnCalls.bytesPerSecond = $1 * 125 }
        ),
        Limit(
            "tcp-stall-seconds",
            \.tcp.stallTimeout,
            1...60,
            "seconds until a TCP connection whose client does not read is closed"
        ),
        Limit("webhook-events", \.webhooks.waitingMax, many, "webhook events in the delivery queue"),
        Limit("webhook-questions", \.webhooks.questionsMax, many, "clients that wait for the authentication webhook"),
        Limit(
            "address-webhook-questions",
            \.webhooks.questionsPerNetworkMax,
            many,
            "clients of one client address that wait for the authentication webhook"
        ),
    ]

    /// The limits with their defaults, one a line, for `nagare limits`.
    static var list: String {
        let settings = all.map { (text: "\($0.name)=\($0.defaultValue)", meaning: $0.meaning) }
        let width = settings.map(\.text.count).max() ?? 0
        return settings.map { setting in
            setting.text + String(repeating: " ", count: width - setting.text.count + 2) + setting.meaning
        }
        .joined(separator: "\n")
    }
}

extension SettingReader {
    private func duplicateUsers() throws(CommandError) -> DuplicateUserPolicy? {
        guard let entry = try entry(.duplicateUser) else { return nil }
        guard let policy = DuplicateUserPolicy(rawValue: entry.value) else {
            let policies = DuplicateUserPolicy.allCases.map(\.rawValue).joined(separator: ", ")
            throw .usage("\(entry.origin) is \"\(entry.value)\": write one of \(policies).")
        }
        return policy
    }

    /// The limits; those that are not set have their defaults.
    func limits() throws(CommandError) -> NodeLimits {
        var limits = NodeLimits()
        limits.rooms.duplicateUsers = try duplicateUsers() ?? limits.rooms.duplicateUsers
        if let seconds = try integer(.resumeGrace, 0...300) { limits.rooms.resumeGrace = .seconds(seconds) }
        if let hours = try integer(.channelLifetime, 0...8_760) {
            limits.rooms.channelLifetime = .seconds(hours * 3_600)
        }
        guard let entry = try entry(.limit) else { return limits }
        var seen: Set<String> = []
        for text in entry.values {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw .usage("\(entry.origin) is \"\(text)\": write a limit as channels=1000.")
            }
            let name = String(parts[0])
            guard let limit = Limit.all.first(where: { $0.name == name }) else {
                let suggestion = suggestion(for: name, among: Limit.all.map(\.name))
                throw .usage(
                    "\(entry.origin) names the unknown limit \"\(name)\"\(suggestion): nagare limits lists them."
                )
            }
            guard let value = Int(parts[1]), limit.range.contains(value) else {
                let bounds = "\(limit.range.lowerBound) to \(limit.range.upperBound)"
                throw .usage("\(entry.origin) is \"\(text)\": write a whole number from \(bounds).")
            }
            guard seen.insert(name).inserted else { throw .usage("\(entry.origin) sets \"\(name)\" twice.") }
            limit.set(&limits, value)
        }
        return limits
    }
}
