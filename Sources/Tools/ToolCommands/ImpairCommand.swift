package import ArgumentParser
import Base
import EventLoop
import Foundation
import Impairment
import ImpairmentProxy
import Wire

/// `nagare impair`: a network link with a bottleneck, delay and loss between clients and a node.
package struct ImpairCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "impair",
        abstract: "Put a slow or lossy link between clients and a node, to see how they adapt.",
        discussion: """
            Passes HTTP, WebSockets and media between clients and a node, and replaces the node's ICE candidates by its own \
            ports. Clients that open its URL use the link, clients that open the node's URL do not:
              nagare serve --dev
              nagare impair --down rate=1M,delay=50ms
            Publish at http://127.0.0.1:8080/ and watch at http://127.0.0.1:8088/.

            --down and --up take NAME=VALUE, separated by commas:
              rate=1M               the bottleneck in bit/s, with k, M or G
              rate=3M/600k@20s      steps: 600 kbit/s from second 20 on
              queue=300ms           its queue (default); or as 64kB or 50p (packets)
              delay=50ms            the delay of each packet
              jitter=10ms           a further random delay
              loss=2%               independent losses
              burst-loss=2%:8       losses in bursts of 8 packets on average
              policer=1M:32kB       drop what exceeds a token bucket
              reorder=1%:20ms       hold packets back while others pass
              duplicate=0.5%        packets that arrive twice
              outage=6s@30s         nothing passes for 6 s from second 30 on
            Headers of IP and UDP count. Seconds count from the first packet of a client. Several outages are separated by /.

            While it runs, a line on standard input changes the link: "down rate=600k", "up loss=5%", or \
            "down rate=unlimited". Once a second it prints what passes; Ctrl-C prints a summary.

            --to HOST:PORT relays UDP only, to one media address, without HTTP.
            """
    )

    @Option(
        help: ArgumentHelp(
            "The node: its URL, or for UDP only the IP address and port of its media.",
            valueName: "url|host:port"
        )
    )
    var to = "http://127.0.0.1:8080"

    @Option(
        help: ArgumentHelp(
            "Listen here: HTTP on this TCP port, media on this UDP port and the next ones.",
            valueName: "host:port"
        )
    )
    var listen = "127.0.0.1:8088"

    @Option(help: ArgumentHelp("The link from the node to clients.", valueName: "link"))
    var down: String?

    @Option(help: ArgumentHelp("The link from clients to the node.", valueName: "link"))
    var up: String?

    @Option(help: ArgumentHelp("The seed of all random decisions.", valueName: "n"))
    var seed: UInt64 = 1

    @Flag(help: "Give each client transport a link of its own. By default all clients share one.")
    var perClient = false

    /// What the options describe.
    struct Plan: Equatable {
        enum Target: Equatable {
            case http(SignalingProxy.Target)
            case media(TransportAddress)
        }
        var target: Target
        var listen: TransportAddress
        var down = LinkConditions()
        var up = LinkConditions()
    }

    var plan: Plan {
        get throws {
            guard let listen = Self.address(listen) else {
                throw CommandError.usage(
                    "--listen is \"\(listen)\": write an IP address and a port, as 127.0.0.1:8088."
                )
            }
            var plan = Plan(target: try target, listen: listen)
            if let down { plan.down = try Self.conditions(down, "--down") }
            if let up { plan.up = try Self.conditions(up, "--up") }
            return plan
        }
    }

    private var target: Plan.Target {
        get throws {
            if let address = Self.address(to) {
                guard address.port > 0, !address.ip.isUnspecified else {
                    throw CommandError.usage("--to is \"\(to)\": write the address and port of the node's media.")
                }
                return .media(address)
            }
            if to.lowercased().hasPrefix("https://") {
                throw CommandError.usage(
                    "--to is \"\(to)\", but this command does not connect with TLS: name a node that serves http://, such "
                        + "as nagare serve --dev."
                )
            }
            guard let url = URL(string: to), url.scheme?.lowercased() == "http", let host = url.host(), !host.isEmpty,
                ["", "/"].contains(url.path()), url.query() == nil
            else {
                throw CommandError.usage(
                    "--to is \"\(to)\": write the node's URL, as http://127.0.0.1:8080, or for UDP only 127.0.0.1:7000."
                )
            }
            let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            return .http(SignalingProxy.Target(host: name, port: url.port ?? 80))
        }
    }

    /// An address, in which localhost is 127.0.0.1.
    private static func address(_ text: String) -> TransportAddress? {
        TransportAddress(text.hasPrefix("localhost:") ? "127.0.0.1:" + text.dropFirst("localhost:".count) : text)
    }

    static func conditions(_ text: String, _ flag: String) throws(CommandError) -> LinkConditions {
        do throws(LinkConditionsError) {
            return try LinkConditions(parsing: text)
        } catch {
            throw .usage("\(flag): \(error.message)")
        }
    }

    package init() {}

    package func run() async throws {
        let plan = try plan
        FileDescriptorLimit.raise()
        _ = signal(SIGPIPE, SIG_IGN)
        let media = try await startMedia(plan)
        let signaling: SignalingProxy?
        do {
            signaling = try await startSignaling(plan, media)
        } catch {
            await media.shutdown()
            throw error
        }
        Self.say(try await introduction(plan, media, signaling))
        let reader = ConditionReader { await Self.change(media, $0) }
        await Task {
            var before = await media.status()
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                let status = await media.status()
                if status.elapsed != nil { Self.say(status.line(since: before)) }
                before = status
            }
        }
        .valueUntilSignal()
        reader.stop()
        Self.say(await media.status().summary)
        await signaling?.shutdown()
        await media.shutdown()
    }

    private func startMedia(_ plan: Plan) async throws -> MediaProxy {
        var isHTTP = true
        if case .media = plan.target { isHTTP = false }
        var settings = MediaProxy.Configuration(
            listen: plan.listen.ip,
            firstPort: plan.listen.port,
            ports: isHTTP ? MediaProxy.portsMax : 1
        )
        settings.down = plan.down
        settings.up = plan.up
        settings.seed = seed
        settings.isPerClient = perClient
        do throws(EventLoopError) {
            return try await MediaProxy.start(settings)
        } catch {
            throw CommandError.system("\(error.message.dropLast()) (--listen).")
        }
    }

    private func startSignaling(_ plan: Plan, _ media: MediaProxy) async throws -> SignalingProxy? {
        switch plan.target {
        case .media(let address):
            _ = media.ports.port(for: address)
            return nil
        case .http(let target):
            do throws(SignalingProxyError) {
                return try await SignalingProxy.start(listen: plan.listen, target: target, ports: media.ports)
            } catch {
                throw CommandError.system(error.message)
            }
        }
    }

    private func introduction(_ plan: Plan, _ media: MediaProxy, _ signaling: SignalingProxy?) async throws -> String {
        let status = await media.status()
        var lines: [String] = []
        switch plan.target {
        case .http:
            let ip = plan.listen.ip.isUnspecified ? IPAddress.loopbackV4 : plan.listen.ip
            let address = TransportAddress(ip: ip, port: UInt16(clamping: signaling?.port ?? 0))
            lines.append("Watch through the link:    http://\(address)/")
            lines.append("Publish without the link:  \(to.hasSuffix("/") ? to : to + "/")")
        case .media(let address):
            let port = media.ports.port(for: address) ?? plan.listen.port
            lines.append(
                "UDP on \(TransportAddress(ip: plan.listen.ip, port: port)) goes through the link to \(address)."
            )
        }
        lines.append("down  \(status.down.conditions)")
        lines.append("up    \(status.up.conditions)")
        if down == nil, up == nil {
            lines.append("The link is perfect: limit it with --down, or type \"down rate=1M\" here.")
        }
        return lines.joined(separator: "\n")
    }

    /// Applies one line of standard input.
    private static func change(_ media: MediaProxy, _ line: String) async {
        let words = line.split(separator: " ", maxSplits: 1)
        guard let name = words.first else { return }
        guard let direction = MediaProxy.Direction(rawValue: String(name)), words.count == 2 else {
            say("\"\(line)\" changes nothing: write down or up and what to change, as down rate=600k.")
            return
        }
        var conditions = await media.conditions(direction)
        do throws(LinkConditionsError) {
            try conditions.apply(String(words[1]))
        } catch {
            say("Nothing was changed: \(error.message)")
            return
        }
        await media.change(direction, to: conditions)
        let status = await media.status()
        say("\(name)  \(direction == .down ? status.down.conditions : status.up.conditions)")
    }

    private static func say(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }
}

