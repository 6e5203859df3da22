import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

struct AACConfigurationTests {
    @Test(
        arguments: [
            ("AAC-LC 44.1 kHz stereo", [0x12, 0x10], 44_100, 2, "mp4a.40.2"),
            ("AAC-LC 48 kHz stereo", [0x11, 0x90], 48_000, 2, "mp4a.40.2"),
            ("AAC-LC 96 kHz stereo", [0x10, 0x10], 96_000, 2, "mp4a.40.2"),
            ("AAC-LC 7.1", [0x11, 0xB8], 48_000, 8, "mp4a.40.2"),
            ("a rate in 24 bits", [0x17, 0x80, 0x49, 0xD4, 0x10], 37_800, 2, "mp4a.40.2"),
            ("HE-AAC, explicit", [0x2B, 0x92, 0x08, 0x00], 44_100, 2, "mp4a.40.5"),
            ("HE-AAC v2, explicit", [0xEB, 0x8A, 0x08, 0x00], 44_100, 2, "mp4a.40.29"),
            ("HE-AAC, behind the configuration", [0x13, 0x90, 0x56, 0xE5, 0xA0], 44_100, 2, "mp4a.40.2"),
            ("HE-AAC v2, behind", [0x13, 0x88, 0x56, 0xE5, 0xA5, 0x48, 0x80], 44_100, 2, "mp4a.40.2"),
            ("an extension that is cut", [0x13, 0x90, 0x56, 0xE5], 22_050, 2, "mp4a.40.2"),
        ] as [(String, [UInt8], Int, Int, String)]
    )
    func `rates, channels and codecs are read`(
        name: String,
        bytes: [UInt8],
        rate: Int,
        channels: Int,
        codecs: String
    ) throws {
        let record = try AACConfiguration(unsafe bytes.span.bytes)
        #expect(record.outputSampleRate == rate)
        #expect(record.outputChannels == channels)
        #expect(record.codecs == codecs)
        #expect(record.encoded == bytes)
    }

    @Test(arguments: [[0x12], [], [0x17, 0x80], [0xF8, 0xE0, 0x00], [0x12, 0x00], [0x16, 0x90]] as [[UInt8]])
    func `a configuration that is cut or unknown is refused`(bytes: [UInt8]) {
        #expect(throws: FormatError.self) { _ = try AACConfiguration(unsafe bytes.span.bytes) }
    }

    @Test func `AAC-LC is written`() throws {
        #expect(try AACConfiguration(sampleRate: 44_100, channels: 2).encoded == [0x12, 0x10])
        #expect(try AACConfiguration(sampleRate: 37_800, channels: 2).encoded == [0x17, 0x80, 0x49, 0xD4, 0x10])
        #expect(throws: FormatError.self) { _ = try AACConfiguration(sampleRate: 48_000, channels: 9) }
    }
}

struct OpusConfigurationTests {
    static let head: [UInt8] = Array("OpusHead".utf8) + [1, 2, 0x38, 0x01, 0x80, 0xBB, 0, 0, 0, 0, 0]

    @Test func `OpusHead and dOps have the same fields in the other byte order`() throws {
        let record = try OpusConfiguration(opusHead: unsafe Self.head.span.bytes)
        #expect(record.preSkip == 312 && record.channels == 2 && record.inputSampleRate == 48_000)
        #expect(record.opusHead == Self.head)
        #expect(record.dOps == [0, 2, 0x01, 0x38, 0, 0, 0xBB, 0x80, 0, 0, 0])
        #expect(try OpusConfiguration(dOps: unsafe record.dOps.span.bytes) == record)
    }

    @Test func `every cut of OpusHead is refused`() {
        for count in 0..<Self.head.count {
            let part = Array(Self.head.prefix(count))
            #expect(throws: FormatError.self) { _ = try OpusConfiguration(opusHead: unsafe part.span.bytes) }
        }
    }

