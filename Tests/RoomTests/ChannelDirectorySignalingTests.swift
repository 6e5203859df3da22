import Base
import MediaTypes
import RoomTestSupport
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

extension RoomsBench {
    static let audio = MID("a")!

    /// A connected member that follows everyone, with its events from the start.
    func member(
        _ role: Role,
        _ configure: (inout JoinRequest) -> Void = { _ in }
    ) async throws -> (id: ParticipantID, peer: PeerID, events: ParticipantEvents) {
        var request = JoinRequest(channel: Self.channel, role: role, following: .everyone)
        configure(&request)
        let reservation = try await directory.reserve(request)
        let events = await directory.events(of: reservation.participant)
        let receive = ReceiveTrackParameters(mid: Self.mid, kind: .video, codecs: [Self.vp8])
        _ = try await directory.activate(
            reservation,
            remote: Self.remote,
            receive: role.publishes ? [receive] : [],
            firstMediaKind: .video,
            mids: [Self.mid]
        )
        await report(.connected(over: .udp), from: reservation.peer)
        return (reservation.participant, reservation.peer, events)
    }

    static func slot(_ name: String, for sender: ParticipantID) -> SlotAssignment {
        SlotAssignment(
            sender: sender,
            track: mid,
            parameters: SendTrackParameters(
                mid: MID(name)!,
                kind: .video,
                codecs: [vp8],
                ssrc: SSRC(rawValue: 2),
                cname: "c"
            )
        )
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ChannelDirectorySignalingTests {
    @Test func `a newcomer gets the identifier and the session of its join context`() async throws {
        let bench = RoomsBench()
        let first = await bench.directory.joinContext(of: RoomsBench.channel)
        let second = await bench.directory.joinContext(of: RoomsBench.channel)
        #expect(first.session == second.session && first.id != second.id)
        var request = JoinRequest(channel: RoomsBench.channel, role: .sendonly)
        request.id = first.id
        let reservation = try await bench.directory.reserve(request)
        #expect(reservation.participant == first.id && reservation.channelSession == first.session)
        #expect(await bench.directory.joinContext(of: RoomsBench.channel).session == first.session)
        #expect(await bench.directory.channelSession(of: RoomsBench.channel)?.id == first.session)
        #expect(await bench.directory.channelSessions.count == 1)
        await bench.directory.cancel(reservation)
        #expect(await bench.directory.joinContext(of: RoomsBench.channel).session != first.session)
    }

    @Test func `pending session identifiers are bounded and the oldest is forgotten first`() {
        var pendingSessionIDs = PendingSessionIDs()
        var generator = SeededGenerator(seed: 1)
        let names = (0...PendingSessionIDs.channelsMax).map { ChannelName("c\($0)")! }
        let ids = names.map { pendingSessionIDs.session(of: $0) { ChannelSessionID(using: &generator) } }
        #expect(pendingSessionIDs.session(of: names[1]) { ChannelSessionID(using: &generator) } == ids[1])
        #expect(pendingSessionIDs.session(of: names[0]) { ChannelSessionID(using: &generator) } != ids[0])
    }

    @Test func `slots are added to and removed from the media plane, and play their tracks`() async throws {
        let bench = RoomsBench()
        let sender = try await bench.member(.sendonly)
        let viewer = try await bench.member(.recvonly) { $0.layer = .level(1) }
        let slots = [RoomsBench.slot("x", for: sender.id), RoomsBench.slot("y", for: viewer.id)]
        try await bench.directory.changeSlots(of: viewer.id, add: slots, remove: [])
        await bench.directory.settle()
        let slot = TrackID(peer: viewer.peer, mid: MID("x")!)
        let source = PlacedTrack(track: TrackID(peer: sender.peer, mid: RoomsBench.mid), location: 0)
        #expect(await bench.plane.sources == [slot: source])
        #expect(await bench.plane.preferences == [slot: LayerPreference()], "the sender has one layer")
        #expect(await bench.plane.peers[viewer.peer]?.send.map(\.mid.value) == ["x", "y"])
        try await bench.directory.changeSlots(of: viewer.id, add: [], remove: [MID("x")!])
        await bench.directory.settle()
        #expect(await bench.plane.sources == [:])
        await bench.directory.end(viewer.id, reason: .left)
        await #expect(throws: RoomError.participantUnknown) {
            try await bench.directory.changeSlots(of: viewer.id, add: slots, remove: [])
        }
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a media plane that refuses slots leaves the member as it was`() async throws {
        let bench = RoomsBench()
        let sender = try await bench.member(.sendonly)
        let viewer = try await bench.member(.recvonly)
        await bench.plane.setRefuses(true)
        await #expect(throws: RoomError.self) {
            try await bench.directory.changeSlots(
                of: viewer.id,
                add: [RoomsBench.slot("x", for: sender.id)],
                remove: []
            )
        }
        await bench.plane.setRefuses(false)
        try await bench.directory.changeSlots(of: viewer.id, add: [RoomsBench.slot("x", for: sender.id)], remove: [])
        await bench.directory.settle()
        #expect(await bench.plane.sources.count == 1)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a change of slots fails when the participant ends meanwhile, and nothing is left`() async throws {
        let bench = RoomsBench()
        let sender = try await bench.member(.sendonly)
        let viewer = try await bench.member(.recvonly)
        await bench.plane.closeGate()
        let change = Task {
            try await bench.directory.changeSlots(
                of: viewer.id,
                add: [RoomsBench.slot("x", for: sender.id)],
                remove: []
            )
        }
        await bench.plane.waitForArrival()
        await bench.directory.end(viewer.id, reason: .signalingLost)
        await bench.plane.openGate()
        await #expect(throws: RoomError.participantUnknown) { try await change.value }
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a member's signaling gets events of its connection, of others and of its end`() async throws {
        let bench = RoomsBench()
        let first = try await bench.member(.sendrecv)
        let second = try await bench.member(.sendrecv)
        try await bench.directory.perform(.push(json: "{}", to: .participants([first.id])), in: RoomsBench.channel)
        await bench.directory.end(second.id, reason: .left)
        await bench.directory.end(first.id, reason: .disconnectedByOperator)
        var told: [String] = []
        for await event in first.events {
            switch event {
            case .connected: told.append("connected")
            case .subscriptionsChanged: told.append("changed")
            case .unusedLayers: told.append("layers")
            case .push(let text): told.append(text)
            case .data: told.append("data")
            case .ended(let reason): told.append("\(reason)")
            case .notification(let notification):
                switch notification.content {
                case .created(let member, _, _, _, let others):
                    told.append("created \(member.id == first.id ? "first" : "second") \(others?.count ?? -1)")
                case .destroyed: told.append("destroyed")
                default: told.append("other")
                }
            }
        }
        #expect(
            told == [
                "connected", "created first 0", "changed", "created second -1", "{}", "destroyed",
                "disconnectedByOperator",
            ]
        )
        for await event in await bench.directory.events(of: first.id) {
            guard case .ended = event else {
                Issue.record("\(event)")
                return
            }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a reserved participant can be ended, and its activation fails`() async throws {
        let bench = RoomsBench()
        let reservation = try await bench.directory.reserve(JoinRequest(channel: RoomsBench.channel, role: .sendonly))
        let events = await bench.directory.events(of: reservation.participant)
        #expect(await bench.directory.end(reservation.participant, reason: .rejected("ANSWER-TIMEOUT")))
        #expect(await bench.directory.end(reservation.participant, reason: .left) == false)
        await #expect(throws: RoomError.endedDuringSetup) { try await bench.activate(reservation, .sendonly) }
        for await event in events {
            guard case .ended(.rejected("ANSWER-TIMEOUT")) = event else {
                Issue.record("\(event)")
                return
            }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a participant whose signaling reads no events ends when its queue is full`() async throws {
        let ended = Mutex<[ParticipantID: EndReason]>([:])
        let bench = RoomsBench(limits: RoomLimits(eventsWaitingMax: 20)) { notice in
            if case .ended(let id, let reason, _) = notice { ended.withLock { $0[id] = reason } }
        }
        let slow = try await bench.member(.recvonly)
        let quick = try await bench.member(.recvonly)
        var iterator = quick.events.makeAsyncIterator()
        for _ in 0..<20 {
            try await bench.directory.perform(.push(json: "1", to: .all), in: RoomsBench.channel)
            while let event = await iterator.next() {
                if case .push = event { break }
            }
        }
        #expect(ended.withLock { $0 } == [slow.id: .tooSlow])
        #expect(await bench.directory.connection(of: quick.id) != nil)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a participant whose events have no reader does not end for it`() async throws {
        let bench = RoomsBench(limits: RoomLimits(eventsWaitingMax: 5))
        let (session, viewer) = try await bench.join(.recvonly)
        await bench.report(.connected(over: .udp), from: viewer.peer)
        for _ in 0..<20 { try await bench.directory.perform(.push(json: "1", to: .all), in: RoomsBench.channel) }
        #expect(await bench.directory.resource(session) != nil)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `admin requests reach their participants`() async throws {
        let bench = RoomsBench()
        let sender = try await bench.member(.sendonly) { $0.clientID = "one" }
        let viewer = try await bench.member(.recvonly)
        let (directory, name) = (bench.directory, RoomsBench.channel)
        let selections: [(ChannelCommand.Selection, [ParticipantID])] = [
            (.role(.sendonly), [sender.id]), (.user("one"), [sender.id]), (.user("two"), []),
            (.participants([viewer.id]), [viewer.id]), (.all, [sender.id, viewer.id]),
        ]
        for (selection, reached) in selections {
            #expect(try await directory.perform(.push(json: "1", to: selection), in: name).participants == reached)
        }
        let elsewhere = ChannelName("elsewhere")!
        for selection in [ChannelCommand.Selection.all, .participants([viewer.id])] {
            await #expect(throws: RoomError.channelUnknown) {
                try await directory.perform(.push(json: "1", to: selection), in: elsewhere)
            }
        }
        try await directory.perform(.requestKeyFrames(of: sender.id), in: name)
        await directory.settle()
        #expect(await bench.plane.keyFrameRequests == [sender.peer])
        #expect(await directory.connections(in: name).map(\.member.id) == [sender.id, viewer.id])
        #expect(await directory.connections(in: elsewhere).isEmpty)
        await directory.setMode(.blockNewConnections)
        #expect(await directory.mode == .blockNewConnections)
        let session = try #require(await directory.channelSession(of: name)?.id)
        let strange = await directory.joinContext(of: elsewhere).session
        let end = ChannelCommand.end(.all, .sessionTerminated)
        await #expect(throws: RoomError.sessionUnknown) { try await directory.perform(end, in: name, session: strange) }
        #expect(try await directory.perform(end, in: name, session: session).participants == [sender.id, viewer.id])
        await #expect(throws: RoomError.channelUnknown) { try await directory.perform(end, in: name, session: session) }
        await directory.settle()
        await #expect(throws: RoomError.channelUnknown) {
            try await directory.perform(.requestKeyFrames(of: sender.id), in: name)
        }
        await bench.expectNothingLeft()
    }

    @Test func `timestamps are from the rooms' clock`() async throws {
        let second = Mutex<Int64>(100)
        let clock = RoomClock {
            let now = second.withLock { $0 } * 1_000_000_000
            return RoomTime(instant: Instant(nanoseconds: now), unixNanoseconds: now)
        }
        var environment = RoomEnvironment.system
        environment.clock = clock
        let bench = RoomsBench(directory: { [environment] in ChannelDirectory(planes: [$0], environment: environment) })
        let member = try await bench.member(.sendonly) { $0.lifetime = .seconds(30) }
        #expect(await bench.directory.connection(of: member.id)?.connectedAt == 100_000_000_000)
        second.withLock { $0 = 129 }
        await bench.directory.tick()
        #expect(await bench.directory.connection(of: member.id) != nil)
        second.withLock { $0 = 130 }
        await bench.directory.tick()
        #expect(await bench.directory.connection(of: member.id) == nil)
        await bench.expectNothingLeft()
    }

    @Test func `the system's clocks advance`() {
        let (before, after) = (RoomClock.system.now(), RoomClock.system.now())
        #expect(after.instant >= before.instant && before.instant.nanoseconds > 0)
        #expect(before.unixNanoseconds > 1_700_000_000_000_000_000)
    }
}
