import Cluster
import MediaTypes
import Testing

extension StoreCase {
    func attaching(_ store: some TestedStore) async throws {
        let (a, b, room) = (try Given.instance("a", 7), try Given.instance("b", 8), try Given.room("r:é 1"))
        let first = try await store.attach(Attach(room: room, instance: a, session: Given.session("S1")))
        let expected = try RoomEntry(
            epoch: .first,
            session: Given.session("S1"),
            anchor: a,
            nodes: [a.node: .init(incarnation: a.incarnation, rank: 1)]
        )
        #expect(first == expected)
        let second = try await store.attach(Attach(room: room, instance: b, session: Given.session("S2")))
        #expect(try second.session == Given.session("S1") && second.anchor == a && second.epoch == .first)
        switch self {
        case .ranksFollowTheOrder:
            #expect(second.nodes.mapValues(\.rank) == [a.node: 1, b.node: 2])
            // A node that started again is the last.
            let new = try Given.instance("a", 9)
            let third = try await store.attach(Attach(room: room, instance: new, session: Given.session("S3")))
            #expect(third.nodes.mapValues(\.rank) == [a.node: 3, b.node: 2])
        case .attachingTwiceChangesNothing:
            #expect(try await store.attach(Attach(room: room, instance: b, session: Given.session("S2"))) == second)
            #expect(try await store.attach(Attach(room: room, instance: a, session: Given.session("S2"))) == second)
        case .aHigherEpochWins:
            var known = try Attach(room: room, instance: b, epoch: Given.epoch(5), session: Given.session("S5"))
            known.anchor = b
            let third = try await store.attach(known)
            #expect(try third.epoch == Given.epoch(5) && third.session == Given.session("S5") && third.anchor == b)
            #expect(third.nodes == second.nodes)
            known.epoch = try Given.epoch(4)
            known.session = try Given.session("S4")
            known.anchor = a
            #expect(try await store.attach(known) == third)
        case .anOldIncarnationCannotAttach:
            let old = try await store.attach(
                Attach(
                    room: room,
                    instance: Given.instance("a", 6),
                    epoch: Given.epoch(9),
                    session: Given.session("S6")
                )
            )
            #expect(old.isFenced && old.epoch == .first && old.nodes == second.nodes)
        default: break
        }
    }

    func claiming(_ store: some TestedStore) async throws {
        let (a, b, c) = (try Given.instance("a", 7), try Given.instance("b", 8), try Given.instance("c", 9))
        let (room, session) = (try Given.room("r"), try Given.session("S1"))
        for instance in [a, b, c] {
            _ = try await store.attach(Attach(room: room, instance: instance, session: session))
        }
        if self == .aClaimAfterAWipeHolds { try await store.wipe() }
        func claim(_ instance: NodeInstance, _ epoch: Int64) throws -> Claim {
            try Claim(room: room, instance: instance, epoch: Given.epoch(epoch), anchor: a, session: session)
        }
        let won = try await store.claim(claim(b, 1))
        #expect(try won.anchor == b && won.epoch == Given.epoch(2) && won.session == session)
        #expect(try claim(b, 1).isWon(won))
        switch self {
        case .oneOfTwoClaimsWins:
            let lost = try await store.claim(claim(c, 1))
            #expect(try lost == won && !claim(c, 1).isWon(lost))
            // What the claim replaces has to be right, unless the store knows less.
            #expect(try await store.claim(claim(c, 2)) == won)
            #expect(try await store.claim(claim(c, 7)).epoch == Given.epoch(8))
        case .aClaimRepeatsWithoutEffect:
            let again = try await store.claim(claim(b, 1))
            #expect(try again == won && claim(b, 1).isWon(again))
        case .aClaimAfterAWipeHolds:
            #expect(won.nodes.mapValues(\.rank) == [b.node: 1])
            let back = try await store.attach(Attach(room: room, instance: a, epoch: .first, session: session))
            #expect(try back.anchor == b && back.epoch == Given.epoch(2))
        default: break
        }
    }

    func leaving(_ store: some TestedStore) async throws {
        let (a, b, room) = (try Given.instance("a", 7), try Given.instance("b", 8), try Given.room("r"))
        let session = try Given.session("S1")
        for instance in [a, b] {
            _ = try await store.attach(Attach(room: room, instance: instance, epoch: Given.epoch(3), session: session))
        }
        switch self {
        case .theLastDetachEndsARoom:
            #expect(try await store.detach(Detach(room: room, instance: a)))
            #expect(try await !store.detach(Detach(room: room, instance: a)))
            let left = try await store.attach(Attach(room: room, instance: b, session: session))
            #expect(try Set(left.nodes.keys) == [b.node] && left.epoch == Given.epoch(3))
            #expect(try await store.detach(Detach(room: room, instance: b)))
            let new = try await store.attach(Attach(room: room, instance: a, session: Given.session("S2")))
            #expect(try new.epoch == .first && new.session == Given.session("S2"))
        case .aLateDetachIsIgnored:
            #expect(try await !store.detach(Detach(room: room, instance: Given.instance("a", 6))))
            #expect(try await store.detach(Detach(room: room, instance: Given.instance("a", 9))))
            #expect(try await !store.detach(Detach(room: Given.room("other"), instance: a)))
        case .aSweepRemovesTheGone:
            let names = try (0..<200).map { try Given.room("room-\($0)") }
            for name in names {
                _ = try await store.attach(Attach(room: name, instance: a, session: session))
                _ = try await store.attach(Attach(room: name, instance: b, session: session))
            }
            let sweep = Sweep(rooms: names + [try Given.room("none")], gone: [a.node: a.incarnation])
            #expect(try await store.sweep(sweep) == 200)
            #expect(try await store.sweep(sweep) == 0)
            let old = Sweep(rooms: names, gone: [b.node: a.incarnation])
            #expect(try await store.sweep(old) == 0)
            let left = try await store.attach(Attach(room: names[0], instance: b, session: session))
            #expect(Set(left.nodes.keys) == [b.node])
        default: break
        }
    }
}
