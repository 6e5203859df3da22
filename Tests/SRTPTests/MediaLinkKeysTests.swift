import Base
import Testing
import Wire

@testable import SRTP

/// Datagrams of links between nodes: sealed, opened, and refused.
@Suite struct MediaLinkKeysTests {
    private static let start = Instant(nanoseconds: 0)

    private static func schedule(_ context: [UInt8] = [1, 2], sender: UInt8 = 0x22) -> MediaLinkKeySchedule {
        MediaLinkKeySchedule(
            receiverSecret: [UInt8](repeating: 0x11, count: 32),
            senderSecret: [UInt8](repeating: sender, count: 32),
            context: context
        )
    }

    /// A sender that closures can share.
    private final class Sender {
        var core: MediaLinkSender
        init(_ core: consuming MediaLinkSender) { self.core = core }
    }

    /// A receiver that closures can share.
    private final class Receiver {
        var core: MediaLinkReceiver
        init(_ core: consuming MediaLinkReceiver) { self.core = core }
        var newest: UInt64 { core.newest }
        var phase: UInt32 { core.phase }
    }

    private static func sender(_ engine: SRTPEngine, datagramsMax: UInt64 = MediaLinkSender.phaseDatagramsMax) throws
        -> Sender
    {
        Sender(try MediaLinkSender(schedule(), engine: engine, at: start, datagramsMax: datagramsMax))
    }

    private static func receiver(_ engine: SRTPEngine, _ schedule: MediaLinkKeySchedule = schedule()) throws -> Receiver
    {
        Receiver(try MediaLinkReceiver(schedule, engine: engine))
    }

    private static func seal(_ sender: Sender, _ contents: [UInt8]) -> [UInt8]? {
        var datagram = [UInt8](repeating: 0, count: 12) + contents + [UInt8](repeating: 0, count: 16)
        let length = unsafe datagram.withUnsafeMutableBytes { bytes in
            unsafe bytes.baseAddress.flatMap {
                unsafe sender.core.seal($0, .media, link: 7, length: 12 + contents.count)
            }
        }
        return length == datagram.count ? datagram : nil
    }

    private static func sealed(_ sender: Sender, _ contents: [UInt8]) throws -> [UInt8] {
        try #require(seal(sender, contents))
    }

    private static func open(_ receiver: Receiver, _ datagram: [UInt8]) throws(MediaLinkOpenError) -> [UInt8] {
        var bytes = datagram
        var span = bytes.mutableSpan
        var target = unsafe span.mutableBytes
        guard let header = TransferEnvelope.Header(target.bytes) else { throw .authentication }
        let range = try receiver.core.open(&target, length: datagram.count, header: header)
        return target.bytes.extracting(range).array()
    }

