import Base
import MediaTypes
import TLS
import Testing
import Wire

@testable import Media

/// The connections of one loop in virtual time, with a client side that takes as many bytes as a test lets it.
final class StreamScene {
    let admission: TCPAdmission
    /// Tells the other loop that a packet is for.
    var owner: (RawSpan) -> LoopIndex? = { _ in nil }
    let streams: StreamConnections
    var now = Instant(nanoseconds: 5_000_000_000)
    /// The paths that a check of a session has validated.
    var validated: Set<NetworkPath> = []
    /// The clients with an allocation.
    var allocated: Set<NetworkPath> = []
    var delivered: [(path: NetworkPath, bytes: [UInt8])] = []
    /// What each client has read.
    var read: [LocalEndpoint: [UInt8]] = [:]
    /// What each client still takes; without an entry everything.
    var room: [LocalEndpoint: Int] = [:]
    var failed: Set<LocalEndpoint> = []
    private var index = 0

    init(_ limits: TCPLimits = TCPLimits(), certificate: TLSCertificate? = nil) {
        admission = TCPAdmission(limits)
        streams = StreamConnections(admission, certificate: certificate, seed: 1)
    }

    /// Another loop of the same node.
    init(sharing other: StreamScene) {
        admission = other.admission
        streams = StreamConnections(admission)
        now = other.now
    }

    /// Takes a connection of another loop, whose messages make an allocation, or not.
    func arrive(_ moved: StreamConnection, isAllocated: Bool = true) -> NetworkPath {
        index += 1
        let path = NetworkPath(local: LocalEndpoint(.tcp, index: index), remote: moved.path.remote)
        streams.arrive(moved, on: path, at: now) { packet, path, _ in
            delivered.append((path, packet.bytes.extracting(0..<packet.byteCount).array()))
            return isAllocated ? .authenticated : .unauthenticated
        }
        return path
    }

    func open(_ ip: UInt32 = 0x0A00_0001, isTLS: Bool = false) -> NetworkPath? {
        index += 1
        let remote = TransportAddress(ip: IPAddress(v4: ip), port: UInt16(1_000 + index))
        let path = NetworkPath(local: LocalEndpoint(.tcp, index: index), remote: remote)
        return streams.accept(path, isTLS: isTLS, at: now) ? path : nil
    }

    /// A connection whose first packet was a check of a session.
    func openValidated(_ ip: UInt32 = 0x0A00_0001) throws -> NetworkPath {
        let path = try #require(open(ip))
        validated.insert(path)
        receive(Self.frame([0, 1, 0, 0]), on: path)
        return path
    }

    static func frame(_ packet: [UInt8]) -> [UInt8] {
        [UInt8(packet.count >> 8), UInt8(packet.count & 0xFF)] + packet
    }

    func receive(_ bytes: [UInt8], on path: NetworkPath) {
        streams.receive(unsafe bytes.span.bytes, on: path.local, at: now, owner: owner) { packet, path, framing in
            delivered.append((path, packet.bytes.extracting(0..<packet.byteCount).array()))
            switch framing {
            case .rfc4571: return validated.contains(path) ? .authenticated : .refused
            case .turn: return allocated.contains(path) ? .authenticated : .unauthenticated
            }
        }
    }

    func append(_ byte: UInt8, _ count: Int, _ kind: StreamPacketKind, to path: NetworkPath) {
        let packet = [UInt8](repeating: byte, count: count)
        streams.append(unsafe packet.span.bytes, kind: kind, to: path.local, at: now)
    }

    func video(_ byte: UInt8, frame: UInt32, key: Bool = false, count: Int = 1_000, to path: NetworkPath) {
        let kind = StreamPacketKind.video(
            SSRC(rawValue: 7),
            frame: RTPTimestamp(rawValue: frame),
            startsKeyFrame: key
        )
        append(byte, count, kind, to: path)
    }

