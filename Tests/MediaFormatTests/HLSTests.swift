import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

struct HLSTests {
    private typealias Part = HLSMediaPlaylist.Part

    private var playlist: HLSMediaPlaylist {
        let part = Part(uri: "p7.0.mp4", duration: .milliseconds(500), isIndependent: true)
        return HLSMediaPlaylist(
            targetSeconds: 4,
            partTarget: .milliseconds(500),
            mediaSequence: 5,
            discontinuitySequence: 1,
            control: .init(canSkipUntil: .seconds(24), partHoldBack: .milliseconds(1_500)),
            segments: [
                .init(uri: "s5.mp4", duration: .seconds(4), map: "init0.mp4"),
                .init(
                    uri: "s6.mp4",
                    duration: Interval(nanoseconds: 3_966_666_667),
                    isDiscontinuity: true,
                    dateMS: 1_709_251_199_999,
                    map: "init1.mp4",
                    parts: [Part(uri: "p6.0.mp4", duration: .milliseconds(500), isIndependent: false)]
                ),
            ],
            pending: .init(parts: [part]),
            preloadHint: "p7.1.mp4",
            reports: [.init(uri: "../audio/index.m3u8", lastSequence: 7, lastPart: 0)]
        )
    }

    @Test func `a low-latency playlist has each tag in its place`() {
        let golden = """
            #EXTM3U
            #EXT-X-VERSION:6
            #EXT-X-TARGETDURATION:4
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=24,PART-HOLD-BACK=1.5
            #EXT-X-PART-INF:PART-TARGET=0.5
            #EXT-X-MEDIA-SEQUENCE:5
            #EXT-X-DISCONTINUITY-SEQUENCE:1
            #EXT-X-INDEPENDENT-SEGMENTS
            #EXT-X-MAP:URI="init0.mp4"
            #EXTINF:4,
            s5.mp4
            #EXT-X-DISCONTINUITY
            #EXT-X-MAP:URI="init1.mp4"
            #EXT-X-PROGRAM-DATE-TIME:2024-02-29T23:59:59.999Z
            #EXT-X-PART:DURATION=0.5,URI="p6.0.mp4"
            #EXTINF:3.96667,
            s6.mp4
            #EXT-X-PART:DURATION=0.5,URI="p7.0.mp4",INDEPENDENT=YES
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="p7.1.mp4"
            #EXT-X-RENDITION-REPORT:URI="../audio/index.m3u8",LAST-MSN=7,LAST-PART=0

            """
        #expect(playlist.text() == golden)
        #expect(playlist.text(isDelta: true) == golden, "nothing is old enough")
    }

    @Test func `a delta update leaves old segments out`() {
        var window = playlist
        window.segments = (0..<15).map { .init(uri: "s\($0).mp4", duration: .seconds(4)) }
        // Behind segment 7 there are 7 segments and a part: 28.5 s; behind segment 8 24.5 s; behind segment 9 20.5 s.
        #expect(window.skippableCount == 9)
        let delta = window.text(isDelta: true)
        #expect(delta.contains("#EXT-X-VERSION:9\n") && delta.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=9\n"))
        #expect(!delta.contains("s8.mp4") && delta.contains("s9.mp4"))
        window.isEnded = true
        let ended = window.text(isDelta: true)
        #expect(ended.hasSuffix("s14.mp4\n#EXT-X-ENDLIST\n") && !ended.contains("SKIP:") && !ended.contains("HINT"))
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"), (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
            (-1, "1970-01-01T00:00:00.000Z"),
        ] as [(Int64, String)]
    )
    func `dates are in UTC`(milliseconds: Int64, text: String) {
        let playlist = HLSMediaPlaylist(
            targetSeconds: 1,
            segments: [.init(uri: "s", duration: .seconds(1), dateMS: milliseconds)]
        )
        #expect(playlist.text().contains("#EXT-X-PROGRAM-DATE-TIME:\(text)\n"))
    }

    @Test func `a URI cannot end its line or its quotes`() {
        let playlist = HLSMediaPlaylist(
            targetSeconds: 1,
            segments: [.init(uri: "a b\n#EXT-X-ENDLIST", duration: .seconds(1), map: "i\"x")]
        )
        #expect(playlist.text().contains("#EXT-X-MAP:URI=\"i%22x\"\n"))
        #expect(playlist.text().hasSuffix("\na%20b%0A#EXT-X-ENDLIST\n"))
    }

    @Test func `a multivariant playlist tells codecs, size and rate`() throws {
        let frames = try demux(Fixtures.h264)
        let video = try #require(frames.lazy.filter { $0.kind == .video }.compactMap(\.configuration).first)
        let audio = CodecConfiguration.aac(try AACConfiguration(sampleRate: 48_000, channels: 2))
        let variant = HLSMultivariantPlaylist.Variant(
            uri: "video.m3u8?s=1",
            bandwidth: 2_500_000,
            averageBandwidth: 2_000_000,
            configurations: [video, audio],
            audioGroup: "a"
        )
        let rendition = HLSMultivariantPlaylist.AudioRendition(
            group: "a",
            name: "Main sound, 主",
            uri: "audio.m3u8",
            channels: 2,
            isDefault: true
        )
        let golden = """
            #EXTM3U
            #EXT-X-VERSION:6
            #EXT-X-INDEPENDENT-SEGMENTS
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Main sound, 主",CHANNELS="2",DEFAULT=YES,AUTOSELECT=YES,URI="audio.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=2500000,AVERAGE-BANDWIDTH=2000000,CODECS="avc1.64000b,mp4a.40.2",\
            RESOLUTION=160x90,FRAME-RATE=30.000,AUDIO="a"
            video.m3u8?s=1

            """
        #expect(HLSMultivariantPlaylist(variants: [variant], audio: [rendition]).text == golden)
    }
}
