public import Access
import JSON
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
    public func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization {
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
                request.webhookBody(timestamp: Timestamp.text(unixNanoseconds: now()), node: node.members),
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
        let decision = try AccessDecision(webhookAnswer: answer)
        counters.delivered("auth")
        switch decision {
        case .denied(let reason):
            counters.decided(isAllowed: false)
            log("newcomer refused by the authentication webhook", request, reason ?? "It gave no reason.")
        case .allowed, .failed: counters.decided(isAllowed: true)
        }
        return decision
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
    /// The members that every webhook gets.
    var members: [String: JSONValue] {
        ["label": .string(label), "version": .string(version), "node_name": .string(name)]
    }
}