    private func write(_ endpoint: LocalEndpoint, _ bytes: RawSpan) -> Int? {
        guard !failed.contains(endpoint) else { return nil }
        let count = min(bytes.byteCount, room[endpoint] ?? .max)
        room[endpoint]? -= count
        read[endpoint, default: []] += bytes.extracting(0..<count).array()
        return count
    }

    func flush() { streams.flush(at: now) { write($0, $1) } }
    func writable(_ path: NetworkPath) { streams.writable(path.local, at: now) { write($0, $1) } }

    func pass(_ time: Interval) {
        now += time
        streams.handleTimeout(at: now) { validated.contains($0) || allocated.contains($0) }
    }

    var ended: [TCPEndReason: UInt64] { streams.metrics.ended }
    func isOpen(_ path: NetworkPath) -> Bool { streams.isOpen(path.local) }
}

struct StreamConnectionsTests {
    private static let check = StreamScene.frame([0, 1, 0, 0])

    @Test func `packets are delivered however the connection cuts their frames`() throws {
        let packets = (1...40).map { number in [UInt8](repeating: UInt8(number), count: number * 38 % 1_537 + 1) }
        let bytes = packets.flatMap(StreamScene.frame)
        for size in [1, 2, 3, 7, 1_000, 65_536] {
            let scene = StreamScene()
            let path = try scene.openValidated()
            scene.delivered = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                scene.receive(Array(bytes[start..<min(start + size, bytes.count)]), on: path)
            }
            #expect(scene.delivered.map(\.bytes) == packets)
            #expect(scene.delivered.allSatisfy { $0.path == path })
            #expect(scene.isOpen(path) && scene.streams.takeClosing().isEmpty)
        }
    }

    @Test func `a first packet that is no check of a session ends the connection, and nothing after it is delivered`()
        throws
    {
        let scene = StreamScene()
        let path = try #require(scene.open())
        scene.receive(Self.check + Self.check, on: path)
        #expect(scene.delivered.count == 1 && !scene.isOpen(path))
        #expect(scene.streams.takeClosing() == [path.local] && scene.streams.takeClosing().isEmpty)
        #expect(scene.ended == [.notAuthenticated: 1])
        #expect(scene.admission.counts == (0, 0))
        scene.receive(Self.check, on: path)
        #expect(scene.delivered.count == 1)
    }

    @Test(
        arguments: [[], [0], [0, 20], [0, 20] + Array(repeating: 1, count: 19), [0, 0], [0, 0, 0, 0]] as [[UInt8]]
    )
    func `a connection without a whole packet ends after the time for authentication`(bytes: [UInt8]) throws {
        let scene = StreamScene()
        let path = try #require(scene.open())
        let deadline = try #require(scene.streams.nextDeadline)
        #expect(deadline - scene.now <= .seconds(1))
        scene.receive(bytes, on: path)
        for _ in 0..<9 { scene.pass(.seconds(1)) }
        #expect(scene.isOpen(path))
        scene.pass(.seconds(1))
        #expect(scene.ended == [.authenticationTimeout: 1] && scene.delivered.isEmpty)
        #expect(!scene.isOpen(path) && scene.streams.takeClosing() == [path.local])
        #expect(scene.admission.counts == (0, 0))
        scene.pass(.seconds(1))
        #expect(scene.streams.nextDeadline == nil)
    }

    @Test(arguments: [1_537, 2_048, 65_535])
    func `a frame that is longer than any packet ends the connection, also an authenticated one`(length: Int) throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        scene.receive([UInt8(length >> 8), UInt8(length & 0xFF), 1], on: path)
        #expect(!scene.isOpen(path) && scene.ended == [.malformed: 1])
        let stranger = try #require(scene.open())
        scene.receive([0xFF, 0xFF], on: stranger)
        #expect(scene.ended == [.malformed: 2] && scene.admission.counts == (0, 0))
    }

    @Test func `a connection ends with its session, by its next packet or a look at all`() throws {
        let scene = StreamScene()
        let (first, second) = (try scene.openValidated(), try scene.openValidated())
        scene.validated = []
        scene.receive(Self.check, on: first)
        #expect(!scene.isOpen(first) && scene.isOpen(second))
        scene.pass(.seconds(1))
        #expect(!scene.isOpen(second) && scene.ended == [.sessionEnded: 2])
        #expect(scene.streams.takeClosing() == [first.local, second.local])
    }

    @Test func `an authenticated connection stays while packets come, and not without`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        for _ in 0..<20 {
            scene.pass(.seconds(5))
            scene.receive(Self.check, on: path)
        }
        #expect(scene.isOpen(path))
        for _ in 0..<29 { scene.pass(.seconds(1)) }
        #expect(scene.isOpen(path))
        scene.pass(.seconds(1))
        #expect(!scene.isOpen(path) && scene.ended == [.idle: 1])
    }

    @Test func `connections beyond the limits of the node and of one address are refused`() throws {
        let scene = StreamScene(TCPLimits(connectionsMax: 5, connectionsPerNetworkMax: 3))
        for _ in 0..<3 { #expect(scene.open(1) != nil) }
        #expect(scene.open(1) == nil)
        for address in 2...3 as ClosedRange<UInt32> { #expect(scene.open(address) != nil) }
        #expect(scene.open(4) == nil)
        #expect(scene.streams.metrics.refused == [.networkLimit: 1, .nodeLimit: 1])
        #expect(scene.streams.metrics.connections == 5 && scene.admission.counts == (5, 5))
        scene.streams.removeAll()
        #expect(scene.admission.counts == (0, 0) && scene.open(1) != nil)
    }

    @Test func `an IPv6 network counts as one address`() {
        let admission = TCPAdmission(TCPLimits(connectionsPerNetworkMax: 1))
        #expect(admission.admit(IPAddress(high: 9, low: 1)) == .admitted)
        #expect(admission.admit(IPAddress(high: 9, low: 2)) == .refused(.networkLimit))
        #expect(admission.admit(IPAddress(high: 10, low: 1)) == .admitted)
    }

    @Test func `a flood of connections without a check takes nobody's place who has sent one`() throws {
        let scene = StreamScene(TCPLimits(unauthenticatedMax: 10))
        let member = try scene.openValidated()
        var flood: [NetworkPath] = []
        for number in 0..<1_000 { flood.append(try #require(scene.open(UInt32(100 + number)))) }
        #expect(scene.streams.metrics.connections == 11 && scene.isOpen(member))
        #expect(flood.suffix(10).allSatisfy(scene.isOpen) && scene.ended == [.displaced: 990])
        #expect(scene.streams.takeClosing() == flood.prefix(990).map(\.local))
        // A newcomer with a check has its place from then on.
        let newcomer = try scene.openValidated(7)
        for number in 0..<20 { _ = scene.open(UInt32(5_000 + number)) }
        #expect(scene.isOpen(newcomer) && scene.isOpen(member))
    }

    @Test func `a loop whose own connections are all authenticated makes no room for a newcomer`() throws {
        let scene = StreamScene(TCPLimits(unauthenticatedMax: 2))
        // Those of another loop.
        for number in 1...2 as ClosedRange<UInt32> { _ = scene.admission.admit(IPAddress(v4: number)) }
        #expect(scene.open(9) == nil)
        #expect(scene.streams.metrics.refused == [.unauthenticatedLimit: 1] && scene.admission.counts == (2, 2))
    }

    @Test func `packets are framed, control first and then audio`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        scene.video(1, frame: 1, key: true, count: 3, to: path)
        scene.append(2, 2, .audio, to: path)
        scene.append(3, 1, .control, to: path)
        #expect(scene.streams.hasPending)
        scene.flush()
        #expect(scene.read[path.local] == [0, 1, 3, 0, 2, 2, 2, 0, 3, 1, 1, 1])
        #expect(!scene.streams.hasPending && scene.streams.metrics.packetsQueued == 3)
    }

    @Test func `a client that reads too little loses whole video frames and no audio, and gets a key frame`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        scene.video(1, frame: 1, key: true, to: path)
        scene.flush()
        scene.room[path.local] = 500
        scene.video(2, frame: 2, to: path)
        scene.flush()
        // Blocked within frame 2: frame 3 waits for so long that those behind it are dropped, audio waits.
        scene.video(3, frame: 3, to: path)
        scene.now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        for frame in 4...6 as ClosedRange<UInt32> {
            scene.video(UInt8(frame), frame: frame, to: path)
            scene.append(99, 10, .audio, to: path)
            scene.flush()
            scene.now += .milliseconds(20)
        }
        #expect(scene.streams.takeKeyFrameRequests().isEmpty, "a key frame might be dropped too")
        scene.room[path.local] = nil
        scene.writable(path)
        let requests = scene.streams.takeKeyFrameRequests()
        #expect(requests.map(\.path) == [path] && requests.map(\.ssrc) == [SSRC(rawValue: 7)])
        scene.video(7, frame: 7, to: path)
        scene.video(8, frame: 8, key: true, to: path)
        scene.flush()
        var read = try #require(scene.read[path.local])[...]
        var packets: [UInt8] = []
        while read.count > 2 {
            let length = Int(read.removeFirst()) << 8 + Int(read.removeFirst())
            packets.append(read.first ?? 0)
            read = read.dropFirst(length)
        }
        #expect(read.isEmpty, "every frame was written completely")
        #expect(packets == [1, 2, 99, 99, 99, 3, 8])
        #expect(scene.streams.metrics.dropped == [.blocked: 3, .awaitsKeyFrame: 1])
    }

    @Test func `what waits for a client that does not read is bounded, and the client is ended`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        scene.room[path.local] = 10
        for second in 0..<10 {
            for number in 0..<1_000 {
                scene.append(1, 1_200, .control, to: path)
                scene.append(2, 200, .audio, to: path)
                scene.video(3, frame: UInt32(second * 1_000 + number), key: number == 0, to: path)
            }
            scene.flush()
            #expect(scene.isOpen(path))
            scene.receive(Self.check, on: path)
            scene.pass(.seconds(1))
        }
        #expect(!scene.isOpen(path) && scene.ended == [.stalled: 1])
        let dropped = scene.streams.metrics.dropped
        #expect(dropped[.full, default: 0] > 9_000 && dropped[.blocked, default: 0] >= 9_000)
        scene.append(1, 10, .control, to: path)
        #expect(scene.streams.metrics.packetsWithoutConnection == 1)
    }

    @Test func `a client that reads slowly, and all of each write in time, stays`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        scene.room[path.local] = 0
        for _ in 0..<30 {
            for _ in 0..<4 { scene.append(1, 1_000, .control, to: path) }
            scene.flush()
            scene.receive(Self.check, on: path)
            scene.pass(.seconds(1))
            scene.room[path.local] = 4_100
            scene.writable(path)
        }
        #expect(scene.isOpen(path))
    }

    @Test func `a connection that fails at a write is closed`() throws {
        let scene = StreamScene()
        let (path, other) = (try scene.openValidated(), try scene.openValidated())
        scene.failed = [path.local]
        for one in [path, other] { scene.append(1, 10, .control, to: one) }
        scene.flush()
        #expect(!scene.isOpen(path) && scene.isOpen(other))
        #expect(scene.streams.takeClosing() == [path.local] && scene.ended == [.ended: 1])
        #expect(scene.read[other.local]?.count == 12)
    }

    @Test func `packets that are queued while others are delivered are sent`() throws {
        let scene = StreamScene()
        let path = try scene.openValidated()
        let bytes = Self.check + Self.check
        scene.streams.receive(unsafe bytes.span.bytes, on: path.local, at: scene.now) { _, path, _ in
            scene.append(5, 1, .control, to: path)
            scene.flush()
            return .authenticated
        }
        #expect(scene.read[path.local] == [0, 1, 5, 0, 1, 5])
        scene.receive(Self.check, on: path)
        #expect(scene.isOpen(path))
    }
}
