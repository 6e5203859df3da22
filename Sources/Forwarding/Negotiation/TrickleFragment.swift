public import MediaTypes
public import Wire

/// The content of an `application/trickle-ice-sdpfrag` from a client (RFC 8840, RFC 9725 §4.4).
public struct TrickleFragment: Hashable, Sendable {
    /// `nil` when the fragment has none. Credentials other than the current ones request an ICE restart.
    public let credentials: ICECredentials?
    /// UDP candidates with an address, at most 64. Unusable ones are ignored (RFC 9725 §4.4.2).
    public let candidates: [TransportAddress]
    public let endOfCandidates: Bool
}

extension TrickleFragment {
    /// Parses a fragment. Session-level credentials come first, then those of the first section that has some.
    ///
    /// - Throws: `NegotiationError.malformed`.
    public init(parsing text: String) throws(NegotiationError) {
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
                "The fragment has no a=candidate, a=end-of-candidates, a=ice-ufrag and a=ice-pwd lines; "
                    + "send what RFC 8840 section 9 shows."
            )
        }
        self.init(credentials: credentials, candidates: candidates, endOfCandidates: endOfCandidates)
    }
}

/// The response body of an ICE restart (RFC 9725 §4.4.3).
///
/// - Parameters:
///   - local: The server's side of the transport, with the new credentials.
///   - mids: The MIDs of the live sections, the BUNDLE-tagged one first.
///   - kind: The kind of the BUNDLE-tagged section.
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
