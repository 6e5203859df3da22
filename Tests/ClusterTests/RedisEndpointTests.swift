import Base
import Cluster
import Testing

@Suite struct RedisEndpointTests {
    @Test(arguments: [
        ("redis://store", "redis://store:6379"),
        ("redis://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
        ("rediss://[2001:db8::1]:7000", "rediss://[2001:db8::1]:7000"),
        ("redis://:secret@store", "redis://:…@store:6379"),
        ("REDIS://user:p%40s:s@store/", "redis://user:…@store:6379"),
        ("redis+sentinel://a,b:7000/main", "redis+sentinel://a:26379,b:7000/main"),
        ("rediss+sentinel://:x@a/main/1", "rediss+sentinel://:…@a:26379/main/1"),
    ])
    func `a URL is read`(text: String, description: String) throws {
        #expect(try RedisEndpoint(text).description == description)
    }

    @Test(arguments: [
        "", "store:6379", "http://store", "redis://", "redis://:6379", "redis://store:0", "redis://store:65536",
        "redis://store:x", "redis://a,b", "redis://store/x", "redis://store/-1", "redis://store/1/2",
        "redis://user@store", "redis://user:@store",
        "redis://user:%zz@store", "redis://[::1", "redis://[::1]x", "redis+sentinel://a",
        "redis+sentinel://a,/main", "redis+sentinel://a/main/x",
    ])
    func `what is no URL of a store is refused`(text: String) {
        #expect(throws: RedisEndpointError.self) { try RedisEndpoint(text) }
    }

    @Test func `no description shows the password`() throws {
        let endpoint = try RedisEndpoint("redis://user:hunter2@store")
        var dumped = ""
        dump(endpoint, to: &dumped)
        for text in ["\(endpoint)", String(reflecting: endpoint), dumped] { #expect(!text.contains("hunter2")) }
        #expect(throws: RedisEndpointError.self) { try RedisEndpoint("redis://user:hunter2@store:x") }
        do { _ = try RedisEndpoint("redis://user:hunter2@store:x") } catch { #expect(!"\(error)".contains("hunter2")) }
    }
}

@Suite struct StoreHealthTests {
    private static func downHealth() -> StoreHealth {
        var health = StoreHealth()
        for _ in 0..<3 { _ = health.failed() }
        return health
    }

    @Test func `three failures in a row take the store out`() {
        var health = StoreHealth()
        #expect(health.failed() == nil && health.failed() == nil)
        #expect(health.succeeded(isHeartbeat: false, after: .milliseconds(1)) == nil)
        #expect(health.failed() == nil && health.failed() == nil && health.isUp)
        #expect(health.failed() == .wentDown && !health.isUp && health.failed() == nil)
    }

    @Test func `a store that is down gets one heartbeat a second`() {
        var health = Self.downHealth()
        var now = Instant(nanoseconds: 0)
        let isAdmitted = health.admits(isHeartbeat: false, random: 0.5, at: now)
        #expect(!isAdmitted)
        var sent: [Int] = []
        for _ in 0..<400 {
            if health.admits(isHeartbeat: true, random: sent.count.isMultiple(of: 2) ? 0 : 0.999, at: now) {
                sent.append(Int(now.nanoseconds / 1_000_000))
            }
            now += .milliseconds(10)
        }
        #expect(sent == [0, 700, 2_000, 2_700])
    }

    @Test func `a fast heartbeat brings the store back, a slow one needs five more`() {
        var health = Self.downHealth()
        #expect(health.succeeded(isHeartbeat: false, after: .milliseconds(1)) == nil)
        #expect(health.succeeded(isHeartbeat: true, after: .milliseconds(1)) == .cameUp)
        let isAdmitted = health.admits(isHeartbeat: false, random: 0, at: Instant(nanoseconds: 0))
        #expect(isAdmitted)
        health = Self.downHealth()
        #expect(health.succeeded(isHeartbeat: true, after: .milliseconds(500)) == nil)
        for _ in 0..<4 { #expect(health.succeeded(isHeartbeat: true, after: .milliseconds(50)) == nil) }
        #expect(health.succeeded(isHeartbeat: true, after: .milliseconds(50)) == .cameUp)
    }
}
