public import Logging
import Room
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Lets an operator's own server decide about every newcomer.
///
/// A server that is slow or dead keeps newcomers out and delays nobody else: each waits for its own answer no longer than
/// the webhook's timeout, and no more than so many wait at one time.
public final class WebhookAuthorizer: Authorizer {
    private let url: String
    private let transport: any WebhookTransport
    private let node: NodeIdentity
    private let counters: WebhookCounters
    private let logger: Logger
    private let now: @Sendable () -> Int64
    private let questions: Mutex<OpenQuestions>

    init(
        url: String,
        transport: any WebhookTransport,
        limits: WebhookLimits = WebhookLimits(),
        node: NodeIdentity,
        counters: WebhookCounters,
        logger: Logger,
        now: @escaping @Sendable () -> Int64
    ) {
        self.url = url
        self.transport = transport
        questions = Mutex(OpenQuestions(limits))
        self.node = node
        self.counters = counters
        self.logger = logger
        self.now = now
    }

    /// - Parameters:
    ///   - configuration: `nil` is returned when it names no authentication webhook.
    ///   - logger: is told of who is refused and why.
    public convenience init?(
        _ configuration: WebhookConfiguration,
        client: WebhookClient,
        node: NodeIdentity,
        counters: WebhookCounters,
        logger: Logger
    ) {
        guard let url = configuration.authenticationURL else { return nil }
        self.init(
            url: url,
            transport: client,
            limits: configuration.limits,
            node: node,
            counters: counters,
            logger: logger,
            now: { Int64(Date().timeIntervalSince1970 * 1e9) }
        )
    }

    /// Who wants to publish or to watch is judged by ``admit(_:)``, and whoever reads the list of a channel's members as a
    /// viewer who does not say how it wants to watch. A session is controlled with the token that opened it.
    public func authorize(_ action: AuthorizedAction, token: String?) async -> Authorization {
        switch action {
        case .publish, .watch, .probe: .allowed
        case .control: .asOwner
        case .observe: .asViewer
        }
    }

    public func admit(_ request: AccessRequest) async -> AccessDecision {
        if let reason = questions.withLock({ $0.open(for: request.network) }) {
            counters.dropped("auth", reason)
            return failed(request, "Too many newcomers wait for the authentication webhook.")
        }
        defer { questions.withLock { $0.close(for: request.network) } }
        do {
            let answer = try await transport.exchange(
                question(request),
                with: url,
                headers: [("sora-connection-id", request.participant.value)]
            )
            return try decision(answer, request)
        } catch let failure as WebhookFailure {
            // Where the newcomer went away, the server need not have failed.
            guard !Task.isCancelled else { return .failed }
            counters.failed("auth")
            return failed(request, failure.sentence)
        } catch {
            counters.failed("auth")
            return failed(request, (error as? JSONShapeError)?.sentence ?? "\(error)")
        }
    }

    private func decision(
        _ answer: [String: JSONValue],
        _ request: AccessRequest
    ) throws(JSONShapeError) -> AccessDecision {
        let fields = JSONFields(answer)
        guard let isAllowed = try fields.bool("allowed") else { throw JSONShapeError("\"allowed\" is missing.") }
        guard isAllowed else {
            let reason = try fields.string("reason", bytesMax: 4_096)
            counters.delivered("auth")
            counters.decided(isAllowed: false)
            log("newcomer refused by the authentication webhook", request, reason ?? "It gave no reason.")
            return .denied(reason: reason)
        }
        let grants = try Grants(answer)
        counters.delivered("auth")
        counters.decided(isAllowed: true)
        return .allowed(grants)
    }

    private func failed(_ request: AccessRequest, _ sentence: String) -> AccessDecision {
        logger.warning("the authentication webhook did not decide", metadata: metadata(request, sentence))
        return .failed
    }

    private func log(_ message: Logger.Message, _ request: AccessRequest, _ reason: String) {
        logger.info(message, metadata: metadata(request, reason))
    }

    private func metadata(_ request: AccessRequest, _ reason: String) -> Logger.Metadata {
        [
            "channel": "\(request.channel)", "participant": "\(request.participant)",
            "role": "\(request.role.rawValue)", "reason": "\(reason.printable)",
        ]
    }

    /// What the server is told of the newcomer.
    func question(_ request: AccessRequest) -> JSONValue {
        var members: [String: JSONValue] = [
            "timestamp": .string(Timestamp.text(unixNanoseconds: now())),
            "channel_id": .string(request.channel.value),
            "session_id": .string(request.session.value),
            "connection_id": .string(request.participant.value),
            "client_id": .string(request.clientID ?? request.participant.value),
            "bundle_id": .string(request.bundleID ?? request.participant.value),
            "role": .string(request.role.rawValue),
            "simulcast": .bool(request.isSimulcast),
            "spotlight": .bool(request.spotlight),
            "multistream": true,
            "channel_connections": .integer(request.counts.connections),
            "channel_sendrecv_connections": .integer(request.counts.sendrecv),
            "channel_sendonly_connections": .integer(request.counts.sendonly),
            "channel_recvonly_connections": .integer(request.counts.recvonly),
        ]
        members.merge(node.members) { $1 }
        members.merge(request.agent.members) { $1 }
        members["libwebrtc"] = request.libwebrtc.map { .string($0) }
        members["metadata"] = request.metadata
        members["signaling_notify_metadata"] = request.notifyMetadata
        // WHIP's and WHEP's token stands where Sora's clients put theirs.
        if request.metadata == nil, let token = request.token {
            members["metadata"] = ["access_token": .string(token)]
        }
        for (kind, media) in [("audio", request.audio), ("video", request.video)] {
            members[kind] = .bool(media.isEnabled)
            members["\(kind)_codec_type"] = media.codec.map { .string($0) }
            members["\(kind)_bit_rate"] = media.bitRate.map { .integer($0) }
        }
        return .object(members)
    }
}

/// Counts the questions that wait for an answer, by the newcomer's network.
struct OpenQuestions {
    private let most: Int
    private let mostOfNetwork: Int
    private var count = 0
    private var counts: [ClientNetwork: Int] = [:]

    init(_ limits: WebhookLimits) {
        most = limits.questionsMax
        mostOfNetwork = limits.questionsPerNetworkMax
    }

    /// Takes a place for a question, given back by ``close(for:)``. Returns why there is none.
    mutating func open(for network: ClientNetwork) -> WebhookCounters.DropReason? {
        let free = most - count
        guard free > 0 else { return .full }
        let share = min(mostOfNetwork, max(free / 4, 1))
        // Clients that cannot be told apart may be any number of people.
        guard network.isShared || counts[network, default: 0] < share else { return .networkShare }
        count += 1
        counts[network, default: 0] += 1
        return nil
    }

    mutating func close(for network: ClientNetwork) {
        count -= 1
        let others = (counts[network] ?? 1) - 1
        counts[network] = others > 0 ? others : nil
    }
}

extension NodeIdentity {
    /// As every webhook is told.
    var members: [String: JSONValue] {
        ["label": .string(label), "version": .string(version), "node_name": .string(name)]
    }
}

extension ClientAgent {
    /// As webhooks and operators are told.
    var members: [String: JSONValue] {
        var members: [String: JSONValue] = ["signaling": .string(signaling.rawValue)]
        members["sora_client"] = name.isEmpty ? nil : .string(name)
        members["environment"] = environment.map { .string($0) }
        return members
    }
}
