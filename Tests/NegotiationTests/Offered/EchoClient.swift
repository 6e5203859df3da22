import MediaTypes
import TestSupport
import Wire

@testable import Negotiation

/// Answers an offer as its text has it, line by line: an answerer that shares no code with the one under test.
struct EchoClient {
    /// The answer to one m-line.
    enum Reply { case accept, inactive, refuse }

    var fragment = "echo"
    var setup = "active"
    /// Of kinds that the client sends nothing of, the offer's `recvonly` is answered `inactive`.
    var sends: Set<MediaKind> = [.audio, .video]
    /// Formats that it does not have, by encoding name.
    var lacks: Set<String> = []
    /// Replies to lines by their mid, where they are not accepted.
    var replies: [String: Reply] = [:]
    /// Simulcast layers that it sends of those asked for; `nil` for all.
    var layers: [String]?

    func answer(_ text: String) throws -> String {
        let offer = try SessionDescription(parsing: text)
        var bundle: [String] = []
        var firstSource: UInt32 = 1_000
        let media = offer.media.map { section in
            let answered = answer(section, source: &firstSource)
            if answered.port != 0 { bundle.append(section.attributes.value(of: "mid") ?? "") }
            return answered
        }
        return SessionDescription(
            origin: SDPOrigin(sessionID: 77, version: UInt64(offer.origin.version) ?? 0),
            attributes: [
                SDPAttribute("group", "BUNDLE " + bundle.joined(separator: " ")), SDPAttribute("msid-semantic", " WMS"),
            ],
            media: media
        ).serialized()
    }

    private func answer(_ section: MediaDescription, source: inout UInt32) -> MediaDescription {
        let mid = section.attributes.value(of: "mid") ?? ""
        let formats = kept(section)
        var answered = section
        answered.bandwidths = []
        guard section.port != 0, replies[mid] != .refuse, !formats.isEmpty else {
            answered.port = 0
            answered.attributes = [SDPAttribute("mid", mid), SDPAttribute("inactive")]
            return answered
        }
        answered.port = 9
        answered.formats = formats
        answered.attributes = [
            SDPAttribute("ice-ufrag", fragment), SDPAttribute("ice-pwd", "passwordOfTheEchoClient0"),
            SDPAttribute("ice-options", "trickle"), SDPAttribute("fingerprint", "sha-256 " + sampleFingerprint),
            SDPAttribute("setup", setup), SDPAttribute("mid", mid), SDPAttribute("rtcp-mux"),
        ]
        answered.attributes += section.attributes.filter { attribute in
            guard ["extmap", "rtpmap", "rtcp-fb", "fmtp"].contains(attribute.name) else { return false }
            let payloadType = attribute.value?.split(separator: " ").first.map(String.init) ?? ""
            return attribute.name == "extmap" || formats.contains(payloadType)
        }
        guard section.type != "application" else {
            answered.attributes += [SDPAttribute("sctp-port", "5000"), SDPAttribute("max-message-size", "262144")]
            return answered
        }
        let direction = direction(of: section, mid: mid)
        answered.attributes.append(SDPAttribute(direction))
        if direction == "sendonly" { answered.attributes += sending(section, source: &source) }
        return answered
    }

    /// The numbers of the formats that the client has, with their retransmissions.
    private func kept(_ section: MediaDescription) -> [String] {
        let dropped = section.attributes.values(of: "rtpmap").filter { line in
            lacks.contains(line.split(separator: " ").last?.split(separator: "/").first.map(String.init) ?? "")
        }
        .compactMap { $0.split(separator: " ").first.map(String.init) }
        let repeats = section.attributes.values(of: "fmtp").filter { line in
            dropped.contains { line.hasSuffix(" apt=\($0)") }
        }
        .compactMap { $0.split(separator: " ").first.map(String.init) }
        return section.formats.filter { !dropped.contains($0) && !repeats.contains($0) }
    }

    private func direction(of section: MediaDescription, mid: String) -> String {
        if replies[mid] == .inactive { return "inactive" }
        if section.attributes.has("sendonly") { return "recvonly" }
        guard section.attributes.has("recvonly") else { return "inactive" }
        return sends.contains { $0.rawValue == section.type } ? "sendonly" : "inactive"
    }

    private func sending(_ section: MediaDescription, source: inout UInt32) -> [SDPAttribute] {
        let rids = section.attributes.values(of: "rid").compactMap { RIDAttribute($0)?.rid.value }
        let sent = rids.filter { layers?.contains($0) ?? true }
        guard sent.isEmpty else {
            return sent.map { SDPAttribute("rid", "\($0) send") }
                + [SDPAttribute("simulcast", "send " + sent.joined(separator: ";"))]
        }
        let sources = section.type == "video" ? [source, source + 1] : [source]
        source += 2
        let group = SDPAttribute("ssrc-group", "FID " + sources.map(String.init).joined(separator: " "))
        return (sources.count == 2 ? [group] : []) + sources.map { SDPAttribute("ssrc", "\($0) cname:echo") }
    }
}

/// A description under test with its remote streams.
struct OfferedScene {
    var session: OfferedDescription
    var client = EchoClient()
    var generator = SeededGenerator(seed: 11)

    init(
        _ clientMedia: OfferedDescription.ClientMedia = .init(),
        receives: Bool = true,
        kinds: Set<MediaKind> = [.audio, .video]
    ) {
        session = OfferedDescription(
            local: NegotiationServer.local,
            clientMedia: clientMedia,
            receivesMedia: receives,
            kinds: kinds,
            using: &generator
        )
    }

    static let both = OfferedDescription.ClientMedia(audio: .offered(.opus), video: .offered(.vp9))

    mutating func offer(_ streams: [OfferedDescription.RemoteStream] = []) throws -> SessionDescription {
        try SessionDescription(parsing: session.makeOffer(streams, using: &generator))
    }

    /// An offer and its answer.
    @discardableResult
    mutating func exchange(
        _ streams: [OfferedDescription.RemoteStream] = []
    ) throws -> (offer: SessionDescription, outcome: OfferedDescription.Outcome) {
        let text = session.makeOffer(streams, using: &generator)
        let outcome = try session.apply(answer: client.answer(text))
        return (try SessionDescription(parsing: text), outcome)
    }
}

/// A member's tracks as the room knows them.
func remoteStream(
    _ id: String,
    audio: [CodecParameters] = [.standard(.opus)],
    video: [CodecParameters] = [.standard(.vp8)]
) -> OfferedDescription.RemoteStream {
    var tracks: [OfferedDescription.RemoteTrack] = []
    for (kind, formats) in [(MediaKind.audio, audio), (.video, video)] where !formats.isEmpty {
        guard let mid = MID("\(kind.rawValue)_own") else { continue }
        tracks.append(OfferedDescription.RemoteTrack(kind: kind, mid: mid, formats: formats))
    }
    return OfferedDescription.RemoteStream(id: id, tracks: tracks)
}

extension SessionDescription {
    var mids: [String] { media.map { $0.attributes.value(of: "mid") ?? "" } }
    var bundle: [String] {
        attributes.value(of: "group")?.split(separator: " ").dropFirst().map(String.init) ?? []
    }
    /// Each line as `kind direction stream`, `-` for port 0.
    var shape: [String] {
        media.map { section in
            let direction = ["sendonly", "recvonly", "inactive", "sendrecv"].first { section.attributes.has($0) } ?? ""
            let stream = section.attributes.value(of: "msid")?.split(separator: " ").first.map { " \($0)" } ?? ""
            return (section.port == 0 ? "-" : "") + "\(section.type) \(direction)\(stream)"
        }
    }
}
