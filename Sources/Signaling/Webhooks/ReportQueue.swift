import ChannelTypes
package import JSON
package import Room
import ServiceLifecycle
import Synchronization

/// The reports on their way from channels and calls, which do not wait, to the webhooks and subscriptions.
///
/// It keeps the order of each channel, and is bounded as the queue of each webhook is: see ``DeliveryQueue``. Nothing that it
/// hands reports to waits for a server, so it is empty most of the time.
///
/// Services shut down in reverse order of their list: put it behind the webhooks and subscriptions, and before
/// ``RoomsService``, whose shutdown causes reports.
package final class ReportQueue: Service {
    private struct State {
        /// What hands each report on.
        var queue: DeliveryQueue<@Sendable () async -> Void>
        /// Since they were last counted.
        var drops: [WebhookCounters.DropReason: UInt64] = [:]
    }
    private let state: Mutex<State>
    private let webhooks: Webhooks
    private let subscriptions: EventSubscriptions
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    package init(_ webhooks: Webhooks, _ subscriptions: EventSubscriptions, limits: WebhookLimits) {
        self.webhooks = webhooks
        self.subscriptions = subscriptions
        state = Mutex(State(queue: DeliveryQueue(limits: limits)))
        (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Queues a report without blocking.
    /// - Parameter media: How the media of a connection that ended was; `nil` where that is not known.
    package func add(_ report: RoomReport, media: JSONValue? = nil) {
        let (channel, isEssential) =
            switch report {
            case .sessionCreated(let session, _), .sessionDestroyed(let session, _): (session.channel, true)
            case .connectionCreated(let report), .roleChanged(let report, _), .connectionInterrupted(let report),
                .connectionResumed(let report), .connectionDestroyed(let report, _), .publishingBegan(let report):
                (report.connection.channel, true)
            case .connectionUpdated(let report), .qualityChanged(let report), .setupAdvanced(let report),
                .connectionFailed(let report, _), .flowChanged(let report), .firstFrameReceived(let report):
                (report.connection.channel, false)
            }
        add(of: channel, isEssential: isEssential) { [webhooks, subscriptions] in
            await webhooks.take(report, media: media)
            await subscriptions.take(report)
        }
    }

    /// Queues a report without blocking.
    package func add(_ report: CallReport) {
        add(of: report.room, isEssential: false) { [webhooks, subscriptions] in
            await webhooks.take(report)
            await subscriptions.take(report)
        }
    }

    private func add(of channel: ChannelName, isEssential: Bool, _ handOn: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            switch state.queue.add(handOn, of: channel, isEssential: isEssential) {
            case .taken: break
            case .displaced: state.drops[.channelShare, default: 0] += 1
            case .refused: state.drops[.full, default: 0] += 1
            }
        }
        wake.yield()
    }

    /// Hands on reports until a graceful shutdown, and then those that wait.
    package func run() async {
        await withGracefulShutdownHandler {
            for await _ in wakes { await empty() }
        } onGracefulShutdown: { [wake] in
            wake.finish()
        }
        await empty()
    }

    private func empty() async {
        while let (channel, handOn) = state.withLock({ $0.queue.next() }) {
            await handOn()
            state.withLock { _ = $0.queue.finished(channel, isDelivered: true) }
        }
        let drops = state.withLock { state in
            defer { state.drops = [:] }
            return state.drops
        }
        for (reason, events) in drops {
            await webhooks.dropped(events, reason)
            await subscriptions.dropped(events, reason)
        }
    }
}
