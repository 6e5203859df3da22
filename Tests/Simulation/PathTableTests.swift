import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// The table that every datagram is looked up in, against a dictionary. Its entries lie in runs, so a removal that leaves a hole
/// hides those behind it: their peers' media would be dropped.
@Suite struct PathTableTests {
    /// A table beside a dictionary of the same content.
    private final class Scene {
        private let world: World
        let peers: [Peer]
        private var table: PathTable
        private(set) var model: [NetworkPath: PeerID] = [:]

        init(seed: UInt64, world: World, peers: [Peer]) {
            table = PathTable(seed: seed)
            (self.world, self.peers) = (world, peers)
        }

        func set(_ path: NetworkPath, to peer: Peer) {
            table.set(path, to: peer)
            model[path] = peer.id
        }

        func remove(_ path: NetworkPath) {
            table.remove(path)
            model[path] = nil
        }

        func owner(of path: NetworkPath) -> PeerID? { table[path]?.object.id }

        /// The pairs that are looked up wrongly.
        func wrong(of paths: [NetworkPath]) -> [NetworkPath] { paths.filter { owner(of: $0) != model[$0] } }

        var count: Int { table.count }
        func isOf(_ peer: Peer, _ path: NetworkPath) -> Bool { table.isOf(peer, path) }
        var isConsistent: Bool { table.count == model.count && table.isEmpty == model.isEmpty }
    }

    /// Three peers of a node, which own the pairs.
    private func makePeers() throws -> (World, [Peer]) {
        let world = try World(seed: 171)
        let peers = try (0..<3).map { _ in
            let host = try world.publish()
            return try #require(world.nodePeer(host))
        }
        return (world, peers)
    }

    /// Pairs of clients behind one address, of others beside it, on two sockets and over TCP.
    private func path(_ number: Int) -> NetworkPath {
        let ip = IPAddress(v4: 0xC633_6400 + UInt32(truncatingIfNeeded: number / 64))
        let remote = TransportAddress(ip: ip, port: UInt16(truncatingIfNeeded: 40_000 + number % 64))
        switch number % 5 {
        case 0, 1: return NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote)
        case 2, 3: return NetworkPath(socket: SocketIndex(rawValue: 1), remote: remote)
        default: return NetworkPath(local: LocalEndpoint(.tcp, index: number), remote: remote)
        }
    }

    @Test func `a removed pair is found no more, and all others keep their peers`() throws {
        let (world, peers) = try makePeers()
        let paths = (0..<8).map(path)
        // In half of 16 places eight pairs make runs of every shape, also around the end.
        for seed in 0..<400 as Range<UInt64> {
            for removed in paths.indices {
                let scene = Scene(seed: seed &* 0x9E37_79B9_7F4A_7C15, world: world, peers: peers)
                for (index, path) in paths.enumerated() { scene.set(path, to: peers[index % 3]) }
                scene.remove(paths[removed])
                #expect(scene.owner(of: paths[removed]) == nil)
                #expect(scene.wrong(of: paths) == [] && scene.isConsistent, "seed \(seed), pair \(removed)")
            }
        }
    }

    @Test func `pairs are removed in any order until none is left`() throws {
        let (world, peers) = try makePeers()
        var generator = SeededGenerator(seed: 172)
        let paths = (0..<600).map(path)
        for seed in [0, 1, 2, 3, .max] as [UInt64] {
            let scene = Scene(seed: seed, world: world, peers: peers)
            for path in paths { scene.set(path, to: peers.randomElement(using: &generator)!) }
            for path in paths.shuffled(using: &generator) {
                scene.remove(path)
                #expect(scene.wrong(of: paths) == [] && scene.isConsistent, "seed \(seed)")
            }
            #expect(scene.count == 0)
        }
    }

    @Test func `a pair that is not in the table, or no longer, is removed without effect`() throws {
        let (world, peers) = try makePeers()
        let scene = Scene(seed: 5, world: world, peers: peers)
        let paths = (0..<40).map(path)
        scene.remove(paths[0])
        #expect(scene.isConsistent && scene.count == 0)
        for path in paths[..<20] { scene.set(path, to: peers[0]) }
        for path in paths[20...] { scene.remove(path) }
        #expect(scene.count == 20 && scene.wrong(of: paths) == [])
        for _ in 0..<2 { scene.remove(paths[7]) }
        #expect(scene.count == 19 && scene.wrong(of: paths) == [])
    }

    @Test func `a removed pair can be another peer's, and then is its alone`() throws {
        let (world, peers) = try makePeers()
        let scene = Scene(seed: 6, world: world, peers: peers)
        let paths = (0..<30).map(path)
        for path in paths { scene.set(path, to: peers[0]) }
        for path in paths {
            scene.remove(path)
            #expect(peers.allSatisfy { !scene.isOf($0, path) })
            scene.set(path, to: peers[1])
            #expect(scene.isOf(peers[1], path) && !scene.isOf(peers[0], path))
            #expect(scene.wrong(of: paths) == [] && scene.isConsistent)
        }
        // Without a removal between, a pair has one owner still.
        scene.set(paths[3], to: peers[2])
        #expect(scene.isOf(peers[2], paths[3]) && scene.count == 30)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a table that grows and shrinks finds what a dictionary finds`(seed: UInt64) throws {
        let (world, peers) = try makePeers()
        var generator = SeededGenerator(seed: seed)
        let scene = Scene(seed: generator.next(), world: world, peers: peers)
        let paths = (0..<2_500).map(path)
        // Crowds come and leave: the chance of an addition in each phase, in percent.
        for additions in [90, 30, 60, 5, 95, 0] {
            for step in 0..<2_000 {
                let path = paths.randomElement(using: &generator)!
                if Int.random(in: 0..<100, using: &generator) < additions {
                    scene.set(path, to: peers.randomElement(using: &generator)!)
                } else {
                    scene.remove(path)
                }
                if step % 250 == 0 { #expect(scene.wrong(of: paths) == [], "seed \(seed)") }
            }
            #expect(scene.wrong(of: paths) == [] && scene.isConsistent, "seed \(seed)")
        }
    }

    @Test func `a peer that leaves takes its own pairs along only`() throws {
        let (_, peers) = try makePeers()
        let directory = PeerDirectory(seed: 7)
        let now = Instant(nanoseconds: 1_000_000_000)
        for (index, peer) in peers.enumerated() { directory.add(peer, usernameFragment: "fragment\(index)") }
        let paths = (0..<18).map(path)
        for (index, path) in paths.enumerated() { directory.noteCheck(over: path, of: peers[index % 3], at: now) }
        // A pair of the second peer, on which it was silent for long, is the first one's now.
        let later = now + .seconds(60)
        directory.noteCheck(over: paths[1], of: peers[0], at: later)
        directory.remove(peers[1])
        for (index, path) in paths.enumerated() {
            let owner = index == 1 ? peers[0].id : index % 3 == 1 ? nil : peers[index % 3].id
            #expect(directory.peer(over: path)?.object.id == owner, "pair \(index)")
        }
        for peer in [peers[0], peers[2]] { directory.remove(peer) }
        #expect(directory.isEmpty)
    }
}
