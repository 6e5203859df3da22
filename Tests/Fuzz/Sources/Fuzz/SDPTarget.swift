import Base
import DTLS
import MediaTypes
import Negotiation
import Wire

/// The server's transport parameters in all negotiations.
enum Sample {
    static let fingerprintText =
        "sha-256 2B:0C:51:9E:77:A4:13:D8:60:F5:3A:88:CE:04:B9:71:5D:E2:46:9A:0F:33:C7:18:64:AB:F0:29:D5:8E:72:1B"
    static let local = LocalTransport(
        credentials: credentials("serv", "a server's password, long"),
        fingerprint: fingerprint,
        candidates: [
            TransportAddress(ip: IPAddress(v4: 0xC633_6407), port: 7_000),
            TransportAddress(ip: IPAddress(high: 0x2001_0DB8 << 32, low: 7), port: 7_000),
        ]
    )
    static let client = LocalTransport(
        credentials: credentials("clnt", "a client's password, long"),
        fingerprint: fingerprint,
        candidates: [TransportAddress(ip: IPAddress(v4: 0xC000_0201), port: 40_000)]
    )

    static var fingerprint: Fingerprint {
        guard let fingerprint = Fingerprint(attribute: fingerprintText) else { fatalError("not a fingerprint") }
        return fingerprint
    }

    /// Credentials from the letters in `password`.
    static func credentials(_ fragment: String, _ password: String) -> ICECredentials {
        let letters = String(password.filter { $0.isLetter && $0.isASCII })
        guard let made = ICECredentials(usernameFragment: fragment, password: letters + letters) else {
            fatalError("not credentials")
        }
        return made
    }

    static let publishOffer = makePublish()
    static let watchOffer = makeWatch()

    private static func makePublish() -> ClientOffer {
        var generator = SeededGenerator(seed: 1)
        return .publish(
            transport: client,
            video: [.standard(.vp8), .standard(.vp9), .standard(.av1), .standard(.h264)],
            using: &generator
        )
    }
    private static func makeWatch() -> ClientOffer {
        var generator = SeededGenerator(seed: 2)
        return .watch(transport: client, using: &generator)
    }
}

/// A session description: parsed, serialized and parsed again; negotiated in both roles of the server, and applied as
/// an answer in both roles of the client.
func fuzzSDP(_ bytes: RawSpan) {
    let array = bytes.array()
    let description: SessionDescription
    do { description = try SessionDescription(parsing: array) } catch {
        require(!error.message.isEmpty, "an error has a sentence")
        return
    }
    let text = description.serialized()
    do {
        let again = try SessionDescription(parsing: text)
        require(again == description, "what was written reads the same")
        require(again.serialized() == text, "writing settles")
    } catch {
        // CR LF takes more bytes than LF.
        if case .tooLarge = error { return }
        if case .lineTooLong = error { return }
        fatalError("broken: what was written reads: \(error)")
    }
    for section in [description.attributes] + description.media.map(\.attributes) {
        for attribute in section { readAttribute(attribute.value ?? "") }
    }
    negotiate(String(decoding: array, as: UTF8.self))
}

private func negotiate(_ offer: String) {
    var published: [ReceiveTrackParameters] = []
    do {
        let result = try PublishOffer(parsing: offer).answer(local: Sample.local, sessionID: 7)
        published = result.receive
        requireReadable(result.answer)
        _ = try? Sample.publishOffer.parse(answer: result.answer)
    } catch {
        require(!error.message.isEmpty, "an error has a sentence")
    }
    var generator = SeededGenerator(seed: 9)
    do {
        let result = try WatchOffer(parsing: offer).answer(
            local: Sample.local,
            streamID: "a stream",
            sessionID: 7,
            using: &generator
        )
        requireReadable(result.answer)
        for slot in result.send {
            for source in published.flatMap(\.codecs) {
                guard let chosen = payloadFormat(for: source, in: slot) else { continue }
                require(slot.codecs.contains(chosen), "a format of the slot is chosen")
            }
        }
    } catch {
        require(!error.message.isEmpty, "an error has a sentence")
    }
    _ = try? Sample.publishOffer.parse(answer: offer)
    _ = try? Sample.watchOffer.parse(answer: offer)
}

private func requireReadable(_ answer: String) {
    do { _ = try SessionDescription(parsing: answer) } catch {
        fatalError("broken: an answer reads: \(error)")
    }
}

/// Parses one value as every attribute; a parsed attribute must survive serialization.
private func readAttribute(_ value: String) {
    func check<Attribute: Equatable>(
        _ parse: (String) -> Attribute?,
        _ text: (Attribute) -> String,
        _ name: String
    ) {
        guard let first = parse(value) else { return }
        require(parse(text(first)) == first, "\(name) stays: \(value)")
    }
    check({ RTPMapAttribute($0) }, \.text, "rtpmap")
    check({ FormatParametersAttribute($0) }, \.text, "fmtp")
    check({ FeedbackAttribute($0) }, \.text, "rtcp-fb")
    check({ ExtensionMapAttribute($0) }, \.text, "extmap")
    check({ RIDAttribute($0) }, \.text, "rid")
    check({ SimulcastAttribute($0) }, \.text, "simulcast")
    check({ SSRCAttribute($0) }, \.text, "ssrc")
    check({ SSRCGroupAttribute($0) }, \.text, "ssrc-group")
    check({ GroupAttribute($0) }, \.text, "group")
    check({ Fingerprint(attribute: $0) }, \.description, "fingerprint")
    check({ TransportAddress($0) }, \.description, "address")
    check({ IPAddress($0) }, \.description, "IP address")
    _ = ICECandidateAttribute(value)
}

/// A trickle ICE fragment: parsed as on the server, serialized and parsed again.
func fuzzTrickle(_ bytes: RawSpan) {
    guard let text = String(validating: bytes.array(), as: UTF8.self) else { return }
    do {
        let parsed = try TrickleFragment(parsing: text)
        require(parsed.candidates.count <= 64, "candidates are bounded")
        let mids = ["0", "1"].compactMap { MID($0) }
        if let credentials = parsed.credentials {
            let local = LocalTransport(
                credentials: credentials,
                fingerprint: Sample.fingerprint,
                candidates: parsed.candidates
            )
            let answer = restartFragment(local: local, mids: mids)
            let again = try TrickleFragment(parsing: answer)
            require(again.credentials == credentials, "credentials stay")
            require(again.candidates == parsed.candidates, "candidates stay")
        }
    } catch {
        require(!error.message.isEmpty, "an error has a sentence")
    }
    guard let fragment = try? SDPFragment(parsing: text) else { return }
    do {
        let again = try SDPFragment(parsing: fragment.serialized())
        require(again == fragment, "what was written reads the same")
    } catch {
        // A fragment of ignored lines becomes empty.
        require(error == .empty, "what was written reads: \(error)")
    }
}
