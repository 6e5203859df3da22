import Base
import Testing

@testable import Access

@Suite struct KeySetScheduleTests {
    private let start = Instant(nanoseconds: 5_000_000_000)

    @Test(
        arguments: [
            (nil, 300), (0, 60), (59, 60), (60, 60), (900, 900), (3_600, 3_600), (3_601, 3_600), (.max, 3_600),
            (.min, 60),
            (-1, 60),
        ] as [(Int?, Int)]
    )
    func `max-age is followed within bounds`(maxAge: Int?, seconds: Int) {
        var schedule = KeySetSchedule(at: start)
        #expect(schedule.nextFetch == start)
        schedule.succeeded(maxAge: maxAge, at: start)
        #expect(schedule.nextFetch == start + .seconds(seconds))
    }

    @Test func `failures are retried after growing waits, and a success ends them`() {
        var schedule = KeySetSchedule(at: start)
        var waits: [Double] = []
        for _ in 0..<7 {
            schedule.failed(at: start)
            waits.append((schedule.nextFetch - start).seconds)
        }
        #expect(waits == [5, 10, 20, 40, 60, 60, 60] && schedule.failures == 7)
        schedule.succeeded(maxAge: nil, at: start)
        #expect(schedule.failures == 0)
        schedule.failed(at: start)
        #expect(schedule.nextFetch == start + .seconds(5))
    }

    @Test func `unknown key IDs cause a fetch in ten seconds at most`() {
        var schedule = KeySetSchedule(at: start)
        #expect(schedule.permitsFetchForUnknownKey(at: start))
        schedule.began(at: start)
        schedule.succeeded(maxAge: 900, at: start)
        #expect(!schedule.permitsFetchForUnknownKey(at: start + .milliseconds(9_999)))
        #expect(schedule.permitsFetchForUnknownKey(at: start + .seconds(10)))
        schedule.began(at: start + .seconds(10))
        schedule.failed(at: start + .seconds(10))
        #expect(!schedule.permitsFetchForUnknownKey(at: start + .seconds(14)))
        #expect(schedule.permitsFetchForUnknownKey(at: start + .seconds(15)))
    }

    @Test(
        arguments: [
            (nil, nil), ("", nil), ("public, max-age=900", 900), ("MAX-AGE=\"60\", must-revalidate", 60),
            ("no-store", 0),
            ("no-cache, max-age=900", 0), ("max-age=900, max-age=5", 900), ("max-age=", nil), ("max-age=x", nil),
            ("max-age=99999999999999999999", nil), ("s-maxage=5", nil), (" , ,=,", nil),
        ] as [(String?, Int?)]
    )
    func `the age of an answer is that of Cache-Control`(header: String?, maxAge: Int?) {
        #expect(FetchedKeySet(body: [], cacheControl: header).maxAge == maxAge)
    }
}
