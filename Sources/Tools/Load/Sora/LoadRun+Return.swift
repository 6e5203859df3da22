import Base
import Client
import EventLoop

/// Clients that join again after their session ended, as apps do when a node of a cluster stops or dies.
extension LoadRun {
    /// Between two tries: the first time, and the most. Half of it is random.
    private static let retryFirst = Duration.milliseconds(200)
    private static let retryMax = Duration.seconds(2)
    /// A client that is not back after this time has failed.
    private static let returnMax = Interval.seconds(60)
    /// How long the first packet may take.
    private static let mediaMax = Interval.seconds(30)

    /// Lets a client whose session ended return, if that is configured. It does not wait for it.
    func returnToChannel(_ client: PendingClient, _ role: Role, _ number: Int) async {
        guard let sora, !isEnding, !configuration.rejoinURLs.isEmpty else { return }
        guard joined.contains(client.id) else {
            // Its join has not returned yet, which looks at this.
            endedEarly.insert(client.id)
            return
        }
        let endedAt = EventLoop.now()
        await client.loop.abandon(client.id)
        guard !isEnding else { return }
        returning += 1
        returns.append(
            Task {
                await returnToChannel(sora, client, role, number, since: endedAt)
                returning -= 1
            }
        )
    }

    private func returnToChannel(
        _ sora: SoraSignaling,
        _ former: PendingClient,
        _ role: Role,
        _ number: Int,
        since endedAt: Instant
    ) async {
        let servers = configuration.rejoinURLs + [configuration.url]
        // Clients spread over the other servers.
        var next = number % configuration.rejoinURLs.count
        var former = former
        var pause = Self.retryFirst
        while !Task.isCancelled {
            do throws(LoadError) {
                let client = try await prepareClient(role, number, after: former)
                former = client
                try await join(sora, client, role, number, at: servers[next])
                guard !Task.isCancelled else { return }
                guard await hasMedia(client, role) else {
                    guard !Task.isCancelled else { return }
                    report.failures["A client that came back received no media.", default: 0] += 1
                    return
                }
                report.returned = (report.returned ?? 0) + 1
                returnTimes.observe(EventLoop.now() - endedAt)
                return
            } catch {
                guard !Task.isCancelled else { return }
                guard EventLoop.now() - endedAt < Self.returnMax else {
                    report.failures["A client did not come back within 60 s. \(error.message)", default: 0] += 1
                    return
                }
            }
            await former.loop.abandon(former.id)
            next = (next + 1) % servers.count
            guard (try? await Task.sleep(for: pause * Double.random(in: 0.5...1))) != nil else { return }
            pause = min(pause * 2, Self.retryMax)
        }
    }

    /// Waits for the first packet of a client that receives tracks.
    /// - Returns: whether it came, or none is to come.
    private func hasMedia(_ client: PendingClient, _ role: Role) async -> Bool {
        guard role == .subscriber || configuration.conferenceMembers != nil else { return true }
        let start = EventLoop.now()
        while await client.loop.receives(client.id) == false {
            guard EventLoop.now() - start < Self.mediaMax, (try? await Task.sleep(for: .milliseconds(5))) != nil else {
                return false
            }
        }
        // A session that ended meanwhile returns by itself.
        return true
    }
}
