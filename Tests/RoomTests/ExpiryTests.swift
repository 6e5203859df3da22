import Base
import MediaTypes
import RoomTestSupport
import Testing

@testable import ChannelTypes
@testable import Room

/// The expiry of the token or URL that admitted a participant.
struct ExpiryTests {
    /// Seconds of the monotonic clock. The real-time clock is 1,000 seconds ahead of it.
    private func moment(_ second: Double, clockOffset: Int64 = 1_000) -> RoomTime {
        let nanoseconds = Int64((second * 1_000_000_000).rounded())
        return RoomTime(
            instant: Instant(nanoseconds: nanoseconds),
            unixNanoseconds: nanoseconds + clockOffset * 1_000_000_000
        )
    }

    private func bench(at second: Double = 100) -> ModelBench {
        var bench = ModelBench()
        bench.model.now = moment(second)
        return bench
    }

    @Test(arguments: [(30, 1_270), (60, 1_240)] as [(Int64, Int64)])
    func `a participant is warned once, and ended at the expiry`(warning: Int64, warnedAt: Int64) throws {
        var bench = bench()
        let other = try bench.member(.recvonly)
        let id = try bench.member(.sendrecv) {
            $0.expiry = AccessExpiry(unixSeconds: 1_300, warningSeconds: warning)
        }
        var warnings: [Int64] = []
        var end: (second: Int64, effects: [ChannelModel.Effect])?
        for second in Int64(101)...302 {
            let effects = bench.model.tick(at: moment(Double(second)))
            for case .notify(.accessExpires(let expiry), let ids) in effects {
                #expect(expiry == 1_300 && ids == [id])
                warnings.append(second + 1_000)
            }
            if effects.contains(.ended(id, .tokenExpired)) { end = (second, effects) }
        }
        #expect(warnings == [warnedAt])
        #expect(end?.second == 300)
        #expect(end?.effects.contains(.removePeer(bench.peers[id]!, location: bench.location(id))) == true)
        #expect(bench.model.participants[id] == nil && bench.model.participants[other] != nil)
        _ = bench.model.left(other, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test(arguments: [0.0, 0.001, 0.5, 0.999])
    func `the end is never before the expiry, and at most a second late`(fraction: Double) throws {
        var bench = bench(at: 100 + fraction)
        let id = try bench.member(.sendonly) { $0.expiry = AccessExpiry(unixSeconds: 1_110) }
        var endedAt: Double?
        for step in 0..<200 where endedAt == nil {
            let second = 100 + fraction + Double(step) * 0.1
            if bench.model.tick(at: moment(second)).contains(.ended(id, .tokenExpired)) { endedAt = second }
        }
        let end = try #require(endedAt)
        #expect(end >= 110 - 1e-6 && end < 111.1)
    }

    @Test func `who connects shortly before the expiry is warned at once`() throws {
        var bench = bench()
        let id = try bench.member(.sendonly) { $0.expiry = AccessExpiry(unixSeconds: 1_110) }
        #expect(bench.model.tick(at: moment(100)).notifications.map(\.content) == [.accessExpires(unixSeconds: 1_110)])
        #expect(bench.model.tick(at: moment(109)).isEmpty)
        #expect(bench.model.tick(at: moment(110)).contains(.ended(id, .tokenExpired)))
        #expect(bench.model.isEmpty)
    }

    @Test(arguments: [1_100, 1_099, 0, -1, Int64.min])
    func `who connects after the expiry is ended without a warning`(second: Int64) throws {
        var bench = bench()
        let id = try bench.member(.sendonly) { $0.expiry = AccessExpiry(unixSeconds: second) }
        let effects = bench.model.tick(at: moment(101))
        #expect(effects.contains(.ended(id, .tokenExpired)) && effects.notifications.isEmpty)
        #expect(bench.model.isEmpty)
    }

    @Test(arguments: [Int64.max, 9_999_999_999, Int64.max / 1_000_000_000])
    func `a far expiry overflows nothing`(second: Int64) throws {
        var bench = bench()
        let id = try bench.member(.sendonly) {
            $0.expiry = AccessExpiry(unixSeconds: second, warningSeconds: .max)
        }
        _ = bench.model.tick(at: moment(5_000))
        #expect(bench.model.participants[id] != nil)
        _ = bench.model.left(id, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test func `a clock that is set back delays the end`() throws {
        var bench = bench()
        let id = try bench.member(.sendonly) { $0.expiry = AccessExpiry(unixSeconds: 1_110) }
        _ = bench.model.tick(at: moment(101))
        #expect(!bench.model.tick(at: moment(110, clockOffset: 980)).contains(.ended(id, .tokenExpired)))
        #expect(!bench.model.tick(at: moment(129, clockOffset: 980)).contains(.ended(id, .tokenExpired)))
        #expect(bench.model.tick(at: moment(130, clockOffset: 980)).contains(.ended(id, .tokenExpired)))
    }

    @Test func `the earlier of expiry and lifetime ends the participant`() throws {
        var bench = bench()
        let (first, second) = try (
            bench.member(.sendonly) {
                $0.expiry = AccessExpiry(unixSeconds: 1_200)
                $0.lifetime = .seconds(50)
            },
            bench.member(.sendonly) {
                $0.expiry = AccessExpiry(unixSeconds: 1_150)
                $0.lifetime = .seconds(100)
            }
        )
        let effects = bench.model.tick(at: moment(150))
        #expect(effects.contains(.ended(first, .lifetimeExpired)) && effects.contains(.ended(second, .tokenExpired)))
        #expect(bench.model.isEmpty)
    }
}
