import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

/// Any order of members that come and go, and of answers.
@Suite struct OfferedPropertyTests {
    @Test(.timeLimit(.minutes(10)), arguments: 0..<40 as Range<UInt64>)
    func `lines keep their place, names and numbers their meaning, and slots follow the members`(seed: UInt64) throws {
        var call = RandomCall(seed: seed)
        for turn in 0..<20 {
            try call.turn()
            if call.rules.failures.isEmpty { continue }
            Issue.record("seed \(seed), turn \(turn): \(call.rules.failures)")
            return
        }
        #expect(call.slots == call.wanted)
    }
}

/// One client's session with members who come, go and change, in an order that the seed gives.
private struct RandomCall {
    private static let codecs: [CodecName] = [.vp8, .vp9, .av1, .h264, .h265]
    private static let profiles = ["42e01f", "42001f", "4d001f", "640c1f", "64001f"]

    private var generator: SeededGenerator
    private var session: OfferedDescription
    private var client: ClientAnswerer
    private let supported: Set<CodecName>
    private let receives: Bool
    private var members: [String: OfferedDescription.RemoteStream] = [:]
    private var order: [String] = []
    /// The tracks that the description plays, and those that the client receives: stream and kind.
    private(set) var slots: Set<[String]> = []
    private var slotNames: [MID: [String]] = [:]
    private var heard: [MID: [String]] = [:]
    private var goneSlots: Set<MID> = []
    var rules = OfferRules()

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var own = OfferedDescription.ClientMedia()
        if Bool.random(using: &generator) { own.audio = .offered(.opus) }
        if Bool.random(using: &generator) {
            own.video = .offered(Self.codecs.randomElement(using: &generator) ?? .vp8)
            if Bool.random(using: &generator) {
                own.layers = ["r0", "r1", "r2"].compactMap { RID($0) }.map { OfferedDescription.Layer(rid: $0) }
            }
        }
        receives = Int.random(in: 0..<8, using: &generator) != 0
        session = OfferedDescription(
            local: NegotiationServer.local,
            clientMedia: own,
            receivesMedia: receives,
            using: &generator
        )
        let lacking: CodecName? = Bool.random(using: &generator) ? .h265 : nil
        let lacksOwn = own.video.map { $0.name == lacking } ?? false
        supported = Set(CodecName.allCases.filter { $0 != lacking || lacksOwn })
        client = ClientAnswerer(
            transport: LocalTransport(
                credentials: ICECredentials(using: &generator),
                fingerprint: NegotiationServer.local.fingerprint,
                candidates: []
            ),
            codecs: supported,
            using: &generator
        )
        self.generator = generator
    }

    /// The expected tracks: those that the client has a decoder for.
    var wanted: Set<[String]> {
        guard receives else { return [] }
        return Set(
            members.values.flatMap { stream in
                stream.tracks.filter { $0.formats.contains { supported.contains($0.name) } }
                    .map { [stream.id, $0.kind.rawValue] }
            }
        )
    }

    /// Some members come, go or change; then an offer and its answer, until there is nothing more to say.
    mutating func turn() throws {
        for _ in 0..<Int.random(in: 0...3, using: &generator) { change() }
        repeat { try exchange() } while session.wouldChange(streams)
        rules.require(slots == wanted, "the slots are those of the members: \(slots) \(wanted)")
        rules.require(Set(heard.values) == slots && heard.count == slots.count, "the client hears what is played")
        rules.require(Set(heard.keys) == Set(slotNames.keys), "under the same names")
    }

    private var streams: [OfferedDescription.RemoteStream] { order.compactMap { members[$0] } }

    private mutating func change() {
        let id = "m\(Int.random(in: 0..<9, using: &generator))"
        if members[id] == nil || Int.random(in: 0..<3, using: &generator) == 0 {
            if members[id] == nil { order.append(id) }
            members[id] = remoteStream(id, audio: audio(), video: video())
        } else {
            members[id] = nil
            order.removeAll { $0 == id }
        }
        if Bool.random(using: &generator) { order.shuffle(using: &generator) }
    }

    private mutating func audio() -> [CodecParameters] {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: []
        case 1: [.standard(.red), .standard(.opus)]
        default: [.standard(.opus)]
        }
    }

    private mutating func video() -> [CodecParameters] {
        guard Int.random(in: 0..<5, using: &generator) > 0 else { return [] }
        let name = Self.codecs.randomElement(using: &generator) ?? .vp8
        guard name == .h264 else { return [.standard(name)] }
        return Self.profiles.shuffled(using: &generator).prefix(2).map { profile in
            .offered(.h264, format: [FormatParameter(key: "profile-level-id", value: profile)])
        }
    }

    private mutating func exchange() throws {
        let own = [session.clientMIDs.audio, session.clientMIDs.video].compactMap { $0 }
        let text = session.makeOffer(streams, using: &generator)
        var forgetful = session
        for index in forgetful.sections.indices { forgetful.sections[index].text = nil }
        rules.require(forgetful.describe() == text, "lines that were described before are as if described anew")
        rules.take(try SessionDescription(parsing: text), own: own.map(\.value))
        let turn = try client.answer(offer: text, sending: Set(own), using: &generator)
        rules.note(answer: try SessionDescription(parsing: turn.answer))
        let outcome = try session.apply(answer: turn.answer)
        rules.require(
            try forgetful.apply(answer: turn.answer) == outcome,
            "lines of an answer that were read before are as if read anew"
        )
        for mid in outcome.removed {
            let name = slotNames.removeValue(forKey: mid)
            rules.require(name != nil, "only a slot is removed")
            if let name { slots.remove(name) }
            goneSlots.insert(mid)
        }
        for slot in outcome.added {
            let name = [slot.streamID, slot.parameters.kind.rawValue]
            rules.require(!goneSlots.contains(slot.parameters.mid), "the name of a slot does not come back")
            rules.require(slotNames.updateValue(name, forKey: slot.parameters.mid) == nil, "a slot is added once")
            rules.require(slots.insert(name).inserted, "a track has one slot")
        }
        for mid in turn.removed { rules.require(heard.removeValue(forKey: mid) != nil, "only what arrived stops") }
        for track in turn.added {
            heard[track.parameters.mid] = [track.streamID ?? "", track.parameters.kind.rawValue]
        }
        rules.require(outcome.receive.map(\.mid) == own, "the client sends in its own lines")
        rules.require(turn.send.map(\.mid) == own, "and knows it")
    }
}

