import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

struct FLVTests {
    @Test(
        arguments: [
            ("H.264 + AAC, B-frames", Fixtures.h264, MediaCodec.h264, MediaCodec.aac, true),
            ("H.265 + Opus", Fixtures.h265, .h265, .opus, true), ("AV1 + Opus", Fixtures.av1, .av1, .opus, false),
            ("VP9 + Opus", Fixtures.vp9, .vp9, .opus, false),
        ] as [(String, [UInt8], MediaCodec, MediaCodec, Bool)]
    )
    func `files of FFmpeg are read, and written so that they read the same`(
        name: String,
        file: [UInt8],
        videoCodec: MediaCodec,
        audioCodec: MediaCodec,
        reorders: Bool
    ) throws {
        let frames = try demux(file)
        let video = frames.filter { $0.kind == .video }
        let audio = frames.filter { $0.kind == .audio }
        #expect(video.count == 12 && !audio.isEmpty)
        #expect(video.allSatisfy { $0.codec == videoCodec } && audio.allSatisfy { $0.codec == audioCodec })
        #expect(video.map(\.isKey) == [true] + [Bool](repeating: false, count: 11))
        #expect(video.filter { $0.configuration != nil }.count == 1 && video.first?.configuration != nil)
        #expect(audio.first?.configuration != nil)
        #expect(zip(video, video.dropFirst()).allSatisfy { $0.decodeTime < $1.decodeTime })
        #expect(video.contains { $0.presentationTime != $0.decodeTime } == reorders)
        #expect(video.contains { $0.isDiscardable } == reorders)
        for pieceBytes in [1, 7, 11, 1_000] { #expect(try demux(file, pieceBytes: pieceBytes) == frames) }
        var muxer = FLVMuxer(origin: .zero)
        var written = FLVMuxer.header(hasAudio: true, hasVideo: true)
        for frame in frames { written += muxer.write(frame) }
        let again = try demux(written)
        #expect(again == frames)
    }

    @Test func `a tag has its time in 24 and 8 bits`() throws {
        let tag = FLVTag(type: .audio, timestamp: 0x0112_3456, body: [0xAF, 1, 7])
        #expect(tag.encoded == [8, 0, 0, 3, 0x12, 0x34, 0x56, 1, 0, 0, 0, 0xAF, 1, 7, 0, 0, 0, 14])
        var reader = FLVFileReader()
        let file = FLVMuxer.header(hasAudio: true, hasVideo: false) + tag.encoded
        var found: [FLVTag] = []
        try reader.append(unsafe file.span.bytes) { found.append($0) }
        #expect(found == [tag])
    }

    @Test func `timestamps go on past 2 to the 32`() throws {
        var demuxer = FLVDemuxer()
        let configuration: [UInt8] = [0xAF, 0, 0x12, 0x10]
        _ = try demuxer.receiveAudio(unsafe configuration.span.bytes, timestamp: 0)
        let body: [UInt8] = [0xAF, 1, 0x21]
        var times: [Int] = []
        for timestamp in [0xFFFF_FFF0, 0x0000_0007, 0x0000_0005] as [UInt32] {
            if case .frame(let frame) = try demuxer.receiveAudio(unsafe body.span.bytes, timestamp: timestamp) {
                times.append(frame.decodeTime.milliseconds)
            }
        }
        #expect(times == [0xFFFF_FFF0, 0x1_0000_0007, 0x1_0000_0005])
    }

    @Test(
        arguments: [
            ("classic AVC frame", [0x17, 1, 0, 0, 80, 1], MediaCodec.h264, 80, 1),
            ("negative composition time", [0x27, 1, 0xFF, 0xFF, 0xF6, 1, 2], .h264, -10, 2),
            ("classic HEVC", [0x1C, 1, 0, 0, 0, 1], .h265, 0, 1),
            ("enhanced HEVC with composition time", [0x91] + Array("hvc1".utf8) + [0, 0, 33, 1, 2], .h265, 33, 2),
            ("enhanced HEVC without", [0xA3] + Array("hvc1".utf8) + [1, 2, 3], .h265, 0, 3),
            ("enhanced AV1", [0x91] + Array("av01".utf8) + [1, 2, 3], .av1, 0, 3),
            (
                "behind ModEx of one byte and of 256",
                [0x97, 0, 9, 0x07, 0xFF, 0, 0xFF] + [UInt8](repeating: 0, count: 256)
                    + [0x03] + Array("hvc1".utf8) + [5], .h265, 0, 1
            ),
            (
                "many tracks, the first is second",
                [0x96, 0x11] + Array("vp09".utf8) + [1, 0, 0, 1, 8, 0, 0, 0, 2, 6, 7],
                .vp9, 0, 2
            ),
            (
                "many tracks of many codecs",
                [0x96, 0x21] + Array("avc1".utf8) + [0, 0, 0, 4, 0, 0, 1, 9] + Array("av01".utf8) + [1, 0, 0, 1, 8],
                .h264, 1, 1
            ),
            ("one track", [0x96, 0x01] + Array("av01".utf8) + [0, 6, 7], .av1, 0, 2),
        ] as [(String, [UInt8], MediaCodec, Int32, Int)]
    )
    func `video bodies`(name: String, bytes: [UInt8], codec: MediaCodec, offset: Int32, payload: Int) throws {
        let body = try FLVTagBody(video: unsafe bytes.span.bytes)
        let (foundCodec, packet, composition) = (body.codec, body.packet, body.compositionOffsetMS)
        let count = body.payload.byteCount
        #expect(foundCodec == codec && packet == .frame)
        #expect(composition == offset && count == payload)
        for count in 0..<bytes.count { _ = try? read(video: Array(bytes.prefix(count))) }
    }

    private func read(video bytes: [UInt8]) throws -> MediaCodec? {
        try FLVTagBody(video: unsafe bytes.span.bytes).codec
    }
    private func packet(video bytes: [UInt8]) throws -> FLVTagBody.Packet {
        try FLVTagBody(video: unsafe bytes.span.bytes).packet
    }

    @Test func `bodies without frames are told apart`() throws {
        #expect(try packet(video: [0xD4] + Array("hvc1".utf8) + [2, 0]) == .ignored)
        #expect(try packet(video: [0x57, 0]) == .ignored)
        #expect(try packet(video: [0x92] + Array("av01".utf8)) == .endOfSequence)
        #expect(try packet(video: [0x90] + Array("av01".utf8)) == .configuration)
        #expect(try packet(video: [0x96, 0x01] + Array("av01".utf8) + [3, 6]) == .ignored)
        #expect(throws: FormatError.unsupported("FLV video codec 2")) { _ = try packet(video: [0x12, 0]) }
        #expect(throws: FormatError.unsupported("FLV codec vvc1")) {
            _ = try packet(video: [0x91] + Array("vvc1".utf8) + [1])
        }
    }

