import Base
import MediaSamples
import Testing
import Wire

@testable import MediaFormat

struct AccessUnitTests {
    static let sps = VideoConfigurationTests.sps
    static let pps = VideoConfigurationTests.pps
    /// An IDR slice: first_mb_in_slice 0, slice_type 7 (I), pic_parameter_set_id 0: bits 1 0001000 1.
    static let idr: [UInt8] = [0x65, 0x88, 0x84, 0x21]
    /// A slice that is referred to: slice_type 5 (P): bits 1 00110 1.
    static let predicted: [UInt8] = [0x41, 0x9A, 0x21, 0x6C]
    /// A slice of nal_ref_idc 0 and slice_type 6 (B): bits 1 00111 1.
    static let bipredicted: [UInt8] = [0x01, 0x9E, 0x42, 0x6C]

    private func unit(_ units: [[UInt8]], in builder: inout AccessUnitBuilder) throws -> AccessUnit? {
        for bytes in units { try builder.append(unsafe bytes.span.bytes) }
        return builder.finish()
    }

    private func prefixed(_ units: [[UInt8]]) -> [UInt8] {
        units.flatMap { [0, 0, 0, UInt8($0.count)] + $0 }
    }

    @Test func `parameter sets go aside, delimiters and filler go away`() throws {
        var builder = AccessUnitBuilder(codec: .h264)
        let message: [UInt8] = [0x06, 5, 1, 0, 0x80]
        let long = [0x06] + [UInt8](repeating: 1, count: 1_024)
        let filler: [UInt8] = [0x0C, 0xFF, 0x80]
        let units = [[0x09, 0xF0], Self.sps, Self.pps, message, long, filler, Self.idr]
        let key = try #require(try unit(units, in: &builder))
        #expect(key.bytes == prefixed([message, Self.idr]))
        #expect(key.isKey && !key.isDiscardable && !key.hasBSlices)
        #expect(key.configuration?.codecs == "avc1.64001f")
        let delta = try #require(try unit([Self.predicted], in: &builder))
        #expect(!delta.isKey && !delta.isDiscardable && !delta.hasBSlices && delta.configuration == nil)
        let other = try #require(try unit([Self.bipredicted], in: &builder))
        #expect(other.isDiscardable && other.hasBSlices)
        #expect(try unit([[0x09, 0xF0]], in: &builder) == nil)
    }

    @Test func `the configuration comes once, and again when it changed`() throws {
        var builder = AccessUnitBuilder(codec: .h264)
        let key = [Self.sps, Self.pps, Self.idr]
        #expect(try unit(key, in: &builder)?.configuration != nil)
        #expect(try unit(key, in: &builder)?.configuration == nil)
        var changed = Self.pps
        changed[2] = 0xE2
        #expect(try unit([changed, Self.predicted], in: &builder)?.configuration == nil, "not in the middle")
        let record = try #require(try unit([Self.idr], in: &builder)?.configuration)
        guard case .h264(let parsed) = record else {
            Issue.record("not H.264")
            return
        }
        #expect(parsed.pictureParameterSets == [changed])
    }

    @Test func `the container's mark makes an intra picture a key picture`() throws {
        var builder = AccessUnitBuilder(codec: .h264)
        _ = try unit([Self.sps, Self.pps], in: &builder)
        let intra: [UInt8] = [0x41, 0x88, 0x84]
        try builder.append(unsafe intra.span.bytes)
        let finished = builder.finish(isMarkedKey: true)
        let marked = try #require(finished)
        #expect(marked.isKey && marked.configuration != nil)
        try builder.append(unsafe Self.predicted.span.bytes)
        #expect(builder.finish(isMarkedKey: true)?.isKey == false)
    }

    @Test func `byte streams and length prefixes have the same units`() throws {
        let stream: [UInt8] =
            [9, 9, 0, 0, 0, 1] + Self.sps + [0, 0, 1] + Self.pps + [0, 0, 0, 0, 1] + Self.idr + [0, 0]
        var builder = AccessUnitBuilder(codec: .h264)
        try builder.append(annexB: unsafe stream.span.bytes)
        let finished = builder.finish()
        let first = try #require(finished)
        #expect(first.bytes == prefixed([Self.idr]))
        #expect(try makeAnnexB(lengthPrefixed: unsafe first.bytes.span.bytes) == [0, 0, 0, 1] + Self.idr)
        let short: [UInt8] = [0, 4] + Self.idr + [0, 4] + Self.predicted
        try builder.append(lengthPrefixed: unsafe short.span.bytes, lengthBytes: 2)
        #expect(builder.finish()?.bytes == prefixed([Self.idr, Self.predicted]))
    }

