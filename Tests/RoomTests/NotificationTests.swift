import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// Which members are notified of which events.
struct NotificationTests {
    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: second * 1_000_000_000 + 7)
    }

    @Test func `a newcomer is notified of present members, and they of it, once it is connected`() throws {
        var bench = ModelBench()
        bench.model.now = moment(50)
        let first = try bench.member(.sendrecv) { $0.clientID = "one" }
        let second = try bench.reserve(.recvonly, following: .everyone)
        #expect(try bench.model.setupCompleted(second, publications: [], slots: []).notifications.isEmpty)
        let effects = bench.model.received(.connected(over: .udp), from: bench.peers[second]!)
        let session = try #require(bench.model.session(of: ModelBench.channel)?.id)
        let old = Member(
            id: first,
            clientID: "one",
            bundleID: first.value,
            role: .sendrecv,
            sendsAudio: true,
            sendsVideo: true
        )
        let new = Member(
            id: second,
            clientID: second.value,
            bundleID: second.value,
            role: .recvonly,
            sendsAudio: false,
            sendsVideo: false
        )
        let counts = ChannelCounts(sendrecv: 1, recvonly: 1)
        let created = { (others: [Member]?) in
            Notification.Content.created(new, minutes: 0, session: session, counts: counts, others: others)
        }
        let expected: [ChannelModel.Effect] = [
            .connected(second), .notify(created([old]), to: [second]), .notify(created(nil), to: [first]),
        ]
        #expect(effects.filter { if case .report = $0 { false } else { true } } == expected)
        #expect(bench.model.received(.connected(over: .udp), from: bench.peers[second]!) == [], "once")
        let end = bench.model.left(second, reason: .left)
        let destroyed = Notification.Content.destroyed(
            new,
            minutes: 0,
            session: session,
            counts: ChannelCounts(sendrecv: 1)
        )
        #expect(end.notifications.map(\.content) == [destroyed])
        #expect(end.notifications.map(\.to) == [[first]])
    }

    @Test func `a member is announced with what it is connected over, and leaves with what it is over then`() throws {
        var bench = ModelBench()
        let id = try bench.reserve(.recvonly)
        _ = try bench.model.setupCompleted(id, publications: [], slots: [])
        let effects = bench.model.received(.connected(over: .tcp), from: bench.peers[id]!)
        guard case .connectionCreated(let created)? = effects.reports.last else {
            Issue.record("\(effects.reports)")
            return
        }
        #expect(created.connection.member.transport == .tcp)
        #expect(bench.model.received(.transportChanged(.udp), from: bench.peers[id]!) == [], "nobody is told at once")
        guard case .connectionDestroyed(let destroyed, .left)? = bench.model.left(id, reason: .left).reports.first
        else {
            Issue.record("it was connected")
            return
        }
        #expect(destroyed.connection.member.transport == .udp)
    }

    @Test func `streams change before the notification of their sender`() throws {
        var bench = ModelBench()
        let viewer = try bench.member(.recvonly)
        let (sender, effects) = try bench.join(.sendonly)
        let change = try #require(effects.firstIndex(of: .streamsChanged(viewer)))
        let news = try #require(effects.lastIndex { if case .notify = $0 { true } else { false } })
        #expect(change < news)
        let end = bench.model.left(sender, reason: .left)
        let changeAtEnd = try #require(end.firstIndex(of: .streamsChanged(viewer)))
        let newsAtEnd = try #require(end.firstIndex { if case .notify = $0 { true } else { false } })
        #expect(changeAtEnd < newsAtEnd)
    }

    @Test func `a member without announcement is announced to itself only, one without notifications gets none`() throws
    {
        var bench = ModelBench()
        let deaf = try bench.member(.recvonly) { $0.receivesNotifications = false }
        let first = try bench.member(.recvonly)
        let (hidden, effects) = try bench.join(.recvonly) { $0.announces = false }
        #expect(effects.notifications.map(\.to) == [[hidden]])
        let (_, later) = try bench.join(.recvonly)
        guard case .created(_, _, _, let counts, let others?) = later.notifications.first?.content else {
            Issue.record("\(later)")
            return
        }
        #expect(others.map(\.id) == [deaf, first])
        #expect(counts.connections == 4, "it counts all the same")
        #expect(bench.model.left(hidden, reason: .left).notifications.isEmpty)
        #expect(bench.model.left(deaf, reason: .left).notifications.count == 1)
    }

    @Test func `only the member itself is notified of its network, unless it gets no notifications`() throws {
        var bench = ModelBench()
        _ = try bench.member(.sendrecv)
        let deaf = try bench.member(.recvonly) { $0.receivesNotifications = false }
        let id = try bench.member(.recvonly)
        let early = try bench.reserve(JoinRequest(channel: ModelBench.channel, role: .recvonly, following: .everyone))
        let news = { (id: ParticipantID, level: Int) in
            bench.model.received(.networkChanged(level: level), from: bench.peers[id]!)
        }
        #expect(news(id, 2) == [.notify(.networkStatus(unstableLevel: 2), to: [id])])
        #expect(news(id, 0) == [.notify(.networkStatus(unstableLevel: 0), to: [id])])
        #expect(news(deaf, 3).isEmpty && news(early, 3).isEmpty)
    }

    @Test func `a receiver is notified of a codec that it cannot decode, with the sender`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv)
        let id = try bench.member(.recvonly)
        let deaf = try bench.member(.recvonly) { $0.receivesNotifications = false }
        let mid = try bench.see(sender, by: id).video.mid
        _ = try bench.see(sender, by: deaf)
        let news = { (id: ParticipantID, mid: MID) in
            bench.model.received(.formatUnsupported(slot: mid, codec: .h265), from: bench.peers[id]!)
        }
        #expect(news(id, mid) == [.notify(.codecUnsupported(.h265, source: sender, destination: id), to: [id])])
        #expect(news(deaf, mid).isEmpty && news(id, MID("unknown")!).isEmpty)
    }

    @Test func `a newcomer is notified of codecs that its first answer refused, once it is connected`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv)
        let gone = try bench.member(.sendrecv)
        let id = try bench.reserve(JoinRequest(channel: ModelBench.channel, role: .recvonly, following: .everyone))
        let refused: [(sender: ParticipantID, codec: CodecName)] = [(sender, .av1), (gone, .h265)]
        #expect(bench.model.codecsRefused(by: id, refused).isEmpty)
        _ = bench.model.left(gone, reason: .left)
        _ = try bench.model.setupCompleted(id, publications: [], slots: [])
        let told = { (effects: [ChannelModel.Effect]) in
            effects.notifications.filter { if case .codecUnsupported = $0.content { true } else { false } }
        }
        let first = told(bench.model.received(.connected(over: .udp), from: bench.peers[id]!))
        #expect(first.map(\.content) == [.codecUnsupported(.av1, source: sender, destination: id)])
        #expect(first.map(\.to) == [[id]])
        let later = told(bench.model.codecsRefused(by: id, [(sender, .vp9), (gone, .vp9)]))
        #expect(later.map(\.content) == [.codecUnsupported(.vp9, source: sender, destination: id)])
    }

    @Test func `the ICE state is notified first, even without other notifications`() throws {
        var bench = ModelBench()
        let up = Notification.Content.iceStateChanged(current: .connected, previous: .checking)
        for receivesNotifications in [true, false] {
            let (id, effects) = try bench.join(.sendrecv) {
                $0.notifiesICEState = true
                $0.receivesNotifications = receivesNotifications
            }
            let own = effects.notifications.filter { $0.to == [id] }
            #expect(own.first?.content == up && own.count == (receivesNotifications ? 2 : 1))
            #expect(effects.notifications.count { $0.content == up } == 1)
        }
        let (_, effects) = try bench.join(.sendrecv)
        #expect(!effects.notifications.contains { $0.content == up })
    }

    @Test func `announced audio and video override what is published`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly) { ($0.sendsAudio, $0.sendsVideo) = (false, true) }
        let viewer = try bench.member(.recvonly) { $0.sendsAudio = true }
        let members = bench.model.connections(in: ModelBench.channel).map(\.member)
        #expect(members.map(\.id) == [sender, viewer])
        #expect(members.map(\.sendsAudio) == [false, true])
        #expect(members.map(\.sendsVideo) == [true, false])
    }

    // MARK: - Reports

    @Test func `a session's reports come in their order, from its first member to its last`() throws {
        var bench = ModelBench()
        bench.model.now = moment(100)
        let (id, effects) = try bench.join(.sendonly) { $0.eventMetadataJSON = "1" }
        bench.model.now = moment(225)
        let all = effects + bench.model.left(id, reason: .disconnectedByOperator)
        guard
            case .sessionCreated(let session, 100_000_000_007)? = all.reports.first,
            case .connectionCreated(let created)? = all.reports.dropFirst().first,
            case .connectionDestroyed(let destroyed, .disconnectedByOperator)? = all.reports.dropFirst(2).first,
            case .sessionDestroyed(session, 225_000_000_007)? = all.reports.dropFirst(3).first, all.reports.count == 4
        else {
            Issue.record("\(all.reports)")
            return
        }
        #expect(created.minutes == 0 && created.counts.sendonly == 1 && created.connection.session == session.id)
        #expect(created.connection.eventMetadataJSON == "1" && created.connection.isSimulcast)
        #expect(created.connection.setupTime == .zero)
        #expect(destroyed.minutes == 2 && destroyed.counts.connections == 0)
        #expect(destroyed.unixNanoseconds == 225_000_000_007)
        #expect(destroyed.connection.connectedAt == 100_000_000_007)
        let (_, again) = try bench.join(.sendonly)
        guard case .sessionCreated(let next, _)? = again.reports.first else {
            Issue.record("\(again.reports)")
            return
        }
        #expect(next.id != session.id)
    }

    @Test func `a participant that never connects fails, and does not announce a session`() throws {
        var bench = ModelBench()
        let id = try bench.reserve(.sendonly)
        _ = try bench.activate(id)
        #expect(bench.model.session(of: ModelBench.channel) != nil, "it has one to tell its client")
        let reports = bench.model.left(id, reason: .transport(.setupTimedOut)).reports
        guard case .connectionFailed(let report, .transport(.setupTimedOut))? = reports.first, reports.count == 1 else {
            Issue.record("\(reports)")
            return
        }
        #expect(!report.connection.isConnected && report.duration == .zero)
        #expect(bench.model.isEmpty)
    }

    // MARK: - Time

    @Test func `every minute of a connection is notified`() throws {
        var bench = ModelBench()
        bench.model.now = moment(100)
        let first = try bench.member(.recvonly)
        bench.model.now = moment(130)
        let second = try bench.member(.recvonly)
        #expect(bench.model.tick(at: moment(159)) == [])
        let updates = bench.model.tick(at: moment(160))
        guard case .updated(let member, minutes: 1, _, _)? = updates.notifications.first?.content else {
            Issue.record("\(updates)")
            return
        }
        #expect(member.id == first && updates.notifications.first?.to == [first, second])
        #expect(updates.reports.count == 1)
        #expect(bench.model.tick(at: moment(160)) == [])
        #expect(bench.model.tick(at: moment(190)).notifications.count == 1)
        #expect(bench.model.tick(at: moment(1_000)).notifications.count == 2, "after a gap once, not many times")
        #expect(bench.model.tick(at: moment(1_059)).notifications.isEmpty)
        #expect(bench.model.tick(at: moment(1_060)).notifications.count == 2)
    }

    @Test func `in a large channel updates of every minute go to the member itself only`() throws {
        var bench = ModelBench()
        bench.model.now = moment(100)
        for _ in 0...ChannelModel.updatesSharedMembersMax { _ = try bench.member(.recvonly) }
        let effects = bench.model.tick(at: moment(160))
        #expect(effects.notifications.count == 101 && effects.notifications.allSatisfy { $0.to.count == 1 })
    }

    @Test func `a lifetime starts with the connection and ends the participant`() throws {
        var bench = ModelBench()
        bench.model.now = moment(100)
        var request = JoinRequest(channel: ModelBench.channel, role: .sendonly, lifetime: .seconds(10))
        let id = try bench.reserve(request)
        _ = try bench.activate(id)
        bench.model.now = moment(200)
        _ = bench.receive(.connected(over: .udp), from: id)
        #expect(bench.model.tick(at: moment(209)) == [])
        #expect(bench.model.tick(at: moment(210)).contains(.ended(id, .lifetimeExpired)))
        for lifetime in [Duration.zero, .seconds(-5), .seconds(Int64.max)] {
            request.lifetime = lifetime
            let id = try bench.reserve(request)
            _ = try bench.activate(id)
            _ = bench.receive(.connected(over: .udp), from: id)
            _ = bench.model.left(id, reason: .left)
        }
        #expect(bench.model.isEmpty)
    }

    // MARK: - Ends

    @Test func `operators end a channel, a role or a client`() throws {
        var bench = ModelBench()
        let first = try bench.member(.sendonly) { $0.clientID = "one" }
        let second = try bench.member(.recvonly) { $0.clientID = "one" }
        let third = try bench.member(.recvonly) { $0.clientID = "two" }
        let elsewhere = try bench.member(.recvonly, in: ChannelName("elsewhere")!)
        let name = ModelBench.channel
        #expect(bench.model.members(of: name) == [first, second, third])
        #expect(bench.model.members(of: name, role: .recvonly, clientID: "one") == [second])
        #expect(bench.model.end(in: name, role: .recvonly, reason: .disconnectedByOperator).ended == [second, third])
        #expect(bench.model.end(in: name, clientID: "two", reason: .disconnectedByOperator).ended == [])
        #expect(bench.model.end(in: name, clientID: "one", reason: .disconnectedByOperator).ended == [first])
        #expect(bench.model.connections(in: nil).map(\.member.id) == [elsewhere])
    }

    @Test func `bulk removal notifies the others, and not the removed members of each other`() throws {
        var bench = ModelBench()
        var senders: [ParticipantID] = []
        for _ in 0..<5 { senders.append(try bench.member(.sendrecv)) }
        let whep = try bench.viewer()
        let watcher = try bench.member(.recvonly)
        for viewer in senders + [watcher] {
            for sender in senders where sender != viewer { _ = try bench.see(sender, by: viewer) }
        }
        #expect(bench.sources(of: whep) == [senders[4], senders[4]])
        let effects = bench.model.end(in: ModelBench.channel, role: .sendrecv, reason: .sessionTerminated).effects
        #expect(effects.streamsChanged == Array(repeating: watcher, count: 5))
        #expect(effects.notifications.allSatisfy { $0.to == [watcher] } && effects.notifications.count == 5)
        #expect(bench.sources(of: whep) == [nil, nil])
        #expect(
            effects.connects.allSatisfy { effect in
                if case .connect(let slot, _, _, _) = effect {
                    [bench.peers[whep], bench.peers[watcher]].contains(slot.peer)
                } else {
                    false
                }
            }
        )
        #expect(bench.model.shutdownRequested().notifications.isEmpty)
        #expect(bench.model.isEmpty)
    }

    // MARK: - Admission

    @Test func `a node refuses newcomers, or new sessions, by its mode`() throws {
        var bench = ModelBench()
        _ = try bench.member(.sendonly)
        let other = ChannelName("other")!
        try bench.model.listenerArrived(ListenerID(rawValue: 1), at: other)
        bench.model.mode = .blockNewSessions
        #expect(throws: RoomError.sessionsBlocked) { try bench.member(.recvonly, in: other) }
        _ = try bench.member(.recvonly)
        bench.model.mode = .blockNewConnections
        #expect(throws: RoomError.connectionsBlocked) { try bench.member(.recvonly) }
        bench.model.mode = .normal
        _ = try bench.member(.recvonly, in: other)
    }

    @Test func `a newcomer's own limit of members is checked`() throws {
        var bench = ModelBench()
        for _ in 0..<2 { _ = try bench.member(.recvonly) { $0.channelConnectionsMax = 2 } }
        #expect(throws: RoomError.channelFull) { try bench.member(.recvonly) { $0.channelConnectionsMax = 2 } }
        _ = try bench.member(.recvonly)
    }
}

