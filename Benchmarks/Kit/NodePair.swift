import Base
internal import Forwarding
internal import MediaTypes
internal import Wire

/// The link between the forwarders of two nodes, in memory.
final class NodePair {
    /// What each forwarder sends to the other one.
    private let outward = DatagramBatch(capacity: 256)
    private let back = DatagramBatch(capacity: 256)
    private static let addresses = [IPAddress(v4: 0x0A00_0001), IPAddress(v4: 0x0A00_0002)].map {
        TransportAddress(ip: $0, port: 7_000)
    }

    /// Lets a track go from one forwarder to the other.
    func connect(_ track: TrackID, from origin: Forwarder, to edge: Forwarder, at now: Instant) throws {
        let locations = try [1, 2].map { (number: UInt32) in
            guard let node = NodeIncarnation(rawValue: number) else { throw CallError.broken("a node's number") }
            return MediaLocation(node: node, loop: LoopIndex(rawValue: 0))
        }
        for (index, (core, batch)) in [(origin, outward), (edge, back)].enumerated() {
            let address = [Self.addresses[index]]
            core.startMediaLinks(at: locations[index], sockets: address, addresses: address, into: batch)
        }
        let relay = try edge.makeMirrorID()
        let end = try edge.mediaLinkEnd(to: locations[0], at: now)
        let exported = try origin.exportTrack(track, as: relay, to: end, at: now)
        let link = try edge.joinMediaLink(exported.origin, at: now)
        edge.addMirror(exported.track, as: relay, from: link, at: now)
    }

    /// The datagrams that wait for the receiver of the track, and their bytes.
    var waiting: (datagrams: Int, bytes: Int) {
        (outward.count, (0..<outward.runCount).reduce(0) { $0 + outward.run(at: $1).length })
    }

    /// Lets the receiver of the track take what waits for it.
    func deliverOutward(to edge: Forwarder, at now: Instant, into batch: DatagramBatch) {
        deliver(outward, from: Self.addresses[0], to: edge, at: now, into: batch)
    }

    /// Lets the sender of the track take what waits for it.
    func deliverBack(to origin: Forwarder, at now: Instant, into batch: DatagramBatch) {
        deliver(back, from: Self.addresses[1], to: origin, at: now, into: batch)
    }

    private func deliver(
        _ datagrams: DatagramBatch,
        from address: TransportAddress,
        to core: Forwarder,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: address)
        var index = 0
        while index < datagrams.runCount {
            let run = datagrams.run(at: index)
            var offset = run.offset
            while offset < run.offset + run.length {
                let count = min(run.segmentBytes, run.offset + run.length - offset)
                let bytes = unsafe UnsafeMutableRawBufferPointer(start: datagrams.baseAddress + offset, count: count)
                var span = unsafe bytes.mutableBytes
                core.receive(&span, length: count, path: path, at: now, into: batch)
                offset += count
            }
            index += 1
        }
        datagrams.removeAll()
    }
}
