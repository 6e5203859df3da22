import Cluster
import MediaTypes
import Testing

extension StoreCase {
    func attaching(_ store: some TestedStore) async throws {
        let (a, b, room) = (try Given.instance("a", 7), try Given.instance("b", 8), try Given.room("r:é 1"))
        let first = try await store.attach(Attach(room: room, instance: a, session: Given.session("S1")))
        let expected = try RoomEntry(
            session: Given.session("S1"),
            nodes: [a.node: .init(incarnation: a.incarnation, rank: 1)]
        )
        #expect(first == expected)
        let second = try await store.attach(Attach(room: room, instance: b, session: Given.session("S2")))
        #expect(try second.session == Given.session("S1"))
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
        case .anOldIncarnationCannotAttach:
            let old = try await store.attach(
                Attach(room: room, instance: Given.instance("a", 6), session: Given.session("S6"))
            )
            #expect(old.isFenced && old.session == second.session && old.nodes == second.nodes)
        default: break
        }
    }

    func leaving(_ store: some TestedStore) async throws {
        let (a, b, room) = (try Given.instance("a", 7), try Given.instance("b", 8), try Given.room("r"))
        let session = try Given.session("S1")
        for instance in [a, b] {
            _ = try await store.attach(Attach(room: room, instance: instance, session: session))
        }
        switch self {
        case .theLastDetachEndsARoom:
            #expect(try await store.detach(Detach(room: room, instance: a)))
            #expect(try await !store.detach(Detach(room: room, instance: a)))
            let left = try await store.attach(Attach(room: room, instance: b, session: session))
            #expect(Set(left.nodes.keys) == [b.node] && left.session == session)
            #expect(try await store.detach(Detach(room: room, instance: b)))
            let new = try await store.attach(Attach(room: room, instance: a, session: Given.session("S2")))
            #expect(try new.session == Given.session("S2"))
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
