import Base
import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Calls whose members come and go, over sessions that the node describes.
@Suite(.timeLimit(.minutes(30))) struct ConferenceTests {
    /// Everybody hears and sees everybody else, and nobody another one in their place.
    private func expectAll(_ call: Conference, _ comment: Comment) {
        for member in call.members {
            let others = call.members.filter { $0 !== member && $0.isSending }
            for other in others {
                let listeners = member.listeners.filter { $0.from == other.name }.map(\.1)
                #expect(Set(listeners.map(\.kind)) == [.audio, .video], "\(member.name) of \(other.name), \(comment)")
                for listener in listeners {
                    let verifier = listener.verifier
                    #expect(verifier.sourceNumber == other.source, "\(member.name) of \(other.name), \(comment)")
                    #expect(verifier.packets > 20, "\(member.name) of \(other.name), \(comment)")
                    #expect(verifier.lost + verifier.unreadable == 0, "\(member.name) of \(other.name), \(comment)")
                }
            }
            #expect(member.listeners.count == others.count * 2, "\(member.name), \(comment)")
        }
    }

    /// Runs until everybody is connected, and for a while more.
    private func run(_ call: Conference, seconds: Int = 2) {
        let isUp = call.world.run(for: .seconds(5)) { call.members.allSatisfy { $0.host.client?.isConnected == true } }
        #expect(isUp)
        call.world.run(for: .seconds(seconds))
    }

    @Test func `three members join one by one, one leaves, another joins`() throws {
        let call = try Conference(seed: 901)
        let anna = try call.join("ANNA")
        run(call)
        #expect(anna.listeners.isEmpty)
        let bert = try call.join("BERT")
        run(call)
        expectAll(call, "two")
        try call.join("CARL")
        run(call)
        expectAll(call, "three")

        try call.leave(bert)
        call.world.run(for: .seconds(1))
        expectAll(call, "one left")
        #expect(anna.offers.last?.media.map { $0.port == 0 } == [false, false, true, true, false, false])

        try call.join("DORA")
        run(call)
        expectAll(call, "another joined")
        #expect(anna.offers.last?.media.count == 6, "the lines of the one who left were used again")
        #expect(call.world.node.core.gauges.slots == 12)
        #expect(call.world.node.core.counters[.unknownStream] == 0)

        for member in call.members { try call.leave(member) }
        call.world.run(for: .seconds(1))
        #expect(call.world.node.core.isEmpty)
    }

    @Test func `a receiver is there before the first sender and after the last`() throws {
        let call = try Conference(seed: 902)
        let viewer = try call.join("VIEWER", sends: false)
        run(call)
        for round in 0..<3 {
            let sender = try call.join("SENDER\(round)")
            run(call)
            expectAll(call, "round \(round)")
            try call.leave(sender)
            call.world.run(for: .seconds(1))
            #expect(viewer.listeners.isEmpty)
            #expect(viewer.host.client?.isConnected == true)
        }
        #expect(viewer.offers.last?.media.count == 3, "the head of the bundle, and a pair that is used again")
    }

    @Test func `layers are received by the names that the server gave them`() throws {
        let call = try Conference(seed: 903)
        let sender = try call.join("SENDER", layers: ["r0", "r1", "r2"])
        let viewer = try call.join("VIEWER", sends: false)
        run(call, seconds: 4)
        let video = try #require(sender.publishes.last)
        #expect(video.rids.map(\.value) == ["r0", "r1", "r2"] && video.layersAscend)
        let track = try #require(call.world.node.core.peer(sender.id)?.track(video.mid))
        #expect(Set(track.streams.compactMap(\.rid)) == Set(video.rids))
        let listener = try #require(viewer.listeners.first { $0.1.kind == .video }).1
        #expect(listener.verifier.framesDecoded > 60)
    }

    @Test func `members come and go at random, and everybody has everybody else`() throws {
        let call = try Conference(seed: 904)
        var generator = SeededGenerator(seed: 5)
        for turn in 0..<14 {
            if call.members.count < 2 || call.members.count < 5 && Bool.random(using: &generator) {
                try call.join("M\(turn)", sends: Int.random(in: 0..<4, using: &generator) > 0)
            } else if let member = call.members.randomElement(using: &generator) {
                try call.leave(member)
            }
            call.world.run(for: .milliseconds(Int.random(in: 0...300, using: &generator)))
        }
        run(call)
        expectAll(call, "in the end")
        let senders = call.members.count { $0.isSending }
        let slots = call.members.reduce(0) { $0 + (senders - ($1.isSending ? 1 : 0)) * 2 }
        #expect(call.world.node.core.gauges.slots == slots)
        #expect(call.world.node.core.gauges.connectedSlots == slots)
    }
}