struct ParticipantListTests {
    @Test(arguments: 0..<5)
    func `a participant list is a sorted set, and a deadline wheel returns each deadline once`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let ids = (0..<40).map { _ in ParticipantID(using: &generator) }
        var list = ParticipantList()
        var wheel = DeadlineWheel()
        var members: Set<Int> = []
        var seconds: [Int: Int64] = [:]
        _ = wheel.due(through: -1)
        var now: Int64 = 0
        for _ in 0..<2_000 {
            let index = Int.random(in: 0..<40, using: &generator)
            if Bool.random(using: &generator) {
                list.insert(ids[index], order: UInt64(index))
                members.insert(index)
            } else {
                list.remove(order: UInt64(index))
                members.remove(index)
            }
            #expect(Array(list) == members.sorted().map { ids[$0] })
            if let second = seconds.removeValue(forKey: index) { wheel.cancel(order: UInt64(index), at: second) }
            let requested = now + Int64.random(in: -3..<90, using: &generator)
            let second = wheel.insert(ids[index], order: UInt64(index), at: requested)
            #expect(second == max(requested, now))
            seconds[index] = second
            if Int.random(in: 0..<4, using: &generator) == 0 {
                let through = now + Int64.random(in: 0..<100, using: &generator)
                let due = seconds.filter { $0.value <= through }
                let expected = due.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map { ids[$0.key] }
                #expect(wheel.due(through: through) == expected)
                for key in due.keys { seconds[key] = nil }
                now = through + 1
            }
            #expect(wheel.isEmpty == seconds.isEmpty)
        }
    }
}
