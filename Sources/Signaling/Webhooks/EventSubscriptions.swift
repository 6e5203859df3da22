import Access
import Base
package import ChannelTypes
import JSON
package import Logging
import MediaTypes
import Room
import ServiceLifecycle
import Web
import Wire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The events that operators subscribe to by the operators' API, each with a server of its own.
///
/// Each subscription has its own bounded queue, so a slow or dead server costs the others nothing. Subscriptions are in
/// memory: they end with the node. In a cluster every node has them all, each for the events of its own members, so they end
/// with the last node.
package actor EventSubscriptions: Service {
    /// What happened. The raw value is `event` in the body.
    package enum Kind: String, CaseIterable, Sendable, Codable {
        /// Media of a connection that publishes comes.
        case publish
        /// It ended.
        case publishDone = "publish_done"
        /// A kind of media comes no more, or comes again.
        case trackChanged = "track.changed"
        /// The first key frame of a connection came.
        case firstFrame = "track.first_frame"
        case memberJoined = "member.joined"
        case memberLeft = "member.left"
        /// A connected member became host or audience.
        case memberRoleChanged = "member.role_changed"
        /// The quality of a member's network has another level.
        case memberNetworkQuality = "member.network_quality"
        /// A member lost its connection and keeps its place.
        case memberInterrupted = "member.interrupted"
        /// It is back.
        case memberResumed = "member.resumed"
        case channelOpened = "channel.opened"
        case channelClosed = "channel.closed"
    }

    /// Which events go to which server.
    package struct Subscription: Hashable, Sendable, Codable {
        package let id: String
        /// In nanoseconds since 1970 UTC.
        let createdAt: Int64
        package let url: String
        /// `nil` for all channels.
        package let channel: ChannelName?
        /// Events of these users only; empty for all. Events of channels have no user.
        package let users: [String]
        package let kinds: [Kind]

        func wants(_ kind: Kind, of user: String?, in channel: ChannelName) -> Bool {
            kinds.contains(kind) && (self.channel == nil || self.channel == channel)
                && (users.isEmpty || user.map { users.contains($0) } ?? false)
        }
    }

    /// The name in logs and ``WebhookCounters``.
    package static let webhookName = "subscription"
    /// The maximum number of subscriptions.
    package static let countMax = 20
    package static let usersMax = 30
    package static let urlBytesMax = 2_048

    private struct Entry {
        let subscription: Subscription
        let deliverer: WebhookDeliverer
    }
    /// The oldest first.
    private var entries: [Entry] = []
    private let transport: any WebhookTransport
    private let limits: WebhookLimits
    private let counters: WebhookCounters
    private let logger: Logger
    private let makeID: @Sendable () -> String
    private let clock: RoomClock
    private let onChange: @Sendable (_ id: String, _ subscription: String?) -> Void
    private let sleep: @Sendable (Duration) async -> Void
    /// The deliverers that have to be run.
    private let added: AsyncStream<WebhookDeliverer>
    private let add: AsyncStream<WebhookDeliverer>.Continuation

    /// - Parameters:
    ///   - client: The HTTP client, which must outlive the service. It must not have credentials of other servers.
    ///   - logger: Logs undelivered events.
    ///   - onChange: called for each subscription that begins by the API of this node, as a text for ``take(_:of:)`` of the other
    ///     nodes, and with `nil` for each that ends. It must not block.
    package init(
        client: WebhookClient,
        counters: WebhookCounters,
        logger: Logger,
        onChange: @escaping @Sendable (_ id: String, _ subscription: String?) -> Void
    ) {
        self.init(transport: client, counters: counters, logger: logger, onChange: onChange)
    }

    init(
        transport: any WebhookTransport,
        counters: WebhookCounters,
        logger: Logger,
        makeID: @escaping @Sendable () -> String = { UUID().uuidString.lowercased() },
        clock: RoomClock = .system,
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) },
        onChange: @escaping @Sendable (_ id: String, _ subscription: String?) -> Void = { _, _ in }
    ) {
        self.onChange = onChange
        self.transport = transport
        var limits = WebhookLimits()
        limits.waitingMax = 2_000
        self.limits = limits
        self.counters = counters
        self.logger = logger
        self.makeID = makeID
        self.clock = clock
        self.sleep = sleep
        (added, add) = AsyncStream.makeStream()
    }

    // MARK: Subscriptions

    /// All subscriptions, the oldest first.
    package var all: [Subscription] { entries.map(\.subscription) }

    /// The number of subscriptions, and of their events that are not delivered yet.
    package var load: (subscriptions: Int, waiting: Int) {
        get async {
            let entries = entries
            var waiting = 0
            for entry in entries { waiting += await entry.deliverer.waitingCount }
            return (entries.count, waiting)
        }
    }

    /// - Returns: the subscription; `nil` when there are ``countMax``.
    package func subscribe(url: String, channel: ChannelName?, users: [String], kinds: [Kind]) -> Subscription? {
        let subscription = Subscription(
            id: makeID(),
            createdAt: clock.unixNanoseconds,
            url: url,
            channel: channel,
            users: users,
            kinds: kinds
        )
        guard begin(subscription) else { return nil }
        if let text = try? JSONEncoder().encode(subscription) {
            onChange(subscription.id, String(decoding: text, as: UTF8.self))
        }
        return subscription
    }

    /// - Returns: whether there is room for it.
    private func begin(_ subscription: Subscription, countMax: Int = EventSubscriptions.countMax) -> Bool {
        guard entries.count < countMax else { return false }
        let deliverer = WebhookDeliverer(
            name: Self.webhookName,
            url: subscription.url,
            transport: transport,
            limits: limits,
            counters: counters,
            logger: logger,
            sleep: sleep
        )
        let place = entries.firstIndex { $0.subscription.createdAt > subscription.createdAt } ?? entries.endIndex
        entries.insert(Entry(subscription: subscription, deliverer: deliverer), at: place)
        add.yield(deliverer)
        return true
    }

    /// Ends a subscription after one last attempt for each queued event.
    /// - Returns: whether there was one.
    package func unsubscribe(_ id: String) async -> Bool {
        let isEnded = await end(id)
        if isEnded { onChange(id, nil) }
        return isEnded
    }

    private func end(_ id: String) async -> Bool {
        guard let index = entries.firstIndex(where: { $0.subscription.id == id }) else { return false }
        await entries.remove(at: index).deliverer.finish()
        return true
    }

    // MARK: Cluster

    /// Takes a subscription that began at any node of the cluster, or with `nil` ended. A text that is none is ignored, and so is
    /// one beyond twice ``countMax``: two nodes may each have made the last one.
    package func take(_ text: String?, of id: String) async {
        guard let text else {
            _ = await end(id)
            return
        }
        guard let subscription = try? JSONDecoder().decode(Subscription.self, from: Data(text.utf8)),
            subscription.id == id, Self.isURL(subscription.url), !all.contains(where: { $0.id == id })
        else { return }
        _ = begin(subscription, countMax: 2 * Self.countMax)
    }

    /// Whether events can be sent to this URL: `http` or `https` with a host, without credentials.
    package static func isURL(_ text: String) -> Bool {
        guard text.utf8.count <= urlBytesMax, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let url = URL(string: text), ["http", "https"].contains(url.scheme), url.user == nil, url.password == nil,
            let host = url.host
        else { return false }
        return !host.isEmpty
    }

    /// The part of a URL of a subscription that is no secret. It never has a user.
    package static func withoutQuery(_ url: String) -> String { String(url.prefix { $0 != "?" && $0 != "#" }) }

    // MARK: Events

    /// Queues the events of one report.
    func take(_ report: RoomReport) async {
        switch report {
        case .sessionCreated(let session, let time): await enqueue(.channelOpened, session, unixNanoseconds: time)
        case .sessionDestroyed(let session, let time): await enqueue(.channelClosed, session, unixNanoseconds: time)
        case .connectionCreated(let report): await enqueue(.memberJoined, report)
        case .publishingBegan(let report): await enqueue(.publish, report)
        case .flowChanged(let report):
            let flowing = report.connection.flowing
            await enqueue(
                .trackChanged,
                report,
                isEssential: false,
                ["audio": .bool(flowing.contains(.audio)), "video": .bool(flowing.contains(.video))]
            )
        case .firstFrameReceived(let report):
            let elapsed: [String: JSONValue] = ["elapsed": .integer(report.elapsedMilliseconds)]
            await enqueue(.firstFrame, report, isEssential: false, elapsed)
        case .connectionDestroyed(let report, let reason):
            if report.connection.hasPublished { await enqueue(.publishDone, report, reason: reason.name) }
            await enqueue(.memberLeft, report, reason: reason.name)
        case .roleChanged(let report, _):
            await enqueue(.memberRoleChanged, report)
            if report.connection.hasPublished, !report.connection.member.role.publishes {
                await enqueue(.publishDone, report, reason: Departure.becameAudience.rawValue)
            }
        case .qualityChanged(let report):
            let quality = report.connection.quality
            await enqueue(
                .memberNetworkQuality,
                report,
                isEssential: false,
                ["uplink": .integer(quality.uplink.rawValue), "downlink": .integer(quality.downlink.rawValue)]
            )
        case .connectionInterrupted(let report): await enqueue(.memberInterrupted, report)
        case .connectionResumed(let report): await enqueue(.memberResumed, report)
        case .connectionUpdated, .connectionFailed, .setupAdvanced: break
        }
    }

    private func enqueue(_ kind: Kind, _ session: ChannelSession, unixNanoseconds: Int64) async {
        await enqueue(
            kind,
            of: nil,
            in: session.channel,
            at: unixNanoseconds,
            ["session_id": .string(session.id.value)]
        )
    }

    private func enqueue(
        _ kind: Kind,
        _ report: ConnectionReport,
        reason: String? = nil,
        isEssential: Bool = true,
        _ more: [String: JSONValue] = [:]
    ) async {
        let (connection, member) = (report.connection, report.connection.member)
        var members: [String: JSONValue] = [
            "session_id": .string(connection.session.value), "user_id": .string(member.clientID),
            "connection_id": .string(member.id.value), "role": .string(member.role.rawValue),
            "signaling": .string(connection.agent.signaling.rawValue),
            "audio": .bool(member.sendsAudio), "video": .bool(member.sendsVideo),
        ]
        members["reason"] = reason.map { .string($0) }
        members.merge(more) { $1 }
        await enqueue(
            kind,
            of: member.clientID,
            in: connection.channel,
            at: report.unixNanoseconds,
            isEssential: isEssential,
            members
        )
    }

    func enqueue(
        _ kind: Kind,
        of user: String?,
        in channel: ChannelName,
        at unixNanoseconds: Int64,
        isEssential: Bool = true,
        _ members: [String: JSONValue]
    ) async {
        for entry in entries where entry.subscription.wants(kind, of: user, in: channel) {
            var body = members
            body["id"] = .string(makeID())
            body["subscription_id"] = .string(entry.subscription.id)
            body["event"] = .string(kind.rawValue)
            body["channel"] = .string(channel.value)
            body["timestamp"] = .string(Timestamp.text(unixNanoseconds: unixNanoseconds))
            await entry.deliverer.enqueue(
                WebhookDeliverer.Event(body: .object(body), isEssential: isEssential),
                of: channel
            )
        }
    }

    /// Counts events that were dropped before it was known which subscriptions want them.
    func dropped(_ events: UInt64, _ reason: WebhookCounters.DropReason) async {
        if !entries.isEmpty { await counters.dropped(Self.webhookName, reason, events) }
    }

    // MARK: Service

    /// Delivers events until a graceful shutdown, and then the queued ones within the drain timeout.
    package func run() async {
        await deliver(drainTimeout: limits.drainTimeout) { [added] in
            await withDiscardingTaskGroup { group in
                for await deliverer in added { group.addTask { await deliverer.run() } }
            }
        } finish: {
            add.finish()
            for entry in entries { await entry.deliverer.finish() }
        }
    }
}
