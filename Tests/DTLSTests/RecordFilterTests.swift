import Base
import Testing
import Wire

@testable import DTLS

struct RecordFilterTests {
    private static let overheadBytes = 24

    /// What happens to a protected record of an established connection.
    private func verdict(_ contentType: UInt8, fragmentBytes count: Int, overheadBytes: Int? = overheadBytes) throws
        -> RecordFilter.Verdict
    {
        var datagram: [UInt8] = [contentType, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 7]
        datagram.append(bigEndian: UInt16(count))
        datagram += Array(repeating: 0x5A, count: count)
        let bytes = unsafe datagram.span.bytes
        let header = RecordHeader(bytes, at: 0)
        return RecordFilter.judge(
            try #require(header),
            in: bytes,
            role: .server,
            stage: .established,
            overheadBytes: overheadBytes,
            acceptsData: true
        )
    }

    /// OpenSSL takes a record that is shorter than its cipher's overhead for the end of the connection.
    @Test func `a protected record has the length of what it may have within`() throws {
        for (contentType, data) in [(21, 2...2), (22, 24...24), (23, 1...1_500)] as [(UInt8, ClosedRange<Int>)] {
            for count in [1, 2, 3, 23, 24, 25, 1_499, 1_500, 1_501] {
                let expected: RecordFilter.Verdict = data.contains(count) ? .accept : .drop
                #expect(try verdict(contentType, fragmentBytes: Self.overheadBytes + count) == expected)
            }
            for count in 1...Self.overheadBytes { #expect(try verdict(contentType, fragmentBytes: count) == .drop) }
            #expect(try verdict(contentType, fragmentBytes: 26, overheadBytes: nil) == .drop)
        }
    }
}