    @Test func `units beyond the limit and cut units are refused`() {
        var builder = AccessUnitBuilder(codec: .h264)
        let many = (0..<600).flatMap { _ in [0, 0, 1, 0x09] as [UInt8] }
        #expect(throws: FormatError.limit("NAL units of an access unit")) {
            try builder.append(annexB: unsafe many.span.bytes)
        }
        let cut: [UInt8] = [0, 0, 0, 9, 0x65, 0x88]
        #expect(throws: FormatError.truncated("a NAL unit")) {
            try builder.append(lengthPrefixed: unsafe cut.span.bytes, lengthBytes: 4)
        }
        builder.reset()
        var sets = 0
        for id in 0..<40 {
            // pic_parameter_set_id in nine bits at most: 0…39.
            let code = UInt32(id + 1)
            let width = 2 * (32 - code.leadingZeroBitCount) - 1
            let bits = code << UInt32(16 - width) | 1
            let pps: [UInt8] = [0x68, UInt8(truncatingIfNeeded: bits >> 8), UInt8(truncatingIfNeeded: bits)]
            if (try? builder.append(unsafe pps.span.bytes)) != nil { sets += 1 }
        }
        #expect(sets == 40, "the oldest make room")
        let long: [UInt8] = [0x68, 0x80] + [UInt8](repeating: 0xFF, count: 4_000)
        #expect(throws: Never.self) { for _ in 0..<2 { try builder.append(unsafe long.span.bytes) } }
        #expect(throws: FormatError.limit("bytes of parameter sets")) {
            for number in 2..<7 {
                // pic_parameter_set_id 1 to 5.
                let unit: [UInt8] = [0x68, [0x40, 0x60, 0x20, 0x28, 0x30][number - 2]] + long.dropFirst(2)
                try builder.append(unsafe unit.span.bytes)
            }
        }
        let other: [UInt8] = [0x6F, 0x80, 0x00, 0x00]
        var fresh = ParameterSets()
        #expect(throws: FormatError.invalid("the NAL unit type of a parameter set")) {
            _ = try fresh.store(h264: unsafe other.span.bytes)
        }
    }

    @Test func `the newest parameter sets come first`() throws {
        var sets = ParameterSets()
        let sps = VideoConfigurationTests.sps
        // pic_parameter_set_id 0 and 1.
        let (pps, other): ([UInt8], [UInt8]) = ([0x68, 0xEB, 0xE3, 0xCB], [0x68, 0x5B, 0xE3, 0xCB])
        for unit in [sps, pps, other] { #expect(try sets.store(h264: unsafe unit.span.bytes)) }
        #expect(try !sets.store(h264: unsafe pps.span.bytes), "it is there already")
        guard case .h264(let record)? = sets.configuration(.h264) else {
            Issue.record("no configuration")
            return
        }
        #expect(record.sequenceParameterSets == [sps] && record.pictureParameterSets == [other, pps])
    }

    @Test func `an AV1 unit from RTP gets sizes`() throws {
        let frames = try demux(Fixtures.av1).filter { $0.kind == .video }
        let key = try #require(frames.first)
        // The OBUs without sizes, as RTP has them, with a delimiter before them.
        var obus: [[UInt8]] = [[0x10]]
        var cursor = OBUCursor(unsafe key.bytes.span.bytes)
        while let obu = try cursor.next() {
            obus.append([obu.header.byte(at: 0) & ~0x02] + obu.payload.array())
        }
        #expect(obus.count >= 3)
        let unit = try AV1TemporalUnit(obus)
        #expect(unit.bytes == key.bytes && unit.isKey)
        #expect(unit.configuration?.header?.size == PictureSize(width: 160, height: 90))
        for frame in frames.dropFirst() { #expect(try !AV1TemporalUnit(unsafe frame.bytes.span.bytes).isKey) }
        for count in 1..<key.bytes.count {
            let part = Array(key.bytes.prefix(count))
            _ = try? AV1TemporalUnit(unsafe part.span.bytes)
        }
    }
}
