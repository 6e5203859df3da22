import MediaTypes
import Room
import RoomTestSupport
import Testing

/// Which media loop relays a call.
@Suite struct CallTURNServersTests {
    private let planes = [MediaLocation].loops(3).map { FakeMediaPlane($0) }
    private let access = TURNAccess(urls: ["turn:192.0.2.1:1"], username: "u", password: "p")

    @Test func `loops take turns, and those that have no relay are passed over`() async throws {
        for plane in planes { await plane.setTURN(access) }
        let relays = MediaPlaneTURNServers(planes)
        var opened: [CallTURN] = []
        for _ in 0..<6 { opened.append(try #require(await relays.open())) }
        #expect(opened.map(\.id.location) == [0, 1, 2, 0, 1, 2])
        #expect(Set(opened.map(\.id)).count == 6)
        await planes[0].setTURN(nil)
        await planes[1].setTURN(nil)
        #expect(await relays.open()?.id.location == 2)
        await planes[2].setTURN(nil)
        #expect(await relays.open() == nil)
        for relay in opened { await relays.close(relay.id, keepsAllocations: relay.id.location == 1) }
        #expect(await planes[0].callRelays.isEmpty)
        #expect(await planes[0].keptCallRelays.isEmpty)
        #expect(await planes[1].keptCallRelays.count == 2)
        #expect(await planes[2].callRelays.count == 1)
    }
}
