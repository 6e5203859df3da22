import Base
import TestSupport
import Testing

@testable import SCTP

/// Data channels of two ends, with a link between them that may lose packets.
private final class Channels {
    final class End {
        var channels: DataChannels
        var events: [DataChannelEvent] = []

        init(isClient: Bool, _ generator: inout SeededGenerator) {
            channels = DataChannels(isClient: isClient, AssociationSettings(), using: &generator)
        }

        func open(_ parameters: ChannelParameters, at now: Instant) -> StreamID? {
            do { return try channels.open(parameters, at: now) } catch { return nil }
        }

        @discardableResult
        func send(_ bytes: [UInt8], isText: Bool = false, on id: StreamID, at now: Instant) -> SendError? {
            do { try channels.send(bytes, isText: isText, on: id, at: now) } catch { return error }
            return nil
        }

        func takeEvents(at now: Instant) {
            while let event = channels.nextEvent(at: now) { events.append(event) }
        }

        func nextPacket(at now: Instant) -> [UInt8]? {
            var buffer = [UInt8](repeating: 0, count: 1_200)
            var elements = buffer.mutableSpan
            var span = unsafe elements.mutableBytes
            guard let packet = channels.nextPacket(into: &span, at: now) else { return nil }
            return Array(buffer.prefix(packet.byteCount))
        }

        func receive(_ packet: [UInt8], at now: Instant) {
            do { try channels.receive(unsafe packet.span.bytes, at: now) } catch { Issue.record("dropped: \(error)") }
        }

        var messages: [[UInt8]] {
            events.compactMap { if case .message(_, _, let bytes) = $0 { bytes } else { nil } }
        }
    }

    var now = at(0)
    var generator: SeededGenerator
    let ends: [End]
    var lossPercent = 0
    private var flights: [(arrival: Instant, target: Int, bytes: [UInt8])] = []

    var client: End { ends[0] }
    var server: End { ends[1] }

    init(seed: UInt64 = 1) {
        generator = SeededGenerator(seed: seed)
        ends = [End(isClient: true, &generator), End(isClient: false, &generator)]
        for end in ends { end.channels.connect(at: now) }
    }

    private func flush() {
        for index in 0..<2 {
            ends[index].takeEvents(at: now)
            while let packet = ends[index].nextPacket(at: now) {
                if Int.random(in: 0..<100, using: &generator) < lossPercent { continue }
                flights.append((now + .milliseconds(10), 1 - index, packet))
            }
        }
    }

    func run(for interval: Interval) {
        let end = now + interval
        flush()
        while true {
            var next = flights.first?.arrival
            for end in ends { next = earliest(next, end.channels.nextDeadline) }
            guard let next, next <= end else { break }
            now = max(now, next)
            while let flight = flights.first, flight.arrival <= now {
                flights.removeFirst()
                ends[flight.target].receive(flight.bytes, at: now)
            }
            for end in ends {
                if let deadline = end.channels.nextDeadline, deadline <= now { end.channels.handleTimeout(at: now) }
            }
            flush()
        }
        now = end
    }
}

/// Data channels whose peer sends what it likes: an association that knows nothing of channels.
private final class RawPeer {
    let end: Channels.End
    let peer: Node
    private var now = at(0)

    init() {
        var generator = SeededGenerator(seed: 1)
        end = Channels.End(isClient: false, &generator)
        peer = Node(AssociationSettings(), &generator)
        peer.association.connect(at: now)
        run()
    }

    func send(_ bytes: [UInt8], as kind: PayloadProtocol = .binary, on id: UInt16) throws {
        try peer.association.send(bytes, as: kind, on: stream(id), at: now)
    }

    func open(_ id: UInt16) throws {
        try send(EstablishmentMessage.open(ChannelParameters(label: "a")).encoded(), as: .control, on: id)
    }

