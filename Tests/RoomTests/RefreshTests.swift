import Base
import MediaTypes
import Room
import RoomTestSupport
import TestSupport
import Testing

@testable import ChannelTypes

/// New tokens and URLs of participants that stay.
struct RefreshTests {
    /// Seconds of the monotonic clock. The real-time clock is 1,000 seconds ahead of it.
    private func moment(_ second: Int64) -> RoomTime {
        let nanoseconds = second * 1_000_000_000
        return RoomTime(
            instant: Instant(nanoseconds: nanoseconds),
            unixNanoseconds: nanoseconds + 1_000 * 1_000_000_000
        )
    }

    private func bench(at second: Int64 = 100) -> ModelBench {
        var bench = ModelBench()
        bench.model.now = moment(second)
        return bench
    }

    /// The seconds of warnings and of the end, until `last`.
    private func run(_ bench: inout ModelBench, _ id: ParticipantID, through last: Int64) -> (
        warnings: [Int64], end: Int64?
    ) {
        var warnings: [Int64] = []
        for second in (bench.model.now.second + 1)...last {
            let effects = bench.model.tick(at: moment(second))
            for case .notify(.accessExpires, let ids) in effects where ids == [id] { warnings.append(second) }
            if effects.contains(.ended(id, .tokenExpired)) { return (warnings, second) }
        }
        return (warnings, nil)
    }

    @Test(
        arguments: [
            // Refreshed before the warning, after it, and in the last second before the end.
            (at: 150, warnings: [470], end: 500), (at: 280, warnings: [470], end: 500),
            (at: 299, warnings: [470], end: 500),
        ] as [(at: Int64, warnings: [Int64], end: Int64)]
    )
    func `a refresh moves the end, and the warning comes again`(at: Int64, warnings: [Int64], end: Int64) throws {
        var bench = bench()
        let id = try bench.member(.sendrecv) { $0.expiry = AccessExpiry(unixSeconds: 1_300) }
        let before = run(&bench, id, through: at)
        #expect(before.end == nil && before.warnings == (at >= 270 ? [270] : []))
        try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: 1_500))
        #expect(bench.model.trace.last == [], "its media and its subscriptions stay as they are")
        let after = run(&bench, id, through: 600)
        #expect(after.warnings == warnings && after.end == end)
        #expect(bench.model.isEmpty)
    }

    @Test func `a refresh to an expiry within the time of the warning warns at once`() throws {
        var bench = bench()
        let id = try bench.member(.sendrecv) { $0.expiry = AccessExpiry(unixSeconds: 1_110) }
        try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: 1_120, warningSeconds: 60))
        let after = run(&bench, id, through: 130)
        #expect(after.warnings == [101] && after.end == 120)
    }

    @Test func `a refresh to a permission without an end removes the deadline`() throws {
        var bench = bench()
        let id = try bench.member(.sendrecv) { $0.expiry = AccessExpiry(unixSeconds: 1_110) }
        try bench.model.accessRefreshed(of: id, until: nil)
        let after = run(&bench, id, through: 2_000)
        #expect(after.warnings.isEmpty && after.end == nil)
        _ = bench.model.left(id, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test(arguments: [1_300, 1_299, 0, Int64.min])
    func `an expiry that is not later is refused, and the present one stays`(second: Int64) throws {
        var bench = bench()
        let id = try bench.member(.sendrecv) { $0.expiry = AccessExpiry(unixSeconds: 1_300) }
        #expect(throws: RoomError.expiryNotLater) {
            try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: second))
        }
        let after = run(&bench, id, through: 400)
        #expect(after.warnings == [270] && after.end == 300)
    }

    @Test func `a permission without an end has nothing to refresh`() throws {
        var bench = bench()
        let id = try bench.member(.sendrecv)
        #expect(throws: RoomError.expiryNotLater) {
            try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: 9_999))
        }
        #expect(throws: RoomError.expiryNotLater) { try bench.model.accessRefreshed(of: id, until: nil) }
    }

    @Test func `one that is not connected yet is refreshed too`() throws {
        var bench = bench()
        var request = JoinRequest(channel: ModelBench.channel, role: .sendonly)
        request.expiry = AccessExpiry(unixSeconds: 1_101)
        let id = try bench.reserve(request)
        _ = try bench.activate(id)
        try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: 1_200))
        _ = bench.receive(.connected(over: .udp), from: id)
        let after = run(&bench, id, through: 300)
        #expect(after.warnings == [170] && after.end == 200)
        #expect(throws: RoomError.participantUnknown) { try bench.model.accessRefreshed(of: id, until: nil) }
        #expect(bench.model.isEmpty)
    }

    @Test(arguments: 0..<20)
    func `whatever the refreshes, a member ends at its last expiry with one warning for each`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bench = bench()
        var expiry = Int64.random(in: 1_101...1_200, using: &random)
        let id = try bench.member(.sendrecv) { $0.expiry = AccessExpiry(unixSeconds: expiry) }
        var warned: Int64?
        var ended: Int64?
        for second in Int64(101)...6_000 where ended == nil {
            let effects = bench.model.tick(at: moment(second))
            for case .notify(.accessExpires(let announced), _) in effects {
                #expect(announced == expiry && warned != expiry && second + 1_000 >= expiry - 30)
                warned = expiry
            }
            if effects.contains(.ended(id, .tokenExpired)) { ended = second }
            guard ended == nil, Int.random(in: 0..<20, using: &random) == 0, second < 600 else { continue }
            let next = expiry + Int64.random(in: -20...100, using: &random)
            if next > expiry {
                try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: next))
                expiry = next
            } else {
                #expect(throws: RoomError.expiryNotLater) {
                    try bench.model.accessRefreshed(of: id, until: AccessExpiry(unixSeconds: next))
                }
            }
        }
        #expect(ended.map { $0 + 1_000 } == expiry && warned == expiry)
        #expect(bench.model.isEmpty)
    }
}
