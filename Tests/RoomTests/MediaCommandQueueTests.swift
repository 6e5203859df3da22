import MediaTypes
import Testing

@testable import Room

@Suite struct MediaCommandQueueTests {
    private static func addresses(_ count: UInt64) -> [DataAddress] {
        (0..<count).map { DataAddress(peer: PeerID(rawValue: $0), channel: DataChannelID(rawValue: 1)) }
    }

    /// The first byte of each message that was taken, and for how many receivers.
    private static func taken(_ commands: [DataCommand]) -> [[Int]] {
        commands.map { command in
            guard case .send(let message, let receivers) = command else { return [] }
            return [Int(message.bytes[0]), receivers.count]
        }
    }

    @Test func `messages are taken in order, for so many receivers at a time`() {
        var queue = MediaCommandQueue()
        _ = queue.add(DataMessage([1], isText: false), to: Self.addresses(100))
        _ = queue.add(DataMessage([2], isText: false), to: Self.addresses(300))
        _ = queue.add(DataMessage([3], isText: false), to: [])
        #expect(Self.taken(queue.takeDeliveries(128)) == [[1, 100], [2, 28]])
        #expect(Self.taken(queue.takeDeliveries(128)) == [[2, 128]])
        #expect(queue.hasWork && !queue.isEmpty)
        #expect(Self.taken(queue.takeDeliveries(1_000)) == [[2, 144]])
        #expect(!queue.hasWork && queue.isEmpty)
        #expect(Self.taken(queue.takeDeliveries(1)) == [])
    }

    @Test func `each receiver gets a message that is taken in parts once`() {
        var queue = MediaCommandQueue()
        _ = queue.add(DataMessage([1], isText: false), to: Self.addresses(10))
        var receivers: [UInt64] = []
        while queue.hasWork {
            for case .send(_, let part) in queue.takeDeliveries(3) { receivers += part.map(\.peer.rawValue) }
        }
        #expect(receivers == Array(0..<10))
    }

    @Test func `what waits is bounded, and there is room again when it was handed out`() {
        var queue = MediaCommandQueue()
        let message = DataMessage([UInt8](repeating: 1, count: 256 << 10), isText: false)
        var count = 0
        while queue.add(message, to: Self.addresses(1)), count < 100 { count += 1 }
        #expect(count == 63, "of 16 MiB, with their addresses")
        _ = queue.takeDeliveries(1)
        #expect(queue.add(message, to: Self.addresses(1)) == true)
        #expect(queue.add(message, to: Self.addresses(1)) == false)
    }

    @Test func `a message that was handed out holds its sender's credit no more`() {
        var queue = MediaCommandQueue()
        let credit = DataCredit(bytesMax: 1_000_000)
        for _ in 0..<3 {
            _ = queue.add(DataMessage([1], isText: false, lease: credit.lease(bytes: 1)), to: Self.addresses(2))
        }
        let before = credit.bytesTaken
        _ = queue.takeDeliveries(2)
        #expect(credit.bytesTaken == before / 3 * 2)
    }
}
