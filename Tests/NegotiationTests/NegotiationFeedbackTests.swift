import Foundation
import MediaTypes
import Testing
import Wire

@testable import Negotiation

/// RFC 8888 feedback in offers and answers.
@Suite struct NegotiationFeedbackTests {
    private static let line = "a=rtcp-fb:* ack ccfb"
    private static let transportURI = HeaderExtension.transportSequenceNumber.uri

    /// The offer with a line at the end of some of its sections.
    private static func adding(_ line: String = line, to sections: Set<Int>, of text: String) -> String {
        text.components(separatedBy: "\nm=").enumerated()
            .map { index, part in
                let part = part.hasSuffix("\n") ? String(part.dropLast()) : part
                return sections.contains(index - 1) ? part + "\n" + line : part
            }
            .joined(separator: "\nm=") + "\n"
    }

    @Test(arguments: [WatchOffers.chromium, WatchOffers.firefox, WatchOffers.safari])
    func `a viewer that lists it everywhere gets it instead of transport-cc`(sample: SampleOffer) throws {
        let result = try NegotiationServer.watch(Self.adding(to: [0, 1], of: sample.text))
        let answer = try SessionDescription(parsing: result.answer)
        for (media, slot) in zip(answer.media, result.send) {
            let lines = media.attributes.values(of: "rtcp-fb")
            #expect(lines.filter { $0 == "* ack ccfb" }.count == 1)
            #expect(!lines.contains { $0.contains("transport-cc") || $0.contains("goog-remb") })
            #expect(!media.attributes.values(of: "extmap").contains { $0.contains(Self.transportURI) })
            #expect(slot.extensions[.transportSequenceNumber] == nil)
            #expect(slot.codecs.allSatisfy { $0.feedback.contains(.congestionControlFeedback) })
            #expect(slot.codecs.allSatisfy { $0.feedback.isDisjoint(with: [.transportCC, .remb]) })
        }
        let before = try NegotiationServer.watch(sample.text)
        for (slot, other) in zip(result.send, before.send) where slot.kind == .video {
            #expect(slot.codecs[0].feedback.isSuperset(of: [.nack, .pictureLoss]))
            #expect(slot.codecs.map(\.payloadType) == other.codecs.map(\.payloadType))
        }
    }

    @Test(
        arguments: [
            (line, [0]), (line, [1]), ("a=rtcp-fb:96 ack ccfb", [0, 1]), ("a=rtcp-fb:111 ack ccfb", [0, 1]),
            ("a=rtcp-fb:* ack", [0, 1]), ("a=rtcp-fb:* ccfb", [0, 1]),
        ] as [(String, [Int])]
    )
    func `anything less leaves transport-cc`(added: String, sections: [Int]) throws {
        let result = try NegotiationServer.watch(Self.adding(added, to: Set(sections), of: WatchOffers.chromium.text))
        #expect(result.answer == (try NegotiationServer.watch(WatchOffers.chromium.text)).answer)
        #expect(result.send.allSatisfy { $0.extensions[.transportSequenceNumber] != nil })
    }

    @Test func `an offer that lists it for each payload type is answered so`() throws {
        let formats = try SessionDescription(parsing: WatchOffers.chromium.text).media.map(\.formats)
        var offer = WatchOffers.chromium.text
        for (index, formats) in formats.enumerated() {
            for format in formats { offer = Self.adding("a=rtcp-fb:\(format) ack ccfb", to: [index], of: offer) }
        }
        let result = try NegotiationServer.watch(offer)
        for media in try SessionDescription(parsing: result.answer).media {
            let lines = media.attributes.values(of: "rtcp-fb").filter { $0.hasSuffix("ack ccfb") }
            #expect(lines == media.formats.map { "\($0) ack ccfb" })
        }
        #expect(!result.answer.contains("transport-cc") && !result.answer.contains(Self.transportURI))
        #expect(result.send.allSatisfy { $0.extensions[.transportSequenceNumber] == nil })
    }

    @Test func `a rejected section does not count`() throws {
        let offer = Self.adding(to: [1], of: WatchOffers.chromium.text)
            .replacingOccurrences(of: "m=audio 9 ", with: "m=audio 0 ")
        let result = try NegotiationServer.watch(offer)
        #expect(result.send.map(\.kind) == [.video])
        #expect(result.send[0].codecs[0].feedback.contains(.congestionControlFeedback))
    }

    @Test func `a publisher gets reports by transport-cc`() throws {
        let result = try NegotiationServer.publish(Self.adding(to: [0, 1], of: PublishOffers.chromium.text))
        #expect(!result.answer.contains("ccfb"))
        #expect(result.receive.allSatisfy { $0.extensions[.transportSequenceNumber] != nil })
        #expect(result.receive.allSatisfy { $0.codecs[0].feedback.contains(.transportCC) })
        #expect(!result.receive.contains { $0.codecs[0].feedback.contains(.congestionControlFeedback) })
    }

    @Test func `the server's own offers do not list it`() {
        let codec = CodecParameters.standard(.vp8)
        #expect(!codec.feedback.contains(.congestionControlFeedback))
    }
}
