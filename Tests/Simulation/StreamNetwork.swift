import Base
import Forwarding
import TestSupport
import Wire

@testable import Media

/// Connections of clients to a node, in virtual time: the product's connections and send queues at the node's end, and at the
/// other end clients that know of nothing but datagrams.
final class StreamNetwork {
    final class Stream {
        fileprivate let host: World.Host
        let path: NetworkPath
        /// The client of TURN over TCP; `nil` with ICE over TCP.
        let shim: TURNShim?
        var toNode = VirtualPipe()
        var toClient = VirtualPipe()
        fileprivate var clientDeframer: StreamDeframer
        /// Counts what the node wrote.
        fileprivate var writtenDeframer: StreamDeframer
        /// Packets that the node wrote as a whole.
        fileprivate(set) var packetsWritten = 0
        /// The node wrote a part of its DTLS handshake.
        fileprivate(set) var carriedHandshake = false

        fileprivate init(_ host: World.Host, _ path: NetworkPath, _ shim: TURNShim?) {
            self.host = host
            self.path = path
            self.shim = shim
            let framing = shim == nil ? StreamFraming.rfc4571 : .turn
            clientDeframer = StreamDeframer(framing)
            writtenDeframer = StreamDeframer(framing)
        }
    }

    private unowned let world: World
    private let connections = StreamConnections(TCPAdmission())
    private var streams: [Stream] = []
    /// Hosts on UDP. The node hears others on their connections only.
    var direct: Set<TransportAddress> = []

    init(_ world: World) { self.world = world }

    var metrics: TCPMetrics { connections.metrics }
    /// Packets that wait at the node.
    var waiting: Int {
        let dropped = metrics.dropped.values.reduce(0, +)
        return Int(metrics.packetsQueued - dropped) - streams.reduce(0) { $0 + $1.packetsWritten }
    }

    /// Opens a connection for a host.
    /// - Parameter shim: the client of TURN over TCP; `nil` for ICE over TCP.
    func open(_ host: World.Host, _ shim: TURNShim? = nil) -> Stream {
        let path = NetworkPath(local: LocalEndpoint(.tcp, index: streams.count), remote: host.address)
        precondition(connections.accept(path, at: world.now), "a connection is within the limits")
        let stream = Stream(host, path, shim)
        streams.append(stream)
        return stream
    }

    // MARK: - From clients

    /// Sends a datagram of a client on its connection.
    /// - Returns: whether the client is not on UDP.
    func take(_ bytes: [UInt8], from host: World.Host) -> Bool {
        guard !direct.contains(host.address) else { return false }
        guard let stream = streams.last(where: { $0.host === host }) else { return true }
        guard let shim = stream.shim else {
            var frame: [UInt8] = []
            frame.append(bigEndian: UInt16(bytes.count))
            send(frame + bytes, on: stream)
            return true
        }
        guard shim.relayed != nil else { return true }
        var message = shim.wrap(bytes)
        while message.count % 4 != 0 { message.append(0) }
        send(message, on: stream)
        return true
    }

    /// Sends bytes of a client as they are; the client's socket is never full.
    func send(_ bytes: [UInt8], on stream: Stream) {
        let taken = stream.toNode.write(unsafe bytes.span.bytes, at: world.now)
        precondition(taken == bytes.count, "the client sends less than its connection carries")
    }

    private func receive(_ bytes: [UInt8], on stream: Stream) {
        let (core, batch) = (world.node.core, world.node.batch)
        let now = world.now
        connections.receive(unsafe bytes.span.bytes, on: stream.path.local, at: now) { packet, path, framing in
            switch framing {
            case .rfc4571: core.receiveStream(&packet, path: path, at: now, into: batch) ? .authenticated : .refused
            case .turn:
                core.receiveTURNStream(&packet, path: path, at: now, into: batch) ? .authenticated : .unauthenticated
            }
        }
        world.settle(world.node)
    }

    // MARK: - To clients

    /// Queues and writes what a turn of the node sends on connections.
    func queue(_ batches: [DatagramBatch]) {
        let core = world.node.core
        for batch in batches {
            for run in batch.runs where run.path.local.kind == .tcp {
                batch.forEachDatagram(of: run) { packet in
                    let kind = core.streamKind(of: packet, to: run.path)
                    connections.append(packet, kind: kind, to: run.path.local, at: world.now)
                }
            }
        }
        connections.flush(at: world.now) { write($1, to: $0) }
        finish()
    }

    private func write(_ bytes: RawSpan, to endpoint: LocalEndpoint) -> Int? {
        guard let stream = streams.first(where: { $0.path.local == endpoint }) else { return nil }
        let count = stream.toClient.write(bytes, at: world.now)
        try? stream.writtenDeframer.append(bytes.extracting(0..<count)) { packet in
            stream.packetsWritten += 1
            if PacketProtocol(firstByte: packet.byte(at: 0)) == .dtls { stream.carriedHandshake = true }
        }
        return count
    }

    private func finish() {
        for (path, ssrc) in connections.takeKeyFrameRequests() {
            world.node.core.requestKeyFrame(of: ssrc, over: path, at: world.now)
        }
        for client in connections.takeEndedClients() { world.node.core.closeTURNStream(client, at: world.now) }
    }

    // MARK: - Time

    var nextInstant: Instant? {
        var next = connections.nextDeadline
        for stream in streams {
            next = earliest(next, stream.toNode.nextInstant(after: world.now))
            next = earliest(next, stream.toClient.nextInstant(after: world.now))
        }
        return next
    }

    func step() {
        for stream in streams {
            let fromClient = stream.toNode.read(at: world.now)
            if !fromClient.isEmpty { receive(fromClient, on: stream) }
            var packets: [[UInt8]] = []
            let read = stream.toClient.read(at: world.now)
            try? stream.clientDeframer.append(unsafe read.span.bytes) { packets.append($0.array()) }
            for packet in packets {
                guard let datagram = stream.shim.map({ $0.unwrap(packet) }) ?? packet else { continue }
                world.deliver(datagram, from: World.nodeAddress, to: stream.host)
            }
            connections.writable(stream.path.local, at: world.now) { write($1, to: $0) }
        }
        let core = world.node.core
        connections.handleTimeout(at: world.now) { core.isValidated($0) || core.hasAllocation($0) }
        finish()
    }
}
