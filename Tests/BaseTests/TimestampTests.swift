import Testing

@testable import Base

@Suite struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000000Z"), (1_735_783_445_678_901_234, "2025-01-02T02:04:05.678901Z"),
            (951_782_399_999_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999Z"),
            (4_107_542_400_000_001_000, "2100-03-01T00:00:00.000001Z"), (-1, "1969-12-31T23:59:59.999999Z"),
            (-1_000_000_000, "1969-12-31T23:59:59.000000Z"), (.min, "1677-09-21T00:12:43.145224Z"),
            (.max, "2262-04-11T23:47:16.854775Z"),
        ] as [(Int64, String)]
    )
    func `times are RFC 3339 with microseconds`(nanoseconds: Int64, text: String) {
        #expect(Timestamp.text(unixNanoseconds: nanoseconds) == text)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_735_783_445_678, "2025-01-02T02:04:05.678Z"),
            (-1, "1969-12-31T23:59:59.999Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] as [(Int64, String)]
    )
    func `times have milliseconds where that is asked for`(milliseconds: Int64, text: String) {
        #expect(Timestamp.text(unixMilliseconds: milliseconds) == text)
        #expect(
            Timestamp.text(unixSeconds: (milliseconds - (milliseconds < 0 ? 999 : 0)) / 1_000) == text.prefix(19) + "Z"
        )
    }

    @Test func `years beyond four digits count as the last one that has them`() {
        #expect(Timestamp.text(unixSeconds: .max) == "9999-12-31T23:59:59Z")
        #expect(Timestamp.text(unixSeconds: .min) == "0000-01-01T00:00:00Z")
        #expect(Timestamp.text(unixMilliseconds: .max).hasPrefix("9999-12-31T23:59:59"))
        #expect(Timestamp.text(unixMilliseconds: .min).hasPrefix("0000-01-01T00:00:00"))
    }
}
