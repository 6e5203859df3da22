import Base
import ChannelTypes
import ClusterTestSupport
import MediaTypes
import Room
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// What a large cluster asks of its store while all is well.
@Suite(.timeLimit(.minutes(10))) struct StoreLoadTests {
    struct Size: Sendable, CustomTestStringConvertible {
        let nodes: Int
        let channels: Int
        /// Channels that begin in a second, each at two nodes. As many end.
        let newChannels: Int
        let commandsMax: Int
        let megabitsMax: Double
        var testDescription: String { "\(nodes) nodes, \(channels) channels" }
    }

    /// Two commands a second for each node, as 1,000 for 500 nodes with 10,000 channels. A channel lives about ten minutes.
    static let sizes = [
        Size(nodes: 20, channels: 400, newChannels: 1, commandsMax: 40, megabitsMax: 2),
        Size(nodes: 100, channels: 2_000, newChannels: 3, commandsMax: 200, megabitsMax: 10),
        Size(nodes: 500, channels: 10_000, newChannels: 17, commandsMax: 1_000, megabitsMax: 50),
    ]

    /// Nodes whose rooms are those of ``ChannelReplicas``.
    private struct Load {
        var cluster: SimulatedCluster
        var replicas: [ChannelReplicas]
        var channelNext = 0
        /// The channels and their nodes, the oldest first.
        var channels: [(name: ChannelName, nodes: [Int])] = []
        var attaches = 0
        var generator: SeededGenerator

        init(_ size: Size) throws {
            generator = SeededGenerator(seed: 1)
            cluster = SimulatedCluster(seed: 2)
            let ids = try (0..<size.nodes).map { try Given.node("node-\($0)") }
            replicas = ids.map { ChannelReplicas(own: $0) }
            for id in ids {
                _ = try cluster.start(id, Self.record(&generator))
                cluster.advance(by: Interval(nanoseconds: 1_000_000_000 / Int64(size.nodes)))
            }
            cluster.advance(by: .seconds(15))
            for number in 0..<size.channels {
                try begin(at: size.nodes)
                if number % 400 == 399 { cluster.advance(by: .milliseconds(100)) }
            }
        }

        static func record(_ generator: inout SeededGenerator) throws -> NodeRecord {
            var record = NodeRecord(state: .ready)
            record.region = "eu-central-1"
            record.zone = "eu-central-1a"
            record.build = "1.20.3"
            record.publicURL = "https://node-123.example.com"
            record.linkAddress = "10.123.123.123:7400"
            record.setLoad(Double.random(in: 0...1, using: &generator))
            record.members = Int.random(in: 0...2_000, using: &generator)
            record.rooms = Int.random(in: 0...100, using: &generator)
            return record
        }

        /// A channel begins at two nodes, and more members join there.
        mutating func begin(at nodes: Int) throws {
            let name = try #require(ChannelName("channel-\(channelNext)"))
            channelNext += 1
            let first = Int.random(in: 0..<nodes, using: &generator)
            let pair = [first, (first + Int.random(in: 1..<nodes, using: &generator)) % nodes]
            channels.append((name, pair))
            for index in pair {
                let before = cluster.store.commandCount
                try join(name, at: index)
                #expect(cluster.store.commandCount == before + 1, "the first join at a node costs a command")
                for _ in 0..<3 { try join(name, at: index) }
                #expect(cluster.store.commandCount == before + 1, "a join to a known channel costs none")
            }
        }

        private mutating func join(_ name: ChannelName, at index: Int) throws {
            let session = try #require(RoomSession(rawValue: name.value))
            for case .attach in replicas[index].open(name, session, at: cluster.now) {
                attaches += 1
                guard let entry = cluster.attach(name, at: index) else { continue }
                _ = replicas[index].found(
                    name,
                    session: entry.session,
                    nodes: entry.nodes.keys,
                    at: cluster.now
                )
            }
        }

        /// The oldest channel ends at both of its nodes.
        mutating func endOldest() throws {
            let (name, nodes) = channels.removeFirst()
            let session = ChannelSession(id: ChannelSessionID(using: &generator), channel: name, createdAt: 0)
            for index in nodes {
                for case .detach in replicas[index].close(name, ended: session, at: cluster.now) {
                    cluster.detach(name, at: index)
                }
            }
        }

        /// A second in which every node's measurements change.
        mutating func second(_ size: Size) throws {
            for index in cluster.running { try cluster.setRecord(Self.record(&generator), of: index) }
            for _ in 0..<size.newChannels {
                try begin(at: size.nodes)
                try endOldest()
            }
            cluster.advance(by: .seconds(1))
        }
    }

    private final class Answers: Sendable {
        let counts = Mutex((all: 0, complete: 0, changes: 0))
    }

    @Test(arguments: sizes) func `the store of a cluster has little to do`(_ size: Size) throws {
        var load = try Load(size)
        for _ in 0..<10 { try load.second(size) }
        let answers = Answers()
        load.cluster.inspect = { _, answer in
            answers.counts.withLock { counts in
                counts.all += 1
                counts.complete += answer.cursor == answer.revision ? 1 : 0
                counts.changes += answer.changes.count
            }
        }
        let seconds = 30
        var most = 0
        for _ in 0..<seconds {
            let start = load.cluster.store.commandCount
            try load.second(size)
            most = max(most, load.cluster.store.commandCount - start)
        }
        #expect(load.attaches == 2 * load.channelNext)
        #expect(most <= size.commandsMax)
        let counts = answers.counts.withLock { $0 }
        let recordBytes = try #require(Load.record(&load.generator).encoded()).utf8.count + 40
        let megabits = Double(counts.changes * recordBytes * 8) / Double(seconds) / 1_000_000
        #expect(megabits <= size.megabitsMax)
        #expect(counts.complete * 2 >= counts.all, "most heartbeats bring all that is new")
        // When the measurements stay as they are, every node knows every other one's.
        load.cluster.advance(by: .seconds(25))
        let records = Dictionary(
            uniqueKeysWithValues: load.cluster.runs.map { ($0.membership.instance.node, $0.membership.record) }
        )
        for run in load.cluster.runs {
            let known = run.membership.view.members.mapValues(\.record)
            let own = run.membership.instance.node
            #expect(known == records.filter { $0.key != own })
            #expect(run.membership.view.members.values.allSatisfy { !$0.isAbsent })
        }
    }
}