    @Test func `every backend makes the same bytes, and opens those of the others`() throws {
        let engines = try SRTPBackend.available.map { try SRTPEngine($0) }
        for count in [1, 15, 16, 17, 40, 1_200, 1_480] {
            let contents = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }
            let sealed = try engines.map { try Self.sealed(Self.sender($0), contents) }
            #expect(Set(sealed).count == 1)
            #expect(sealed[0].prefix(12) == [0xD0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1])
            for engine in engines {
                let receiver = try Self.receiver(engine)
                #expect(try Self.open(receiver, sealed[0]) == contents)
                #expect(receiver.newest == 1)
            }
        }
    }

    /// RFC 5869 and AES-GCM by an independent implementation.
    @Test func `the bytes are those of HKDF-SHA256 and AES-128-GCM`() throws {
        let sealed = try Self.seal(Self.sender(SRTPEngine(.openssl)), Array("nagare".utf8))
        #expect(sealed == Self.vector)
    }

    @Test(arguments: SRTPBackend.available)
    func `any changed bit is refused, and changes nothing`(backend: SRTPBackend) throws {
        let engine = try SRTPEngine(backend)
        let sealed = try #require(Self.seal(Self.sender(engine), [1, 2, 3, 4]))
        let receiver = try Self.receiver(engine)
        for bit in 8..<sealed.count * 8 {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: MediaLinkOpenError.authentication) { try Self.open(receiver, changed) }
        }
        #expect(throws: MediaLinkOpenError.authentication) { try Self.open(receiver, Array(sealed.dropLast())) }
        #expect(receiver.newest == 0)
        #expect(try Self.open(receiver, sealed) == [1, 2, 3, 4])
    }

    @Test(arguments: SRTPBackend.available)
    func `another secret, direction or context opens nothing`(backend: SRTPBackend) throws {
        let engine = try SRTPEngine(backend)
        let sealed = try #require(Self.seal(Self.sender(engine), [1, 2, 3, 4]))
        for schedule in [Self.schedule([2, 1]), Self.schedule(sender: 0x23)] {
            let receiver = try Self.receiver(engine, schedule)
            #expect(throws: MediaLinkOpenError.authentication) { try Self.open(receiver, sealed) }
        }
    }

    @Test(arguments: SRTPBackend.available)
    func `a datagram is opened once, in any order within the window`(backend: SRTPBackend) throws {
        let engine = try SRTPEngine(backend)
        let sender = try Self.sender(engine)
        let receiver = try Self.receiver(engine)
        let sealed = try (0..<5_000).map { try Self.sealed(sender, [UInt8($0 & 0xFF)]) }
        #expect(Set(sealed.map { Array($0.prefix(12)) }).count == sealed.count, "each has a nonce of its own")
        #expect(try Self.open(receiver, sealed[4_999]) == [UInt8(4_999 & 0xFF)])
        #expect(throws: MediaLinkOpenError.tooOld) { try Self.open(receiver, sealed[4_999 - 4_096]) }
        for index in [4_999 - 4_095, 4_000, 3_000, 4_998] {
            #expect(try Self.open(receiver, sealed[index]) == [UInt8(index & 0xFF)])
            #expect(throws: MediaLinkOpenError.replayed) { try Self.open(receiver, sealed[index]) }
        }
    }

    @Test(arguments: SRTPBackend.available)
    func `a new phase begins after an hour, and the one before is opened still`(backend: SRTPBackend) throws {
        let engine = try SRTPEngine(backend)
        let sender = try Self.sender(engine)
        let receiver = try Self.receiver(engine)
        var late: [[UInt8]] = []
        var now = Self.start
        for phase: UInt32 in 0..<300 {
            #expect(sender.core.phase == phase)
            late.append(try #require(Self.seal(sender, [1])))
            #expect(try Self.open(receiver, Self.sealed(sender, [2])) == [2])
            #expect(receiver.phase == phase)
            now += MediaLinkSender.phaseLife
            sender.core.confirm(receiver.newest, at: now - .seconds(1))
            #expect(sender.core.phase == phase)
            // What the receiver did not get does not count.
            sender.core.confirm(sender.core.counter + 1, at: now)
            #expect(sender.core.phase == phase)
            sender.core.confirm(receiver.newest, at: now)
        }
        #expect(try Self.open(receiver, late[299]) == [1])
        #expect(try Self.open(receiver, late[298]) == [1])
        #expect(throws: MediaLinkOpenError.authentication) { try Self.open(receiver, late[297]) }
    }

    @Test func `a new phase begins after its datagrams, and nothing is sealed without a confirmation`() throws {
        let engine = try SRTPEngine()
        let sender = try Self.sender(engine, datagramsMax: 4)
        let receiver = try Self.receiver(engine)
        for _ in 0..<4 { #expect(Self.seal(sender, [1]) != nil) }
        for _ in 0..<4 { _ = try Self.open(receiver, Self.sealed(sender, [1])) }
        #expect(Self.seal(sender, [1]) == nil, "twice the datagrams of a phase")
        #expect(sender.core.phase == 0)
        sender.core.confirm(receiver.newest, at: Self.start)
        #expect(sender.core.phase == 1)
        #expect(try Self.open(receiver, Self.sealed(sender, [3])) == [3])
        #expect(receiver.phase == 1)
    }

    @Test func `a sender goes on with the counter of the one before`() throws {
        let engine = try SRTPEngine()
        let sender = Sender(try MediaLinkSender(Self.schedule(), engine: engine, after: 99, at: Self.start))
        let receiver = try Self.receiver(engine)
        _ = try Self.open(receiver, Self.sealed(sender, [1]))
        #expect(sender.core.counter == 100 && receiver.newest == 100)
    }

    @Test func `a new phase needs a confirmation of the present one`() throws {
        let engine = try SRTPEngine()
        let sender = Sender(
            try MediaLinkSender(Self.schedule(), engine: engine, after: 100, at: Self.start, datagramsMax: 4)
        )
        for _ in 0..<5 { _ = try Self.sealed(sender, [1]) }
        for counter in [100, 106] as [UInt64] {
            sender.core.confirm(counter, at: Self.start)
            #expect(sender.core.phase == 0, "\(counter) is of another phase, or was not sent")
        }
        sender.core.confirm(101, at: Self.start)
        #expect(sender.core.phase == 1)
        // What was sent in the phase before does not end the next one.
        for _ in 0..<5 { _ = try Self.sealed(sender, [1]) }
        sender.core.confirm(105, at: Self.start)
        #expect(sender.core.phase == 1)
        sender.core.confirm(106, at: Self.start)
        #expect(sender.core.phase == 2)
    }

    private static let vector: [UInt8] = [
        0xD0, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
        0x0A, 0x90, 0x57, 0x12, 0xCC, 0x4C, 0xE0, 0x4F, 0xFF, 0xE9, 0x13, 0x06,
        0xCA, 0x5A, 0x8B, 0x74, 0xA0, 0x8F, 0xC2, 0x9A, 0x24, 0xC0,
    ]
}
