import Base
import Client
import Testing
import Wire

@Suite struct SyntheticVideoTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    /// What a frame's packets look like.
    private struct Sent {
        var timestamps: Set<UInt32> = []
        var markers: [Bool] = []
        var sequences: [UInt16] = []
        var payloadBytes: [Int] = []
        var stamps: [MediaStamp?] = []

        mutating func note(_ packet: RawSpan) throws {
            let view = try RTPPacketView(packet)
            timestamps.insert(view.timestamp.rawValue)
            markers.append(view.marker)
            sequences.append(view.sequenceNumber.rawValue)
            payloadBytes.append(view.payload.byteCount)
            let stamped = view.payload.extracting(SyntheticVideo.stampOffset..<view.payload.byteCount)
            stamps.append(MediaStamp(stamped))
        }
    }

    private func maker(_ change: (inout SyntheticVideo.Settings) -> Void = { _ in }) -> SyntheticVideo {
        var settings = SyntheticVideo.Settings()
        change(&settings)
        var generator = SystemRandomNumberGenerator()
        return SyntheticVideo(
            source: 7,
            settings: settings,
            payloadType: PayloadType(wire: 96),
            ssrc: SSRC(rawValue: 9),
            startingAt: Self.start,
            using: &generator
        )
    }

    @Test(arguments: [(100_000, 1), (1_500_000, 6), (8_000_000, 31)])
    func `a frame is one burst of its bitrate's size`(bitrate: Int, packets: Int) throws {
        var video = maker { $0.bitrate = bitrate }
        _ = video.makeFrame(at: Self.start, keyFrameWanted: false) { _ in }
        var sent = Sent()
        let due = video.nextFrameAt
        #expect(due > Self.start)
        var failure: (any Error)?
        let isMade = video.makeFrame(at: due, keyFrameWanted: false) { packet in
            do { try sent.note(packet) } catch { failure = error }
        }
        #expect(isMade)
        #expect(failure == nil)
        #expect(sent.markers == Array(repeating: false, count: packets - 1) + [true])
        #expect(sent.timestamps.count == 1)
        #expect(sent.payloadBytes.reduce(0, +) == bitrate / 8 / 30)
        #expect(sent.payloadBytes.allSatisfy { $0 <= 1_100 })
        // All but the last are of one size, so that the kernel takes the frame in one piece.
        #expect(Set(sent.payloadBytes.dropLast()).count <= 1)
        for (index, stamp) in sent.stamps.enumerated() {
            let stamp = try #require(stamp)
            #expect(stamp.source == 7)
            #expect(stamp.frame == 1)
            #expect(Int(stamp.indexInFrame) == index)
            #expect(Int(stamp.packetsInFrame) == packets)
            #expect(!stamp.isKeyFrame)
            #expect(stamp.sentAt == due)
        }
        #expect(zip(sent.sequences, sent.sequences.dropFirst()).allSatisfy { $0 &+ 1 == $1 })
    }

    @Test func `no frame is sent before it is due, and the first is a key frame`() {
        var video = maker()
        var packets = 0
        let first = video.makeFrame(at: Self.start, keyFrameWanted: false) { _ in packets += 1 }
        #expect(first)
        #expect(video.keyFramesMade == 1)
        let early = video.makeFrame(at: Self.start, keyFrameWanted: true) { _ in packets = 0 }
        #expect(!early)
        #expect(packets == 29, "five delta frames' bytes")
        let second = video.makeFrame(at: video.nextFrameAt, keyFrameWanted: true) { _ in packets += 1 }
        #expect(second)
        #expect(video.keyFramesMade == 2)
    }
}