/// Reads lines from standard input while other work goes on.
private final class ConditionReader: Sendable {
    private let task: Task<Void, Never>

    init(_ handle: @escaping @Sendable (String) async -> Void) {
        // A process in the background of a terminal gets an error instead of being stopped.
        _ = signal(SIGTTIN, SIG_IGN)
        let (lines, sink) = AsyncStream.makeStream(of: String.self)
        // A thread of its own, because reading blocks until a line comes.
        Thread.detachNewThread {
            while let line = readLine() { sink.yield(line) }
            sink.finish()
        }
        task = Task { for await line in lines { await handle(line) } }
    }

    func stop() { task.cancel() }
}

// MARK: - Output

extension MediaProxy.Status {
    /// What passed since `before`, as one line.
    fileprivate func line(since before: Self) -> String {
        let seconds = max((at - before.at).seconds, 1e-3)
        let second = String(Int((elapsed ?? .zero).seconds.rounded()))
        return "\(second.leftPadded(to: 5)) s  \(clients) \(clients == 1 ? "client " : "clients")"
            + "  down \(Self.line(down, since: before.down, seconds))"
            + "  up \(Self.line(up, since: before.up, seconds))"
    }

    private static func line(_ link: Link, since before: Link, _ seconds: Double) -> String {
        let carried = Double(link.statistics.bytesDelivered - before.statistics.bytesDelivered) * 8 / seconds / 1e6
        let dropped = link.statistics.packetsDropped - before.statistics.packetsDropped
        let rate = String(format: "%.2f", carried).leftPadded(to: 6)
        return "\(rate) Mbit/s, \("\(dropped)".leftPadded(to: 3)) dropped, "
            + "queue \("\(link.queueDelay.milliseconds)".leftPadded(to: 3)) ms [\(link.conditions)]"
    }

