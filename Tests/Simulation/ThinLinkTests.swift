import Client
import Testing

@testable import Forwarding

/// Audio goes before video on a link that does not carry both, and video is never given up for good.
@Suite struct ThinLinkTests {
    private func lost(_ call: MeasuredCall) -> Int { max(call.viewer.client?.audioReceived?.lost ?? 0, 0) }

    /// Whether pictures come within three seconds.
    private func isShown(_ call: MeasuredCall) -> Bool {
        let before = call.picture.framesDecoded
        call.run(3)
        return call.picture.framesDecoded - before > 10
    }

    @Test(arguments: [40_000, 75_000, 100_000], [61, 62] as [UInt64])
    func `video that a thin link does not carry yields to audio, and returns with the link`(
        rate: Int,
        seed: UInt64
    ) throws {
        let call = try MeasuredCall(seed: seed, nil, rate: rate)
        call.run(8)
        let lostBefore = lost(call)
        #expect(!isShown(call))
        // The thinnest one does not even carry audio.
        #expect(rate < 50_000 || lost(call) == lostBefore)
        call.rate = 2_000_000
        call.run(12)
        #expect(isShown(call))
    }

    /// Without probes nothing but the picture itself shows that the link carries more by now.
    @Test func `without probes the picture is tried again`() throws {
        let call = try MeasuredCall(seed: 63, .neverProbes, rate: 100_000)
        call.run(5)
        #expect(!isShown(call))
        call.rate = 2_000_000
        call.run(29)
        #expect(isShown(call))
    }
}