    @Test(
        arguments: [
            ("20 ms, CELT", [0xF8, 0xFF, 0xFE], 960), ("10 ms, SILK", [0x00], 480), ("60 ms, SILK", [0x18], 2_880),
            ("two of 20 ms", [0xF9], 1_920), ("three of 20 ms", [0xFB, 0x03], 2_880), ("2.5 ms", [0xE0], 120),
            ("no packet", [], nil), ("no count", [0xFB], nil), ("more than 120 ms", [0x1B, 0x03], nil),
        ] as [(String, [UInt8], Int?)]
    )
    func `a packet tells its samples`(name: String, packet: [UInt8], samples: Int?) {
        #expect(OpusConfiguration.samples(of: unsafe packet.span.bytes) == samples)
    }
}

struct VideoConfigurationTests {
    /// High profile, level 3.1, 1280 × 720, 30 pictures each second.
    static let sps: [UInt8] = [
        0x67, 0x64, 0x00, 0x1F, 0xAC, 0xD9, 0x40, 0x50, 0x05, 0xBB, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00,
        0x00,
        0x03, 0x03, 0xC0, 0xF1, 0x83, 0x19, 0x60,
    ]
    static let pps: [UInt8] = [0x68, 0xEB, 0xE3, 0xCB, 0x22, 0xC0]

    @Test func `an H264 SPS is read`() throws {
        let parameters = try H264SequenceParameters(unsafe Self.sps.span.bytes)
        #expect(parameters.size == PictureSize(width: 1_280, height: 720))
        #expect(parameters.frameRate == 30)
        #expect(parameters.profile == 100 && parameters.level == 31 && parameters.chromaFormat == 1)
        for count in 0..<10 {
            let part = Array(Self.sps.prefix(count))
            #expect(throws: FormatError.self) { _ = try H264SequenceParameters(unsafe part.span.bytes) }
        }
    }

    @Test func `avcC is written and read`() throws {
        let record = try H264Configuration(sequenceParameterSets: [Self.sps], pictureParameterSets: [Self.pps])
        #expect(record.codecs == "avc1.64001f")
        let golden: [UInt8] =
            [1, 0x64, 0, 0x1F, 0xFF, 0xE1, 0, 26] + Self.sps + [1, 0, 6] + Self.pps + [0xFD, 0xF8, 0xF8, 0]
        #expect(record.encoded == golden)
        #expect(try H264Configuration(unsafe golden.span.bytes) == record)
        // Without the fields of High profiles, as some encoders write it.
        let short = Array(golden.dropLast(4))
        #expect(try H264Configuration(unsafe short.span.bytes) == record)
        for count in 0..<short.count {
            let part = Array(short.prefix(count))
            #expect(throws: FormatError.self) { _ = try H264Configuration(unsafe part.span.bytes) }
        }
    }

    @Test(
        arguments: [
            (Fixtures.h264, "avc1.64000b", 30.0), (Fixtures.h265, "hvc1.1.6.L30.90", 30.0),
            (Fixtures.av1, "av01.0.00M.08", nil), (Fixtures.vp9, "vp09.00.10.08", nil),
        ] as [([UInt8], String, Double?)]
    )
    func `records of FFmpeg are read and written again`(file: [UInt8], codecs: String, rate: Double?) throws {
        let frames = try demux(file)
        let found = frames.lazy.filter { $0.kind == .video }.compactMap(\.configuration).first
        let configuration = try #require(found)
        #expect(configuration.codecs == codecs)
        #expect(configuration.size == PictureSize(width: 160, height: 90))
        #expect(configuration.frameRate == rate)
        let record = configuration.record
        let again: CodecConfiguration =
            switch configuration {
            case .h264: .h264(try H264Configuration(unsafe record.span.bytes))
            case .h265: .h265(try H265Configuration(unsafe record.span.bytes))
            case .av1: .av1(try AV1Configuration(unsafe record.span.bytes))
            default: .vp9(try VPConfiguration(unsafe record.span.bytes))
            }
        #expect(again.record == record)
        #expect(again.codecs == codecs)
        for count in 0..<record.count {
            let part = Array(record.prefix(count))
            _ = try? H264Configuration(unsafe part.span.bytes)
            _ = try? H265Configuration(unsafe part.span.bytes)
            _ = try? AV1Configuration(unsafe part.span.bytes)
        }
    }