    /// All that passed, as lines of text.
    fileprivate var summary: String {
        var lines = ["", "In \(Int((elapsed ?? .zero).seconds.rounded())) s:"]
        for (name, link) in [("down", down), ("up", up)] {
            let counts = link.statistics
            let events = [
                (counts.queueDrops, "dropped by the full queue"), (counts.policerDrops, "dropped by the policer"),
                (counts.lost, "lost"), (counts.outageDrops, "lost in outages"), (counts.duplicates, "duplicated"),
            ]
            lines.append(
                "  \(name.rightPadded(to: 5)) \(counts.packetsSent) packets sent, \(counts.packetsDelivered) arrived"
                    + events.filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
                    + "; longest queue \(counts.queueDelayMax.milliseconds) ms"
            )
        }
        if elapsed == nil {
            lines.append("  No client sent media through the link: open the printed URL, and watch there.")
        }
        if refused > 0 {
            lines.append(
                "  \(refused) packets were refused: more than \(MediaProxy.clientsMax) clients, or a port without a media "
                    + "address behind it."
            )
        }
        return lines.joined(separator: "\n")
    }
}

extension String {
    fileprivate func leftPadded(to length: Int) -> String {
        String(repeating: " ", count: max(length - count, 0)) + self
    }
    fileprivate func rightPadded(to length: Int) -> String {
        self + String(repeating: " ", count: max(length - count, 0))
    }
}
