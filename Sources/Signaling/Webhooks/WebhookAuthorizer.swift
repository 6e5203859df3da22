package import Access
import Base
package import ChannelTypes
package import JSON
package import Logging
package import Web

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Asks an operator's server to admit or deny each client.
///
/// A slow or dead server delays only the clients that wait for its answer, at most for the webhook timeout. The number of
/// waiting clients is bounded.
package actor WebhookAuthorizer: Authorizer {
    private let url: String
    private let transport: any WebhookTransport
    private let node: NodeIdentity
    private let counters: WebhookCounters
    private let logger: Logger
    private let ignoredGrants: IgnoredGrants
    private let now: @Sendable () -> Int64
    private var pending: PendingAdmissions

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
        pending = PendingAdmissions(limits)
        self.node = node
        self.counters = counters
        self.logger = logger
        ignoredGrants = IgnoredGrants(of: "answer of the authentication webhook", logger: logger)
        self.now = now
    }

    /// - Parameters:
    ///   - configuration: The initializer returns `nil` when it has no authentication webhook.
    ///   - logger: Logs denied clients with the reason.
    package init?(
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

    /// ``admit(_:)`` decides on publishers and viewers, and also on readers of a channel's participants, as on viewers. The
    /// token that opened a session controls it.
    package func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization {
        switch action {
        case .publish, .watch, .probe: .allowed
        case .control: .asOwner
        case .observe: .asViewer
        }
    }

    package func admit(_ request: AccessRequest) async -> AccessDecision {
        if let reason = pending.open(for: request.network) {
            await counters.dropped("auth", reason)
            return failed(request, "Too many clients wait for the authentication webhook.")
        }
        defer { pending.close(for: request.network) }
        do {
            let body = request.webhookBody(timestamp: Timestamp.text(unixNanoseconds: now()), node: node.members)
            let answer = try await counters.timed("auth") { [transport, url] () async throws(WebhookFailure) in
                try await transport.exchange(
                    body,
                    with: url,
                    headers: [("sora-connection-id", request.participant.value)]
                )
            }
            return try await decision(answer, request)
        } catch let failure as WebhookFailure {
            // A cancellation by the client is no failure of the server.
            guard !Task.isCancelled else { return .failed }
            await counters.failed("auth")
            return failed(request, failure.message)
        } catch {
            await counters.failed("auth")
            return failed(request, (error as? JSONShapeError)?.message ?? "\(error)")
        }
    }

    private func decision(
        _ answer: [String: JSONValue],
        _ request: AccessRequest
    ) async throws(JSONShapeError) -> AccessDecision {
        let decision = try AccessDecision(webhookAnswer: answer)
        await counters.delivered("auth")
        switch decision {
        case .denied(let reason):
            await counters.decided(isAllowed: false)
            log("client denied by the authentication webhook", request, reason ?? "The webhook gave no reason.")
        case .allowed(let grants):
            await counters.decided(isAllowed: true)
            await ignoredGrants.note(grants)
        case .failed: break
        }
        return decision
    }

    private func failed(_ request: AccessRequest, _ message: String) -> AccessDecision {
        logger.warning("the authentication webhook did not decide", metadata: metadata(request, message))
        return .failed
    }

    private func log(_ message: Logger.Message, _ request: AccessRequest, _ reason: String) {
        logger.notice(message, metadata: metadata(request, reason))
    }

    private func metadata(_ request: AccessRequest, _ reason: String) -> Logger.Metadata {
        [
            "channel": "\(request.channel)", "participant": "\(request.participant)",
            "role": "\(request.role.rawValue)", "reason": "\(reason.printable)",
        ]
    }
}

/// Counts the pending requests to the authentication webhook, by the client's network.
struct PendingAdmissions {
    private let most: Int
    private let mostOfNetwork: Int
    private var count = 0
    private var counts: [ClientNetwork: Int] = [:]

    init(_ limits: WebhookLimits) {
        most = limits.questionsMax
        mostOfNetwork = limits.questionsPerNetworkMax
    }

    /// Counts a request, until ``close(for:)``. Returns the reason when it exceeds a limit, and `nil` otherwise.
    mutating func open(for network: ClientNetwork) -> WebhookCounters.DropReason? {
        let free = most - count
        guard free > 0 else { return .full }
        let share = min(mostOfNetwork, max(free / 4, 1))
        // A shared network can have any number of clients.
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
    /// The members of every webhook request.
    package var members: [String: JSONValue] {
        ["label": .string(label), "version": .string(version), "node_name": .string(name)]
    }
}