    /// Ten round trips.
    func run() {
        for _ in 0..<10 {
            while let packet = peer.nextPacket(at: now) { end.receive(packet, at: now) }
            end.takeEvents(at: now)
            while let packet = end.nextPacket(at: now) { peer.receive(packet, at: now) }
            now += .milliseconds(20)
            peer.association.handleTimeout(at: now)
            end.channels.handleTimeout(at: now)
        }
    }
}

@Suite struct DataChannelTests {
    @Test func `the status is what the properties say, after each step`() throws {
        let link = Channels(seed: 3)
        link.lossPercent = 20
        func check() {
            for end in link.ends {
                let status = end.channels.status()
                #expect(status.isEstablished == end.channels.isEstablished)
                #expect(status.hasEnded == end.channels.hasEnded)
                #expect(status.nextDeadline == end.channels.nextDeadline)
                #expect(status.bufferedBytes == end.channels.bufferedBytes)
                #expect(status.heldBytes == end.channels.heldBytes)
                #expect(status.retransmissions == end.channels.retransmissions)
                #expect(status.refusedChannels == end.channels.refusedChannels)
            }
        }
        check()
        let id = try #require(link.client.open(ChannelParameters(label: "x"), at: link.now))
        for number in 0..<50 {
            link.client.send([UInt8](repeating: UInt8(number), count: 3_000), on: id, at: link.now)
            check()
            link.run(for: .milliseconds(20))
            check()
        }
        link.run(for: .seconds(20))
        #expect(link.client.channels.status().retransmissions > 0 && link.server.messages.count == 50)
        link.client.channels.abort()
        check()
    }

    @Test(arguments: [0, 20])
    func `channels opened by both have numbers of their own, and carry messages`(loss: Int) throws {
        let link = Channels()
        link.lossPercent = loss
        let policy = SendPolicy(isOrdered: false, limit: .retransmissions(100))
        let parameters = ChannelParameters(label: "#chat", subprotocol: "p", policy: policy, priority: 512)
        let ours = try #require(link.server.open(parameters, at: link.now))
        let theirs = try #require(link.client.open(ChannelParameters(label: "x"), at: link.now))
        #expect(ours == stream(1))
        #expect(theirs == stream(0))
        link.server.send([1, 2], on: ours, at: link.now)
        link.client.send([], isText: true, on: theirs, at: link.now)
        link.run(for: .seconds(30))
        link.client.send([3], on: ours, at: link.now)
        link.run(for: .seconds(30))
        #expect(link.server.events.contains(.opened(ours)))
        #expect(link.client.events.contains(.opened(theirs)))
        #expect(link.client.events.contains(.incoming(ours, parameters)))
        #expect(link.client.events.contains(.message(ours, isText: false, [1, 2])))
        #expect(link.server.events.contains(.message(ours, isText: false, [3])))
        #expect(link.server.events.contains(.message(theirs, isText: true, [])), "an empty text")
        #expect(link.client.channels.parameters(of: ours) == parameters)
    }

    @Test func `channels are open within two round trips of the start`() throws {
        let link = Channels()
        let id = try #require(link.server.open(ChannelParameters(label: "signaling"), at: link.now))
        link.run(for: .milliseconds(41))
        #expect(link.client.events.contains(.incoming(id, ChannelParameters(label: "signaling"))))
    }

    @Test(arguments: [0, 20])
    func `a closed channel is closed at both ends after its messages, and its number is used again`(loss: Int) throws {
        let link = Channels()
        link.lossPercent = loss
        for round in 1...3 {
            let id = try #require(link.client.open(ChannelParameters(label: "\(round)"), at: link.now))
            #expect(id == stream(0))
            for index in 0..<10 { link.client.send(payload(index, count: 2_000), on: id, at: link.now) }
            link.client.channels.close(id, at: link.now)
            #expect(link.client.send([1], on: id, at: link.now) == .closing)
            link.run(for: .seconds(60))
            for end in link.ends {
                #expect(end.events.count { $0 == .closed(id) } == round)
                #expect(end.channels.channelCount == 0)
            }
            #expect(link.server.messages.count == 10 * round)
        }
    }

