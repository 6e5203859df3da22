import Base
import SCTP

/// Two ends with data channels. The input decides what they send, which packets are lost, repeated or changed, and how time goes.
/// A changed packet goes without checksum, which both accept.
func fuzzSCTP(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let scene = SCTPScene(seed: UInt64(input.byte()))
    var steps = 0
    while !input.isAtEnd, steps < 400 {
        steps += 1
        scene.step(&input)
    }
    scene.end()
}

private final class SCTPScene {
    final class End {
        var channels: DataChannels
        var outbox: [[UInt8]] = []
        var hasEnded = false

        init(isClient: Bool, _ generator: inout SeededGenerator) {
            channels = DataChannels(isClient: isClient, AssociationSettings(), using: &generator)
        }

        func receive(_ packet: [UInt8], at now: Instant) {
            do { try withSpan(packet) { try channels.receive($0, at: now) } } catch {}
        }

        func flush(at now: Instant) {
            while let event = channels.nextEvent(at: now) {
                require(!hasEnded, "nothing follows the end")
                if case .ended = event { hasEnded = true }
            }
            while outbox.count < 256 {
                var buffer = [UInt8](repeating: 0, count: 1_200)
                var elements = buffer.mutableSpan
                var span = unsafe elements.mutableBytes
                guard let packet = channels.nextPacket(into: &span, at: now) else { break }
                require(packet.byteCount <= 1_188 && packet.byteCount % 4 == 0, "a packet fits its record")
                outbox.append(Array(buffer.prefix(packet.byteCount)))
            }
            require(channels.bufferedBytes >= 0 && channels.bufferedBytes <= 1 << 20, "the send buffer has a bound")
            require(channels.heldBytes >= 0 && channels.heldBytes <= (1 << 20) + 300_000, "the window has a bound")
        }
    }

    private let ends: [End]
    private var now = Instant(nanoseconds: 1_000_000_000)

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        ends = [End(isClient: true, &generator), End(isClient: false, &generator)]
        for end in ends { end.channels.connect(at: now) }
        // Most inputs begin connected.
        if seed & 1 == 0 { for _ in 0..<4 { exchange() } }
    }

    private func exchange() {
        for end in ends { end.flush(at: now) }
        for index in 0..<2 {
            let packets = ends[index].outbox
            ends[index].outbox = []
            for packet in packets { ends[1 - index].receive(packet, at: now) }
        }
        now += .milliseconds(1)
    }

    func step(_ input: inout FuzzInput) {
        let source = input.choice(2)
        let end = ends[source]
        switch input.choice(9) {
        case 0: exchange()
        case 1: if !end.outbox.isEmpty { end.outbox.removeFirst() }
        case 2: if let packet = end.outbox.first { ends[1 - source].receive(packet, at: now) }
        case 3: change(&input, from: source)
        case 4: forge(&input, from: source)
        case 5:
            let limit: SendPolicy.Limit = input.flag() ? .reliable : .retransmissions(input.choice(3))
            let policy = SendPolicy(isOrdered: input.flag(), limit: limit)
            do { _ = try end.channels.open(ChannelParameters(label: "a", policy: policy), at: now) } catch {}
        case 6:
            let id = StreamID(rawValue: UInt16(input.choice(6)))
            let payload = [UInt8](repeating: 7, count: Int(input.uint16()) % 5_000)
            do { try end.channels.send(payload, isText: input.flag(), on: id, at: now) } catch {}
        case 7: end.channels.close(StreamID(rawValue: UInt16(input.choice(6))), at: now)
        default:
            now += .milliseconds(Int(input.byte()) * 4)
            for end in ends {
                if let deadline = end.channels.nextDeadline, deadline <= now { end.channels.handleTimeout(at: now) }
            }
        }
        for end in ends { end.flush(at: now) }
    }

    /// Delivers the next packet with some bytes of its chunks changed.
    private func change(_ input: inout FuzzInput, from source: Int) {
        guard var packet = ends[source].outbox.first else { return }
        ends[source].outbox.removeFirst()
        for _ in 0..<1 + input.choice(4) {
            let index = 12 + Int(input.uint16()) % (packet.count - 12)
            packet[index] = input.byte()
        }
        ends[1 - source].receive(Self.sealed(packet), at: now)
    }

    /// Delivers chunks of the input with the tag and ports of the next packet.
    private func forge(_ input: inout FuzzInput, from source: Int) {
        guard let packet = ends[source].outbox.first else { return }
        ends[1 - source].receive(Self.sealed(Array(packet.prefix(12)) + input.chunk(max: 300)), at: now)
    }

    /// Both ends accept packets without a checksum, but for the first of the handshake.
    private static func sealed(_ packet: [UInt8]) -> [UInt8] {
        var packet = packet
        for index in 8..<12 { packet[index] = 0 }
        return packet
    }

    /// Whatever happened, nothing traps while time goes on, and there is no storm of deadlines.
    func end() {
        var turns = 0
        let last = now + .seconds(5)
        while let next = earliest(ends[0].channels.nextDeadline, ends[1].channels.nextDeadline), next <= last {
            now = max(now, next)
            for end in ends {
                if let deadline = end.channels.nextDeadline, deadline <= now { end.channels.handleTimeout(at: now) }
            }
            exchange()
            turns += 1
            require(turns < 20_000, "deadlines are not a storm")
        }
    }
}

func seedsSCTP() -> [(name: String, bytes: [UInt8])] {
    [
        (
            "messages",
            SeedWriter.make { writer in
                writer.byte(2)
                for end in 0..<2 as Range<UInt8> {
                    writer.byte(end)
                    writer.byte(5)
                    writer.byte(0)
                    writer.byte(1)
                    writer.byte(1)
                }
                for id in [0, 1, 0, 1] as [UInt8] {
                    writer.byte(id)
                    writer.byte(6)
                    writer.byte(id)
                    writer.uint16(3_000)
                    writer.byte(0)
                }
                writer.byte(0)
                writer.byte(1)
                writer.byte(0)
                writer.byte(0)
                writer.byte(0)
                writer.byte(7)
                writer.byte(0)
                writer.byte(0)
                writer.byte(8)
                writer.byte(200)
            }
        ),
        (
            "forged",
            SeedWriter.make { writer in
                writer.byte(4)
                // A SACK, a FORWARD-TSN, a RE-CONFIG and a HEARTBEAT.
                let chunks: [[UInt8]] = [
                    [3, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0],
                    [194, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 1],
                    [130, 0, 0, 20, 0, 13, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], [4, 0, 0, 8, 0, 1, 0, 4],
                ]
                writer.byte(0)
                writer.byte(5)
                writer.uint16(0x0001)
                for chunk in chunks {
                    writer.byte(0)
                    writer.byte(4)
                    writer.chunk(chunk)
                }
            }
        ),
        ("handshake", SeedWriter.make { writer in for _ in 0..<8 { writer.uint16(0x0100) } }),
    ]
}
