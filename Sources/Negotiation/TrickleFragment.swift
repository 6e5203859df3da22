public import MediaTypes
public import Wire

/// What a client's `application/trickle-ice-sdpfrag` says (RFC 8840, RFC 9725 §4.4).
public struct TrickleFragment: Hashable, Sendable {
    /// `nil` when the fragment names none. Others than the current ones ask for an ICE restart.
    public let credentials: ICECredentials?
    /// UDP candidates with an address; what cannot be used is left out, as RFC 9725 §4.4.2 wants. At most 64.
    public let candidates: [TransportAddress]
    public let endOfCandidates: Bool
}

/// Reads a trickle fragment. Credentials of the session come first, then those of the first section that has some.
///
/// - Throws: `NegotiationError.malformed`.
public func parse(fragment text: String) throws(NegotiationError) -> TrickleFragment {
    let fragment: SDPFragment
    do { fragment = try SDPFragment(parsing: text) } catch { throw NegotiationError(error) }
    let levels = [fragment.attributes] + fragment.media.map(\.attributes)
    var credentials: ICECredentials?
    var candidates: [TransportAddress] = []
    var seen: Set<TransportAddress> = []
    var endOfCandidates = false
    for attributes in levels {
        if credentials == nil { credentials = try ICECredentials(attributes: attributes) }
        if attributes.has("end-of-candidates") { endOfCandidates = true }
        for attribute in attributes where attribute.name == "candidate" {
            guard candidates.count < RemoteSection.candidatesMax,
                let address = attribute.value.flatMap({ ICECandidateAttribute($0) })?.address,
                seen.insert(address).inserted
            else { continue }
            candidates.append(address)
        }
    }
    guard credentials != nil || endOfCandidates || levels.contains(where: { $0.has("candidate") }) else {
        throw .malformed(
            "The fragment has neither a=candidate, a=end-of-candidates nor a=ice-ufrag and a=ice-pwd lines; "
                + "send what RFC 8840 section 9 shows."
        )
    }
    return TrickleFragment(credentials: credentials, candidates: candidates, endOfCandidates: endOfCandidates)
}

/// The server's side of an ICE restart, as the body of the response (RFC 9725 §4.4.3).
///
/// - Parameters:
///   - local: With the fresh credentials.
///   - mids: Of the session's live sections, the head of the bundle first.
///   - kind: Of the head of the bundle.
public func restartFragment(local: LocalTransport, mids: [MID], kind: MediaKind = .audio) -> String {
    let lines = LocalTransportLines(transport: local, setup: .passive, isLite: true)
    var session = lines.sessionAttributes
    if !mids.isEmpty { session.append(SDPAttribute("group", GroupAttribute(semantics: "BUNDLE", mids: mids).text)) }
    var attributes = mids.prefix(1).map { SDPAttribute("mid", $0.value) }
    attributes += lines.credentialAttributes + lines.candidateAttributes
    let media = MediaDescription(
        type: kind.rawValue,
        port: 9,
        protocolName: "UDP/TLS/RTP/SAVPF",
        formats: ["0"],
        attributes: attributes
    )
    return SDPFragment(attributes: session, media: [media]).serialized()
}