    @Test(
        arguments: [
            (0x2F, MediaCodec.mp3, 44_100, 2), (0xE2, .mp3, 8_000, 1), (0x72, .pcma, 8_000, 1), (0x83, .pcmu, 8_000, 2),
            (0xB6, .speex, 16_000, 1),
        ] as [(UInt8, MediaCodec, Int, Int)]
    )
    func `classic audio`(header: UInt8, codec: MediaCodec, rate: Int, channels: Int) throws {
        var demuxer = FLVDemuxer()
        let bytes = [header, 1, 2, 3]
        let output = try demuxer.receiveAudio(unsafe bytes.span.bytes, timestamp: 5)
        guard case .frame(let frame) = output else {
            Issue.record("no frame")
            return
        }
        #expect(frame.codec == codec && frame.bytes == [1, 2, 3])
        #expect(frame.configuration?.sampleRate == rate && frame.configuration?.channels == channels)
    }

    @Test func `frames before a sequence header are counted`() throws {
        var demuxer = FLVDemuxer()
        let video: [UInt8] = [0x17, 1, 0, 0, 0, 0, 0, 0, 2, 0x65, 0x88]
        let audio: [UInt8] = [0xAF, 1, 0x21]
        #expect(try demuxer.receiveVideo(unsafe video.span.bytes, timestamp: 0) == nil)
        #expect(try demuxer.receiveAudio(unsafe audio.span.bytes, timestamp: 0) == nil)
        #expect(demuxer.framesWithoutConfiguration == 2)
    }

    @Test func `a file of something else is refused`() {
        var reader = FLVFileReader()
        let bytes: [UInt8] = [0x46, 0x4C, 0x57]
        #expect(throws: FormatError.self) { try reader.append(unsafe bytes.span.bytes) { _ in } }
    }
}