    /// Main profile, level 3.1, 1280 × 720, 24000/1001 pictures each second.
    static let hevc: [UInt8] = [
        0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00, 0x5D,
        0xA0,
        0x02, 0x80, 0x80, 0x2D, 0x16, 0x59, 0x59, 0xA4, 0x93, 0x2B, 0xC0, 0x40, 0x40, 0x00, 0x00, 0xFA, 0x40, 0x00,
        0x17,
        0x70, 0x02,
    ]

    @Test func `an H265 SPS is read`() throws {
        let parameters = try H265SequenceParameters(unsafe Self.hevc.span.bytes)
        #expect(parameters.size == PictureSize(width: 1_280, height: 720))
        #expect(parameters.general.level == 93 && parameters.general.profile == 1)
        #expect(parameters.frameRate.map { ($0 * 1_000).rounded() } == 23_976)
        let record = try H265Configuration(
            videoParameterSets: [],
            sequenceParameterSets: [Self.hevc],
            pictureParameterSets: [[0x44, 0x01, 0xC1, 0x72]]
        )
        #expect(record.codecs == "hvc1.1.6.L93.90")
        #expect(try H265Configuration(unsafe record.encoded.span.bytes) == record)
    }

    /// Main profile, level 2.0, 320 × 240.
    static let av1: [UInt8] = [
        0x81, 0, 0x0C, 0, 0x0A, 0x0B, 0, 0, 0, 4, 0x3C, 0xFF, 0xBC, 0xFF, 0xF9, 0x80, 0x40,
    ]

    @Test func `av1C is read`() throws {
        let record = try AV1Configuration(unsafe Self.av1.span.bytes)
        #expect(record.size == PictureSize(width: 320, height: 240))
        #expect(record.codecs == "av01.0.00M.08" && record.encoded == Self.av1)
        let payload = Array(Self.av1.dropFirst(6))
        #expect(try AV1Configuration(sequenceHeader: unsafe payload.span.bytes) == record)
    }

    @Test func `VP8 and VP9 key frames tell the size`() throws {
        let vp8: [UInt8] = [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x80, 0x42, 0x68, 0x01]
        let header = try VP8FrameHeader(unsafe vp8.span.bytes)
        #expect(header.isKey && header.isShown && header.size == PictureSize(width: 640, height: 360))
        #expect(header.configuration.map { CodecConfiguration.vp8($0).codecs } == "vp08.00.21.08")
        // Profile 0, key, shown; BT.709, limited range; 1280 × 720.
        let vp9: [UInt8] = [0x82, 0x49, 0x83, 0x42, 0x40, 0x4F, 0xF0, 0x2C, 0xF0]
        let key = try VP9FrameHeader(unsafe vp9.span.bytes)
        #expect(key.isKey && key.isShown)
        #expect(key.configuration?.size == PictureSize(width: 1_280, height: 720))
        #expect(key.configuration.map { CodecConfiguration.vp9($0).codecs } == "vp09.00.31.08")
        let delta: [UInt8] = [0x86, 0x00, 0x40]
        #expect(try !VP9FrameHeader(unsafe delta.span.bytes).isKey)
        for count in 0..<9 {
            let part = Array(vp9.prefix(count))
            #expect(throws: FormatError.self) { _ = try VP9FrameHeader(unsafe part.span.bytes) }
        }
    }

    @Test func `vpcC is read with and without version and flags`() throws {
        let record: [UInt8] = [0, 31, 0x82, 1, 1, 1, 0, 0]
        let bare = try VPConfiguration(unsafe record.span.bytes)
        let full = [1, 0, 0, 0] + record
        #expect(try VPConfiguration(unsafe full.span.bytes) == bare)
        #expect(bare.level == 31 && bare.bitDepth == 8 && bare.chroma == 1 && bare.encoded == record)
    }

    @Test func `times keep the ticks of every clock`() {
        for rate in [1_000, 44_100, 48_000, 90_000] {
            for ticks in [0, 1, 2, 3_003, 1_234_567, 4_294_967_296, 7_776_000_001, -1, -3_003] as [Int64] {
                #expect(MediaFrame.ticks(MediaFrame.time(ticks: ticks, per: rate), per: rate) == ticks)
            }
        }
    }
}