    @Test func `a number may be used again at once when both directions are closed`() throws {
        let link = Channels()
        let first = try #require(link.client.open(ChannelParameters(label: "first"), at: link.now))
        link.run(for: .seconds(1))
        link.server.channels.close(first, at: link.now)
        // The client opens the next one in the very turn in which the first is closed for it.
        while !link.client.events.contains(.closed(first)) { link.run(for: .milliseconds(1)) }
        let second = try #require(link.client.open(ChannelParameters(label: "second"), at: link.now))
        link.run(for: .seconds(1))
        #expect(second == first)
        #expect(link.server.events.contains(.incoming(second, ChannelParameters(label: "second"))))
        #expect(link.server.channels.refusedChannels == 0)
    }

    @Test(arguments: 1...5)
    func `channels that use a number again and again get their own messages`(seed: Int) throws {
        let link = Channels(seed: UInt64(seed))
        link.lossPercent = 15
        let rounds = 6
        for round in 0..<rounds {
            let label = "\(round)"
            let id = try #require(link.client.open(ChannelParameters(label: label), at: link.now))
            link.client.send(payload(round, count: 100), on: id, at: link.now)
            link.client.channels.close(id, at: link.now)
            for _ in 0..<6_000 where link.client.channels.channelCount > 0 { link.run(for: .milliseconds(10)) }
        }
        link.run(for: .seconds(30))
        #expect(link.server.channels.refusedChannels == 0)
        var open: String?
        var labels: [String] = []
        for event in link.server.events {
            switch event {
            case .incoming(_, let parameters):
                #expect(open == nil)
                open = parameters.label
                labels.append(parameters.label)
            case .message(_, _, let bytes): #expect(open == "\(number(of: bytes))")
            case .closed: open = nil
            default: break
            }
        }
        #expect(labels == (0..<rounds).map { "\($0)" })
        #expect(link.server.messages.count == rounds)
    }

    @Test func `there is a bound for channels and for labels`() throws {
        let link = Channels()
        for _ in 0..<DataChannels.channelsMax {
            _ = try #require(link.client.open(ChannelParameters(label: "a"), at: link.now))
        }
        #expect(link.client.open(ChannelParameters(label: "a"), at: link.now) == nil)
        #expect(link.server.open(ChannelParameters(label: String(repeating: "a", count: 65)), at: link.now) == nil)
        link.run(for: .seconds(10))
        #expect(link.server.channels.channelCount == DataChannels.channelsMax)
    }

    @Test func `a peer opens so many channels and no more`() throws {
        let link = RawPeer()
        for id in 0..<200 as Range<UInt16> { try link.open(id) }
        link.run()
        #expect(link.end.channels.channelCount == DataChannels.channelsMax)
        #expect(link.end.channels.refusedChannels == UInt64(200 - DataChannels.channelsMax))
    }

    @Test func `messages that come before their channel are kept up to a bound`() throws {
        let link = RawPeer()
        // The second time nothing of the first is left.
        for id in [3, 5] as [UInt16] {
            link.end.events = []
            for index in 0..<20 { try link.send(payload(index, count: 1_000), on: id) }
            link.run()
            #expect(link.end.events.isEmpty)
            try link.open(id)
            link.run()
            // 16 KiB, with 64 bytes for each besides its own.
            #expect(link.end.messages.map { number(of: $0) } == Array(0..<15))
        }
        #expect(link.end.channels.droppedMessages == 10)
    }

    @Test func `the end of the association ends all channels`() throws {
        let link = Channels()
        _ = try #require(link.client.open(ChannelParameters(label: "a"), at: link.now))
        link.run(for: .seconds(1))
        link.client.channels.abort()
        link.run(for: .seconds(1))
        #expect(link.client.events.last == .ended(.aborted))
        #expect(link.server.events.last == .ended(.abortedByPeer(cause: 12)))
        #expect(link.server.channels.channelCount == 0)
    }
}
