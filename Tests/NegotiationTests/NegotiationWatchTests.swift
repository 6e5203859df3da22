import MediaTypes
import Testing
import Wire

@testable import Negotiation

@Suite struct NegotiationWatchTests {
    @Test(arguments: WatchOffers.all)
    func `every client's offer is answered with one stream of both kinds`(sample: SampleOffer) throws {
        let offer = try SessionDescription(parsing: sample.text)
        let result = try NegotiationServer.watch(sample.text)
        let answer = try SessionDescription(parsing: result.answer)
        #expect(answer.media.map(\.type) == offer.media.map(\.type))
        #expect(result.send.map(\.mid.value) == answer.media.compactMap { $0.attributes.value(of: "mid") })
        #expect(Set(result.send.map(\.cname)).count == 1)
        for (media, slot) in zip(answer.media, result.send) {
            #expect(media.attributes.has("sendonly"))
            #expect(media.attributes.has("rtcp-mux-only"))
            #expect(media.attributes.value(of: "msid") == "live \(slot.kind.rawValue)")
            #expect(media.attributes.values(of: "ssrc").contains("\(slot.ssrc) cname:\(slot.cname)"))
            let group = media.attributes.value(of: "ssrc-group")
            #expect(group == slot.rtxSSRC.map { "FID \(slot.ssrc) \($0)" })
            #expect((slot.rtxSSRC != nil) == (slot.kind == .video))
            #expect(slot.extensions[.rtpStreamID] == nil)
            #expect(!media.attributes.has("simulcast"))
            let codecs = slot.codecs.flatMap { [$0.payloadType, $0.rtxPayloadType].compactMap { $0?.description } }
            #expect(media.formats == codecs)
        }
        let sources = result.send.flatMap { [$0.ssrc, $0.rtxSSRC].compactMap { $0 } }
        #expect(Set(sources).count == sources.count)
    }

    @Test func `every codec of the viewer is a format of its slot`() throws {
        let result = try NegotiationServer.watch(WatchOffers.chromium.text)
        #expect(result.send.last?.codecs.map(\.payloadType.rawValue) == [96, 103, 107, 109, 45, 98, 100, 49])
        #expect(result.send.first?.codecs.map(\.name) == [.opus, .red])
    }

    @Test func `a viewer that asked for stereo is told that it comes`() throws {
        #expect(
            try NegotiationServer.watch(WatchOffers.firefox.text).answer.contains(
                "stereo=1;useinbandfec=1;sprop-stereo=1"
            )
        )
        #expect(!(try NegotiationServer.watch(WatchOffers.chromium.text).answer.contains("stereo")))
    }

    @Test(arguments: [
        ("room 1/eve\r\na=evil", "room_1_eve__a_evil"), ("", "-"), ("ok-1.2+3", "ok-1.2+3"),
        ("流", "___"), (String(repeating: "x", count: 200), String(repeating: "x", count: 64)),
    ])
    func `a stream name cannot break the line it stands in`(name: String, written: String) throws {
        let result = try NegotiationServer.watch(WatchOffers.pion.text, stream: name)
        let answer = try SessionDescription(parsing: result.answer)
        #expect(answer.media.first?.attributes.value(of: "msid") == "\(written) video")
    }

    @Test func `sources avoid those of the offer and 0`() {
        struct Constant: RandomNumberGenerator {
            func next() -> UInt64 { 1 }
        }
        var generator = Constant()
        var chooser = SSRCChooser(taken: [SSRC(rawValue: 1), SSRC(rawValue: 2)])
        #expect(chooser.next(using: &generator).rawValue == 3)
        #expect(chooser.next(using: &generator).rawValue == 4)
    }
}
