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
    func `one network has few of the places, and its oldest connection makes room`(
        name: String,
        addresses: [IPAddress?],
        other: IPAddress
    ) {
        let connections = Connections()
        defer { connections.close() }
        var strangers = LinkStrangers()
        let channels = addresses.map { _ in connections.make() }
        func admit(_ index: Int) -> ObjectIdentifier? {
            strangers.admit(channels[index], from: addresses[index]).map { ObjectIdentifier($0) }
        }
        for index in 0..<8 { #expect(admit(index) == nil) }
        #expect(admit(8) == ObjectIdentifier(channels[0]))
        let closed = strangers.admit(connections.make(), from: other)
        #expect(closed == nil)
        // One of them said hello.
        strangers.remove(ObjectIdentifier(channels[3]))
        #expect(admit(9) == nil)
        #expect(admit(10) == ObjectIdentifier(channels[1]))
    }

    @Test func `beyond all places the oldest connection of the network with the most goes`() {
        let connections = Connections()
        defer { connections.close() }
        var strangers = LinkStrangers()
        var numbers: [ObjectIdentifier: Int] = [:]
        func admit(_ number: Int, from address: IPAddress) -> Int? {
            let channel = connections.make()
            numbers[ObjectIdentifier(channel)] = number
            return strangers.admit(channel, from: address).flatMap { numbers[ObjectIdentifier($0)] }
        }
        // Three of one network behind sixty others.
        for number in 0..<61 { #expect(admit(number, from: Self.address(UInt32(number))) == nil) }
        for number in 61..<64 { #expect(admit(number, from: Self.address(900)) == nil) }
        #expect(admit(64, from: Self.address(64)) == 61)
        #expect(admit(65, from: Self.address(65)) == 62)
        // All have one.
        #expect(admit(66, from: Self.address(66)) == 0)
        #expect(strangers.channels.count == 64)
        if let last = strangers.channels.last { strangers.remove(ObjectIdentifier(last)) }
        #expect(admit(67, from: Self.address(67)) == nil)
    }
}
