import Base
import Client
import Impairment
import Wire

/// The network link of one subscriber, between its socket and its client.
final class ViewerLink {
    private struct Datagram {
        var bytes: [UInt8]
        let path: NetworkPath
    }

    /// The subscriber's number, from 0.
    let viewer: Int
    var client: MediaClient?
    private var down: ImpairedLink<Datagram>
    private var up: ImpairedLink<Datagram>

    init(viewer: Int, down: LinkConditions, up: LinkConditions, seed: UInt64, at now: Instant) {
        self.viewer = viewer
        self.down = ImpairedLink(down, seed: seed, start: now)
        self.up = ImpairedLink(up, seed: seed &+ 1, start: now)
    }

    /// The counts of the link to the subscriber.
    var statistics: LinkStatistics { down.statistics }
    var nextDeadline: Instant? { earliest(down.nextDeadline, up.nextDeadline) }

    /// Takes a datagram from the server.
    func receive(_ bytes: RawSpan, from path: NetworkPath, at now: Instant) {
        down.send(Datagram(bytes: bytes.array(), path: path), bytes: Self.length(bytes, path), at: now)
    }

    /// Passes on what has arrived from the server.
    func deliver(at now: Instant, _ body: (inout [UInt8], NetworkPath) -> Void) {
        while var (datagram, _) = down.receive(at: now) { body(&datagram.bytes, datagram.path) }
    }

    /// Takes a datagram to the server.
    func send(_ bytes: RawSpan, to path: NetworkPath, at now: Instant) {
        up.send(Datagram(bytes: bytes.array(), path: path), bytes: Self.length(bytes, path), at: now)
    }

    /// Passes on what has come through the link to the server.
    func depart(at now: Instant, _ body: ([UInt8], NetworkPath) -> Void) {
        while let (datagram, _) = up.receive(at: now) { body(datagram.bytes, datagram.path) }
    }

    private static func length(_ bytes: RawSpan, _ path: NetworkPath) -> Int {
        let isV4 = path.remote.ip.isV4
        return bytes.byteCount + (isV4 ? ImpairedLink<Datagram>.overheadV4 : ImpairedLink<Datagram>.overheadV6)
    }
}
