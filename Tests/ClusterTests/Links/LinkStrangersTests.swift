import NIOEmbedded
import Testing
import Wire

@testable import Cluster

struct LinkStrangersTests {
    /// Connections that have to be closed at the end of a test, on its thread: NIO traps when an open one is forgotten.
    private final class Connections {
        private var channels: [EmbeddedChannel] = []

        func make() -> EmbeddedChannel {
            let channel = EmbeddedChannel()
            channels.append(channel)
            return channel
        }

        func close() { for channel in channels { _ = try? channel.finish() } }
    }

    private static func address(_ number: UInt32) -> IPAddress { IPAddress(v4: 0x0A00_0000 + number) }

    static let rows: [(String, [IPAddress?], IPAddress)] = [
        ("an IPv4 address", Array(repeating: address(1), count: 11), address(2)),
        ("an IPv6 network", (1...11).map { IPAddress(high: 9, low: $0) }, IPAddress(high: 10, low: 1)),
        ("no address", Array(repeating: nil, count: 11), address(2)),
    ]

    @Test(arguments: rows)
    func `one network has few of the places`(name: String, addresses: [IPAddress?], other: IPAddress) {
        let connections = Connections()
        defer { connections.close() }
        var strangers = LinkStrangers()
        let channels = addresses.prefix(9).map { _ in connections.make() }
        let admitted = zip(channels, addresses).map { strangers.admit($0, from: $1) }
        #expect(admitted == Array(repeating: true, count: 8) + [false])
        let isOtherAdmitted = strangers.admit(connections.make(), from: other)
        #expect(isOtherAdmitted)
        // One of them said hello.
        strangers.remove(ObjectIdentifier(channels[3]))
        let again = addresses.suffix(2).map { strangers.admit(connections.make(), from: $0) }
        #expect(again == [true, false])
    }

    @Test func `beyond all places the oldest connection goes`() {
        let connections = Connections()
        defer { connections.close() }
        var strangers = LinkStrangers()
        let channels = (0..<70).map { _ in connections.make() }
        var closed: [ObjectIdentifier] = []
        for (number, channel) in channels.enumerated() {
            let isAdmitted = strangers.admit(channel, from: Self.address(UInt32(number)))
            #expect(isAdmitted)
            if let oldest = strangers.takeExcess() { closed.append(ObjectIdentifier(oldest)) }
        }
        #expect(closed == channels.prefix(6).map { ObjectIdentifier($0) })
        #expect(strangers.channels.map { ObjectIdentifier($0) } == channels.suffix(64).map { ObjectIdentifier($0) })
        strangers.remove(ObjectIdentifier(channels[69]))
        _ = strangers.admit(connections.make(), from: Self.address(0))
        let hasExcess = strangers.takeExcess() != nil
        #expect(!hasExcess)
    }
}
