import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Which simulcast layer each viewer gets.
@Suite struct LayerTests {
    private static let names = ["r0", "r1", "r2"]

    private struct Call {
        let world: World
        let publisher: World.Host
        let rids: [RID]

        /// The place of the layer that a viewer was sent last.
        func layer(_ recording: Recording) -> UInt32? {
            recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 }
        }

        /// What was told of the layers of a viewer's slot since an event before.
        func switches(_ viewer: World.Host, from first: Int = 0) -> [Switch] {
            world.nodeEvents.dropFirst(first).compactMap { peer, event in
                guard peer == viewer.client?.id,
                    case .layerSwitched(_, let current, let previous, let isRequested) = event
                else { return nil }
                return Switch(current: current?.value, previous: previous?.value, isRequested: isRequested)
            }
        }

        func send(_ isSending: Bool, _ layer: Int) {
            publisher.client?.setSending(isSending, layer: rids[layer])
        }
    }

    private struct Switch: Equatable, CustomStringConvertible {
        var current: String?
        var previous: String?
        var isRequested: Bool
        var description: String { "\(previous ?? "-")>\(current ?? "-")\(isRequested ? "" : "?")" }
    }

    private func start(seed: UInt64, loops: Int = 1, layersAscend: Bool = true) throws -> Call {
        let world = try World(seed: seed, loops: loops)
        let rids = try Self.names.map { try #require(RID($0)) }
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 1_200_000
        let publisher = try world.publish(settings, rids: rids, layersAscend: layersAscend)
        return Call(world: world, publisher: publisher, rids: rids)
    }

    private func watch(
        _ call: Call,
        _ layer: LayerChoice,
        loop: Int = 0
    ) throws -> (viewer: World.Host, recording: Recording) {
        let viewer = try call.world.watch(loop: loop)
        let recording = Recording(viewer, .video)
        try call.world.connect(viewer, to: call.publisher, layer: layer)
        return (viewer, recording)
    }

    @Test(arguments: [true, false])
    func `each viewer gets the layer of its choice`(layersAscend: Bool) throws {
        let call = try start(seed: 701, layersAscend: layersAscend)
        let choices: [LayerChoice] = [.level(0), .level(1), .level(2), .richest, .level(7), .level(-3)]
        let watching = try choices.map { try watch(call, $0) }
        call.world.run(for: .seconds(6))
        #expect(watching.map { call.layer($0.recording) } == [0, 1, 2, 2, 2, 0])
        for (viewer, recording) in watching {
            #expect(recording.flaws == [])
            #expect(viewer.client?.video?.lost == 0)
            #expect(viewer.core.counters.nackedPacketsRequested == 0)
            #expect(call.switches(viewer).last?.isRequested == true)
        }
    }

    @Test func `another choice switches at a key frame, and the layer before plays until then`() throws {
        let call = try start(seed: 711)
        let (viewer, recording) = try watch(call, .level(2))
        let other = try watch(call, .level(1))
        call.world.run(for: .seconds(4))
        let keyFrames = call.publisher.client?.keyFramesMade ?? 0
        let choices: [(LayerChoice, UInt32)] = [(.level(0), 0), (.level(2), 2), (.level(1), 1), (.richest, 2)]
        for (choice, expected) in choices {
            let (events, changed) = (call.world.nodeEvents.count, call.world.now)
            try call.world.connect(viewer, to: call.publisher, .video, layer: choice)
            #expect(call.world.run(for: .milliseconds(700)) { call.layer(recording) == expected })
            call.world.run(for: .seconds(2))
            #expect(recording.longestGap(from: changed) < .milliseconds(70))
            #expect(call.switches(viewer, from: events).map(\.current) == [Self.names[Int(expected)]])
        }
        #expect(recording.flaws == [])
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
        #expect((call.publisher.client?.keyFramesMade ?? 0) - keyFrames == 4, "one key frame a switch, of one layer")
        #expect(call.layer(other.recording) == 1)
        #expect(call.switches(other.viewer).map(\.current).suffix(1) == ["r1"])
        #expect(other.recording.flaws == [])
    }

    @Test func `a layer that stops is replaced by the nearest that flows, and comes back`() throws {
        let call = try start(seed: 721)
        let (viewer, recording) = try watch(call, .level(2))
        call.world.run(for: .seconds(4))
        let events = call.world.nodeEvents.count
        for layer in [2, 1] {
            call.send(false, layer)
            let stopped = call.world.now
            call.world.run(for: .seconds(4))
            #expect(recording.longestGap(from: stopped) < .milliseconds(1_600))
        }
        call.send(true, 2)
        call.world.run(for: .seconds(4))
        #expect(
            call.switches(viewer, from: events) == [
                Switch(current: "r1", previous: "r2", isRequested: false),
                Switch(current: "r0", previous: "r1", isRequested: false),
                Switch(current: "r2", previous: "r0", isRequested: true),
            ]
        )
        #expect(recording.flaws == [])
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
    }

    @Test func `nothing is sent of a source that is to play nothing, and its sound goes on`() throws {
        let call = try start(seed: 731)
        let (viewer, recording) = try watch(call, .level(1))
        call.world.run(for: .seconds(3))
        let events = call.world.nodeEvents.count
        try call.world.connect(viewer, to: call.publisher, .video, layer: .nothing)
        call.world.run(for: .milliseconds(100))
        let (count, heard) = (recording.packets.count, viewer.client?.audioReceived?.packets ?? 0)
        call.world.run(for: .seconds(3))
        #expect(recording.packets.count == count)
        #expect(viewer.client?.audioReceived?.packets ?? 0 > heard + 140)
        try call.world.connect(viewer, to: call.publisher, .video, layer: .level(0))
        call.world.run(for: .seconds(2))
        #expect(call.layer(recording) == 0)
        #expect(recording.flaws == [])
        #expect(
            call.switches(viewer, from: events) == [
                Switch(current: nil, previous: "r1", isRequested: true),
                Switch(current: "r0", previous: nil, isRequested: true),
            ]
        )
    }

    @Test func `a source without layers plays whatever is chosen, except nothing`() throws {
        let world = try World(seed: 741)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher, layer: .level(0))
        world.run(for: .seconds(3))
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        #expect(decoded > 60)
        try world.connect(viewer, to: publisher, layer: .level(2))
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 25)
        try world.connect(viewer, to: publisher, layer: .nothing)
        world.run(for: .milliseconds(100))
        let (video, audio) = (viewer.client?.video?.packets, viewer.client?.audioReceived?.packets)
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.packets == video)
        #expect(viewer.client?.audioReceived?.packets == audio)
        try world.connect(viewer, to: publisher, layer: .richest)
        #expect(world.run(for: .seconds(1)) { viewer.client?.video?.framesDecoded ?? 0 > decoded + 40 })
        #expect(!world.nodeEvents.contains { if case .layerSwitched = $0.1 { true } else { false } })
    }

    @Test func `padding alone does not make a layer flow`() throws {
        let call = try start(seed: 751)
        let (_, recording) = try watch(call, .level(2))
        call.world.run(for: .seconds(4))
        call.send(false, 2)
        let mid = try #require(call.world.publishedTrack(call.publisher, .video)).mid
        let top = try #require(
            call.world.nodePeer(call.publisher)?.track(mid)?.streams.first { $0.rid == call.rids[2] }
        )
        let ssrc = top.ssrc.rawValue
        var padding = try #require(HandMadeStream(call.world, call.publisher, .video, codec: .vp8, ssrc: ssrc))
        padding.sequence = (top.unwrapper.newest?.wire.rawValue ?? 0) &+ 1
        for _ in 0..<40 {
            var packet = padding.next(step: 0, marker: false, [0, 0, 0, 4])
            packet[0] |= 0x20
            call.world.sendSecured(packet, from: call.publisher)
            call.world.run(for: .milliseconds(50))
        }
        #expect(call.layer(recording) == 1)
    }

    // MARK: - On two loops

    @Test func `another loop is handed the layers that are wanted there and no other`() throws {
        let call = try start(seed: 761, loops: 2)
        let link = try #require(call.world.links[0][1])
        var carried: [UInt8: Int] = [:]
        link.loses = { record in
            if case .packet(let packet) = record.message { carried[packet.layer, default: 0] += 1 }
            return false
        }
        let near = try watch(call, .level(1))
        let low = try watch(call, .level(0), loop: 1)
        let high = try watch(call, .level(2), loop: 1)
        call.world.run(for: .seconds(5))
        #expect([near, low, high].map { call.layer($0.recording) } == [1, 0, 2])
        carried = [:]
        call.world.run(for: .seconds(2))
        #expect(carried[1] == nil)
        #expect(carried[0] ?? 0 > 50)
        #expect(carried[2] ?? 0 > 50)

        let changed = call.world.now
        try call.world.connect(high.viewer, to: call.publisher, .video, layer: .level(1))
        #expect(call.world.run(for: .milliseconds(900)) { call.layer(high.recording) == 1 })
        #expect(high.recording.longestGap(from: changed) < .milliseconds(70))
        call.world.run(for: .seconds(2))
        carried = [:]
        call.world.run(for: .seconds(1))
        #expect(carried[2] == nil)
        for (viewer, recording) in [near, low, high] {
            #expect(recording.flaws == [])
            #expect(viewer.core.counters.nackedPacketsRequested == 0)
        }
        #expect(call.switches(high.viewer).last == Switch(current: "r1", previous: "r2", isRequested: true))
    }

    @Test func `a layer that stops is replaced on another loop too`() throws {
        let call = try start(seed: 771, loops: 2)
        let (viewer, recording) = try watch(call, .level(2), loop: 1)
        call.world.run(for: .seconds(4))
        let events = call.world.nodeEvents.count
        call.send(false, 2)
        call.world.run(for: .seconds(4))
        #expect(call.layer(recording) == 1)
        call.send(true, 2)
        call.world.run(for: .seconds(4))
        #expect(call.layer(recording) == 2)
        #expect(
            call.switches(viewer, from: events) == [
                Switch(current: "r1", previous: "r2", isRequested: false),
                Switch(current: "r2", previous: "r1", isRequested: true),
            ]
        )
        #expect(recording.flaws == [])
    }

    @Test func `a layer that comes back takes over on another loop without a pause`() throws {
        let call = try start(seed: 772, loops: 2)
        let (_, recording) = try watch(call, .level(2), loop: 1)
        call.world.run(for: .seconds(4))
        call.send(false, 2)
        call.world.run(for: .seconds(4))
        #expect(call.layer(recording) == 1)
        // A key frame takes its time to come.
        call.world.network.standard.delay = .milliseconds(150)
        call.world.run(for: .seconds(1))
        let resumed = call.world.now
        call.send(true, 2)
        call.world.run(for: .seconds(5))
        #expect(call.layer(recording) == 2)
        #expect(recording.longestGap(from: resumed) < .milliseconds(70))
        #expect(recording.flaws == [])
        var carried: Set<UInt8> = []
        try #require(call.world.links[0][1]).loses = { record in
            if case .packet(let packet) = record.message { carried.insert(packet.layer) }
            return false
        }
        call.world.run(for: .seconds(1))
        #expect(carried == [2, .max], "the layer before is not wanted any more; audio has none")
    }

    @Test func `another loop unlearns what a layer answers that nobody chose there`() throws {
        let call = try start(seed: 773, loops: 2)
        _ = try watch(call, .level(1), loop: 1)
        call.world.run(for: .seconds(4))
        func answers(_ home: Int) throws -> LayerChoices {
            let core = call.world.loops[home].core
            let publisher = try #require(call.publisher.client).id
            let tracks = home == 0 ? core.peer(publisher)?.tracks ?? [] : core.relays.mirrors.values.map(\.track)
            let track = try #require(tracks.first { $0.parameters.kind == .video })
            let stream = try #require(track.streams.first { $0.rid == call.rids[1] })
            return track.resolution.choices(of: stream.id.rawValue)
        }
        #expect(try answers(1) == answers(0))
        call.send(false, 2)
        call.world.run(for: .seconds(4))
        #expect(try answers(0).contains(LayerChoices(place: 0)))
        #expect(try answers(1) == answers(0))
        call.send(true, 2)
        call.world.run(for: .seconds(4))
        #expect(try answers(0) == LayerChoices(place: 2))
        #expect(try answers(1) == answers(0))
    }

    @Test func `a mirror knows the bit rates of all layers, whichever it is handed`() throws {
        let call = try start(seed: 775, loops: 2)
        _ = try watch(call, .level(0), loop: 1)
        call.world.run(for: .seconds(5))
        let publisher = try #require(call.publisher.client).id
        func table(_ tracks: [ReceivedTrack]) throws -> LayerTable {
            try #require(tracks.first { $0.parameters.kind == .video }).table
        }
        let origin = try table(call.world.loops[0].core.peer(publisher)?.tracks ?? [])
        let mirror = try table(call.world.loops[1].core.relays.mirrors.values.map(\.track))
        #expect(origin.encodings.map(\.place).sorted() == [0, 1, 2])
        #expect(mirror.encodings.map(\.place) == origin.encodings.map(\.place))
        for (told, measured) in zip(mirror.encodings, origin.encodings) {
            #expect(told.isFlowing && measured.isFlowing)
            #expect(abs(told.bitrate - measured.bitrate) <= measured.bitrate / 2)
            #expect(told.layers.bitrate(upToSpatial: 3, temporal: 3) > told.bitrate / 2)
        }
        let rates = mirror.encodings.sorted { $0.place < $1.place }.map(\.bitrate)
        #expect(rates == rates.sorted() && rates[0] > 0)
    }

    @Test func `a subscription that was lost on the way is sent again`() throws {
        let call = try start(seed: 781, loops: 2)
        let (viewer, recording) = try watch(call, .level(0), loop: 1)
        call.world.run(for: .seconds(4))
        let back = try #require(call.world.links[1][0])
        back.loses = { $0.isControl }
        try call.world.connect(viewer, to: call.publisher, .video, layer: .level(2))
        call.world.run(for: .seconds(2))
        #expect(call.layer(recording) == 0)
        back.loses = { _ in false }
        #expect(call.world.run(for: .seconds(3)) { call.layer(recording) == 2 })
        call.world.run(for: .seconds(1))
        #expect(recording.flaws == [])
    }

    @Test func `with nothing to play another loop is handed nothing, and then again`() throws {
        let call = try start(seed: 791, loops: 2)
        let (viewer, recording) = try watch(call, .level(1), loop: 1)
        call.world.run(for: .seconds(4))
        let link = try #require(call.world.links[0][1])
        try call.world.connect(viewer, to: call.publisher, layer: .nothing)
        call.world.run(for: .milliseconds(100))
        let carried = link.packetsCarried
        call.world.run(for: .seconds(2))
        #expect(link.packetsCarried == carried)
        try call.world.connect(viewer, to: call.publisher, layer: .level(1))
        #expect(call.world.run(for: .seconds(1)) { link.packetsCarried > carried && call.layer(recording) == 1 })
        call.world.run(for: .seconds(1))
        #expect(recording.flaws == [])
        #expect(viewer.client?.audioReceived?.duplicates == 0)
    }
}