/// The invariants between consecutive offers.
struct OfferRules {
    private(set) var failures: [String] = []
    private var last: SessionDescription?
    private var meanings: [String: [String]] = [:]
    private var streams: [String: String] = [:]
    /// Lines that the last answer refused.
    private var refused: Set<Int> = []

    mutating func note(answer: SessionDescription) {
        refused = Set(answer.media.indices.filter { answer.media[$0].port == 0 })
    }

    mutating func require(_ holds: Bool, _ rule: String) {
        if !holds { failures.append(rule) }
    }

    mutating func take(_ offer: SessionDescription, own: [String]) {
        let live = offer.media.indices.filter { offer.media[$0].port != 0 }
        require(Array(offer.mids.prefix(own.count)) == own, "own lines come first")
        require(offer.bundle == live.map { offer.mids[$0] }, "the bundle is the lines in use")
        require(Set(offer.mids).count == offer.mids.count, "each line has a name of its own")
        require(offer.media.count <= OfferedDescription.sectionsMax, "lines are bounded")
        for (index, section) in offer.media.enumerated() where section.port == 0 {
            require(index != 0, "the head of the bundle stays")
            require(section.attributes.has("inactive"), "a closed line is inactive")
        }
        if let last { follow(last, offer) }
        var sources: Set<SSRC> = []
        for section in offer.media {
            for source in Set(section.attributes.values(of: "ssrc").compactMap({ SSRCAttribute($0)?.ssrc })) {
                require(sources.insert(source).inserted, "a source is of one line")
            }
            noteMeanings(section)
            let mid = section.attributes.value(of: "mid") ?? ""
            guard let stream = section.attributes.value(of: "msid") else { continue }
            require(streams.updateValue(stream, forKey: mid) ?? stream == stream, "a name means one track")
        }
        last = offer
    }

    private mutating func follow(_ last: SessionDescription, _ offer: SessionDescription) {
        require(offer.media.count >= last.media.count, "no line goes away")
        require(offer.origin.sessionID == last.origin.sessionID, "the session stays the same")
        let versions = [last, offer].map { UInt64($0.origin.version) ?? 0 }
        require(versions[1] == versions[0] + 1, "the version grows by one")
        require(offer.bundle.first == last.bundle.first, "the bundle keeps its head")
        for (index, before) in last.media.enumerated() where index < offer.media.count {
            require(offer.media[index].type == before.type, "a line keeps its kind")
            require(
                offer.mids[index] == last.mids[index] || before.port == 0 || refused.contains(index),
                "a line gets another name only after it was closed"
            )
        }
    }

    /// libwebrtc refuses a bundle in which one number has two meanings, or other parameters or feedback.
    private mutating func noteMeanings(_ section: MediaDescription) {
        guard section.port != 0 else { return }
        for format in section.formats {
            let lines = section.attributes.filter { attribute in
                ["rtpmap", "fmtp", "rtcp-fb"].contains(attribute.name)
                    && attribute.value?.hasPrefix("\(format) ") == true
            }
            .map { "\($0.name) \($0.value ?? "")" }
            require(!lines.isEmpty, "a format is described")
            require(meanings.updateValue(lines, forKey: format) ?? lines == lines, "a number keeps its meaning")
        }
        for line in section.attributes.values(of: "extmap") {
            let id = "extmap " + (line.split(separator: " ").first.map(String.init) ?? "")
            require(meanings.updateValue([line], forKey: id) ?? [line] == [line], "an extension keeps its number")
        }
    }
}
