import Base
import MediaTypes
import Negotiation
import Wire

/// A session that the server describes, always the same one, with the offer that waits for an answer.
private struct OfferedScene {
    var generator = SeededGenerator(seed: 3)
    var session: OfferedDescription
    let offer: String

    init() {
        let layers = ["r0", "r1", "r2"].compactMap { RID($0) }.map { OfferedDescription.Layer(rid: $0) }
        session = OfferedDescription(
            local: Sample.local,
            clientMedia: OfferedDescription.ClientMedia(audio: .offered(.opus), video: .offered(.vp8), layers: layers),
            receivesMedia: true,
            using: &generator
        )
        offer = session.makeOffer(Self.streams(["A", "B"]), using: &generator)
    }

    static func streams(_ names: [String]) -> [OfferedDescription.RemoteStream] {
        names.map { name in
            let tracks = [(MediaKind.audio, CodecName.opus), (.video, .vp9)].compactMap { kind, codec in
                MID(kind.rawValue).map {
                    OfferedDescription.RemoteTrack(kind: kind, mid: $0, formats: [.standard(codec)])
                }
            }
            return OfferedDescription.RemoteStream(id: name, tracks: tracks)
        }
    }
}

/// The answer to a server's offer, and the same text as an offer to a client. Whatever comes of it, the session goes on.
func fuzzSession(_ bytes: RawSpan) {
    guard let text = String(validating: bytes.array(), as: UTF8.self) else { return }
    var scene = OfferedScene()
    var slots: Set<MID> = []
    for names in [["A", "B"], ["B", "C"], ["C"], ["C", "A"]] {
        if !scene.session.isOfferOutstanding {
            let offer = scene.session.makeOffer(OfferedScene.streams(names), using: &scene.generator)
            require((try? SessionDescription(parsing: offer)) != nil, "an offer reads")
        }
        do {
            let outcome = try scene.session.apply(answer: text)
            require(!scene.session.isOfferOutstanding, "an answer was taken")
            for mid in outcome.removed { require(slots.remove(mid) != nil, "a slot is removed that was there") }
            for slot in outcome.added { require(slots.insert(slot.parameters.mid).inserted, "a slot is added once") }
            require(outcome.receive.count <= 2, "the client sends in its own lines")
        } catch {
            require(!error.message.isEmpty, "an error has a sentence")
            require(scene.session.isOfferOutstanding, "what is refused changes nothing")
            break
        }
    }
    var client = ClientAnswerer(transport: Sample.client, using: &scene.generator)
    for offer in [text, scene.offer, text] {
        guard let turn = try? client.answer(offer: offer, using: &scene.generator) else { continue }
        require((try? SessionDescription(parsing: turn.answer)) != nil, "an answer reads")
    }
}

func seedsSession() -> [(name: String, bytes: [UInt8])] {
    var scene = OfferedScene()
    let own = Set([scene.session.clientMIDs.audio, scene.session.clientMIDs.video].compactMap { $0 })
    let clients: [(String, Set<MID>, Set<CodecName>)] = [
        ("sends", own, Set(CodecName.allCases)), ("receives", [], Set(CodecName.allCases)),
        ("refuses", own, [.opus, .vp8]),
    ]
    var seeds = clients.map { name, sending, codecs in
        var client = ClientAnswerer(transport: Sample.client, codecs: codecs, using: &scene.generator)
        let turn = try? client.answer(offer: scene.offer, sending: sending, using: &scene.generator)
        return (name: name, bytes: Array((turn?.answer ?? "").utf8))
    }
    seeds.append((name: "offer", bytes: Array(scene.offer.utf8)))
    return seeds
}
