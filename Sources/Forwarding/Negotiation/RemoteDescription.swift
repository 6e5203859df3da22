import MediaTypes
internal import Wire

/// Whether a peer's SDP is an offer or an answer, for its checks and their error messages.
enum DescriptionType: String { case offer, answer }

/// Which m-lines a description may have.
enum DescriptionShape {
    /// At most one of audio and one of video: WHIP and WHEP.
    case oneOfEach
    /// Any number: the server makes the offers. Sections that were offered with port 0 (`closed`) are not in use, whatever
    /// the answer says: browsers without support for port 0 answer them as if they were in use.
    case many(closed: Set<Int>)
}

/// A peer's session description, parsed and checked for the requirements of every peer: BUNDLE, rtcp-mux, ICE credentials
/// and a certificate fingerprint.
struct RemoteDescription {
    let type: DescriptionType
    let session: SessionDescription
    /// One for each m-line, in order.
    let sections: [RemoteSection]
    /// The audio and video sections that are not rejected.
    let live: [RemoteSection]
    /// The section of data channels; `nil` without a usable one in the BUNDLE group.
    let data: RemoteDataSection?
    /// The live members of the BUNDLE group and the section of data channels in it, the tagged one first; `nil` without a
    /// group.
    let bundle: [MID]?
    let credentials: ICECredentials
    let fingerprints: [Fingerprint]
    let setup: SetupRole
    /// The candidates of all bundled sections.
    let candidates: [TransportAddress]

    /// - Parameters:
    ///   - layerDirection: `send` to parse the simulcast layers that the peer sends, `recv` for those that it receives.
    ///   - shape: The permitted m-lines.
    ///   - isReaderLite: Whether the local side is an ICE lite agent; then the peer must be a full agent.
    init(
        parsing text: String,
        type: DescriptionType,
        layerDirection: StreamDirection,
        shape: DescriptionShape = .oneOfEach,
        isReaderLite: Bool = true
    ) throws(NegotiationError) {
        let session: SessionDescription
        do { session = try SessionDescription(parsing: text) } catch { throw NegotiationError(error) }
        let sessionDirection = session.direction
        var sections: [RemoteSection] = []
        for media in session.media {
            sections.append(
                try RemoteSection(media, sessionDirection: sessionDirection, layerDirection: layerDirection)
            )
        }
        try self.init(session: session, sections: sections, type: type, shape: shape, isReaderLite: isReaderLite)
    }

    /// - Parameters:
    ///   - session: The session-level lines; its media sections are ignored.
    ///   - sections: One for each m-line, in order.
    init(
        session: SessionDescription,
        sections: [RemoteSection],
        type: DescriptionType,
        shape: DescriptionShape,
        isReaderLite: Bool = true
    ) throws(NegotiationError) {
        self.type = type
        self.session = session
        var closed: Set<Int> = []
        if case .many(let indices) = shape { closed = indices }
        let isLive = { (index: Int, section: RemoteSection) in
            !closed.contains(index) && section.kind != nil && !section.isRejected
        }
        // RFC 8888 feedback is of the whole transport: every section lists it, or it counts in none.
        let isConsistent = sections.enumerated().allSatisfy {
            $0.element.hasCongestionControlFeedback || !isLive($0.offset, $0.element)
        }
        let sections = isConsistent ? sections : sections.map { $0.removingCongestionControlFeedback() }
        self.sections = sections
        let used = sections.enumerated().filter { !closed.contains($0.offset) }.map(\.element)
        live = sections.enumerated().filter(isLive).map(\.element)
        let offeredData = sections.enumerated().lazy.filter { !closed.contains($0.offset) }
            .compactMap { RemoteDataSection($0.element, index: $0.offset) }.first
        var mayLackMedia = false
        if case .oneOfEach = shape {
            try Self.checkCount(of: live, type: type)
        } else {
            mayLackMedia = offeredData != nil
        }
        try Self.checkKinds(used, live: live, mayLackMedia: mayLackMedia, type: type)
        let ordered = try Self.bundleOrder(session: session, live: live, type: type)
        let isAlone = ordered == nil && live.isEmpty
        data = offeredData.flatMap { isAlone || ordered?.group.contains($0.mid) == true ? $0 : nil }
        let members = Set(live.compactMap(\.mid) + [data?.mid].compactMap { $0 })
        bundle = ordered?.group.filter(members.contains)
        let order = ordered?.sections ?? live
        try Self.checkRTP(live, type: type)
        try Self.checkCollisions(live, type: type)
        // Sections that are not in use come last: their attributes count only when no other section has them.
        let levels = (order + sections).map(\.attributes)
        if type == .offer, isReaderLite, session.attributes.has("ice-lite") {
            throw .unsupported(
                "The offer has a=ice-lite, and the server is ICE lite too; one side must send connectivity checks: "
                    + "use a full ICE agent."
            )
        }
        let transport = try Self.transport(session: session, levels: levels, type: type)
        credentials = transport.credentials
        fingerprints = transport.fingerprints
        setup = transport.setup
        var candidates = session.attributes.values(of: "candidate").prefix(RemoteSection.candidatesMax)
            .compactMap { ICECandidateAttribute($0)?.address }
        for section in order { candidates += section.candidates }
        var seen: Set<TransportAddress> = []
        self.candidates = Array(candidates.filter { seen.insert($0).inserted }.prefix(RemoteSection.candidatesMax))
    }

    /// At most one audio and one video section.
    private static func checkCount(of live: [RemoteSection], type: DescriptionType) throws(NegotiationError) {
        for kind in MediaKind.allCases where live.count(where: { $0.kind == kind }) > 1 {
            throw .unsupported(
                "The \(type.rawValue) has more than one \(kind.rawValue) m-line; a WHIP or WHEP session has one audio "
                    + "and one video track: offer one of each, and open further sessions for more."
            )
        }
    }

    /// Only audio, video and data channels; at least one section in use; distinct MIDs.
    private static func checkKinds(
        _ sections: [RemoteSection],
        live: [RemoteSection],
        mayLackMedia: Bool,
        type: DescriptionType
    ) throws(NegotiationError) {
        for section in sections
        where section.kind == nil && section.media.type != "application" && !section.isRejected {
            throw .unsupported(
                "The \(type.rawValue) has an m=\(section.media.type) section; the server forwards only audio and video: "
                    + "remove it."
            )
        }
        guard !live.isEmpty || mayLackMedia else {
            throw .malformed(
                "The \(type.rawValue) has no audio or video m-line in use; add a track or transceiver "
                    + "before createOffer()."
            )
        }
        var mids: Set<MID> = []
        for section in sections {
            guard let mid = section.mid else { continue }
            guard mids.insert(mid).inserted else {
                throw .malformed("The \(type.rawValue) uses a=mid:\(mid) twice; each m-line needs one of its own.")
            }
        }
    }

    /// The live sections in the order of the BUNDLE group, the tagged one first (RFC 9143 §7.2), and all members of the group;
    /// `nil` without a group.
    ///
    /// Deviation: a group may name missing sections. FFmpeg always writes `BUNDLE 0 1`.
    private static func bundleOrder(
        session: SessionDescription,
        live: [RemoteSection],
        type: DescriptionType
    ) throws(NegotiationError) -> (sections: [RemoteSection], group: [MID])? {
        var groups: [GroupAttribute] = []
        for value in session.attributes.values(of: "group").prefix(SDPLimits.mediaSectionsMax) {
            guard let group = GroupAttribute(value) else {
                throw .malformed("The a=group line of the \(type.rawValue) cannot be read.")
            }
            if group.semantics == "BUNDLE" { groups.append(group) }
        }
        guard let group = groups.first else {
            guard live.count <= 1 else {
                throw .unsupported(
                    "The \(type.rawValue) has no a=group:BUNDLE line; audio and video share one transport here: "
                        + "use bundlePolicy \"max-bundle\"."
                )
            }
            return nil
        }
        var byMID: [MID: RemoteSection] = [:]
        for section in live {
            guard let mid = section.mid else {
                throw .malformed(
                    "The \(section.media.type) section has no a=mid line; BUNDLE needs one in each section."
                )
            }
            byMID[mid] = section
        }
        var ordered: [RemoteSection] = []
        for mid in group.mids {
            if let section = byMID.removeValue(forKey: mid) { ordered.append(section) }
        }
        guard byMID.isEmpty else {
            throw .unsupported(
                "a=group:BUNDLE of the \(type.rawValue) does not list every audio and video m-line; they share one "
                    + "transport here: use bundlePolicy \"max-bundle\"."
            )
        }
        var seen: Set<MID> = []
        return (ordered, group.mids.filter { seen.insert($0).inserted })
    }

    private static let protocols: Set<String> = [
        "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP",
        "RTP/AVPF", "RTP/AVP",
    ]

    /// The protocols of RFC 9429 §5.1.2, and rtcp-mux.
    private static func checkRTP(_ live: [RemoteSection], type: DescriptionType) throws(NegotiationError) {
        for section in live {
            guard protocols.contains(section.media.protocolName) else {
                throw .unsupported(
                    "The \(section.label) uses the protocol \(section.media.protocolName.prefix(40)); only WebRTC's "
                        + "UDP/TLS/RTP/SAVPF is supported."
                )
            }
            guard section.attributes.has("rtcp-mux") || section.attributes.has("rtcp-mux-only") else {
                throw .unsupported(
                    "The \(section.label) of the \(type.rawValue) has no a=rtcp-mux line; RTP and RTCP share one port "
                        + "here: use rtcpMuxPolicy \"require\"."
                )
            }
        }
    }

    /// Bundled sections must not use one payload type, extension identifier or SSRC for two things (RFC 9143 §9).
    private static func checkCollisions(_ live: [RemoteSection], type: DescriptionType) throws(NegotiationError) {
        var payloadTypes: [PayloadType: CodecName] = [:]
        var extensions: [HeaderExtensionID: String] = [:]
        var sources: Set<SSRC> = []
        for section in live {
            for codec in section.codecs {
                guard payloadTypes[codec.payloadType] ?? codec.name == codec.name else {
                    throw .malformed(
                        "Payload type \(codec.payloadType) of the \(type.rawValue) means different codecs in two "
                            + "bundled sections; give each codec a payload type of its own."
                    )
                }
                payloadTypes[codec.payloadType] = codec.name
            }
            for line in section.extensionLines {
                guard extensions[line.id] ?? line.uri == line.uri else {
                    throw .malformed(
                        "a=extmap id \(line.id) of the \(type.rawValue) means different extensions in bundled "
                            + "sections; use one id for one URI throughout."
                    )
                }
                extensions[line.id] = line.uri
            }
            for ssrc in section.allSSRCs {
                guard sources.insert(ssrc).inserted else {
                    throw .malformed(
                        "SSRC \(ssrc) of the \(type.rawValue) is in two sections; each source belongs to one."
                    )
                }
            }
        }
    }

    /// ICE credentials, fingerprints and DTLS role: the BUNDLE-tagged section first, then other sections, then the session.
    private static func transport(
        session: SessionDescription,
        levels: [[SDPAttribute]],
        type: DescriptionType
    ) throws(NegotiationError) -> (credentials: ICECredentials, fingerprints: [Fingerprint], setup: SetupRole) {
        let withICE = levels.first { $0.has("ice-ufrag") || $0.has("ice-pwd") } ?? session.attributes
        guard let credentials = try ICECredentials(attributes: withICE) else {
            throw .malformed(
                "The \(type.rawValue) has no a=ice-ufrag and a=ice-pwd lines; take the sdp string of a WebRTC peer "
                    + "connection's local description."
            )
        }
        let withFingerprint = levels.first { $0.has("fingerprint") } ?? session.attributes
        let lines = withFingerprint.values(of: "fingerprint")
        guard !lines.isEmpty else {
            throw .malformed(
                "The \(type.rawValue) has no a=fingerprint line; media is encrypted with DTLS-SRTP only: give the "
                    + "certificate's SHA-256 fingerprint."
            )
        }
        let fingerprints = lines.prefix(RemoteSection.fingerprintsMax).compactMap { Fingerprint(attribute: $0) }
        guard !fingerprints.isEmpty else {
            throw .unsupported(
                "No a=fingerprint line of the \(type.rawValue) is usable; give one of sha-256, sha-384 or sha-512 "
                    + "with all its bytes."
            )
        }
        let withSetup = levels.first { $0.has("setup") } ?? session.attributes
        // An offer without it means `active` (RFC 4145 §4.1), to which the answer is passive, as to `actpass`.
        let text = withSetup.value(of: "setup") ?? (type == .offer ? "actpass" : "active")
        guard let setup = SetupRole(rawValue: text) else {
            throw .malformed("The a=setup line of the \(type.rawValue) is unknown; use actpass, active or passive.")
        }
        guard setup != .holdconn, type == .offer || setup != .actpass else {
            throw .unsupported(
                "a=setup:\(setup.rawValue) is not possible in this \(type.rawValue); use "
                    + (type == .offer ? "actpass, active or passive." : "active or passive.")
            )
        }
        return (credentials, fingerprints, setup)
    }
}

extension SessionDescription {
    /// The session-level direction, the default of its sections; `nil` without one.
    var direction: MediaDirection? {
        attributes.lazy.compactMap { $0.value == nil ? MediaDirection(rawValue: $0.name) : nil }.first
    }
}

extension ICECredentials {
    /// Parses the attributes of one section or of the session; `nil` when both lines are missing.
    init?(attributes: [SDPAttribute]) throws(NegotiationError) {
        let fragment = attributes.value(of: "ice-ufrag")
        let password = attributes.value(of: "ice-pwd")
        if fragment == nil, password == nil { return nil }
        guard let fragment, let password else {
            throw .malformed("Only one of a=ice-ufrag and a=ice-pwd is present; both are required.")
        }
        guard let credentials = Self(usernameFragment: fragment, password: password) else {
            throw .malformed(
                "a=ice-ufrag must have 4 to 256 and a=ice-pwd 22 to 256 characters out of letters, digits, + and /."
            )
        }
        self = credentials
    }
}

extension RemoteDescription {
    /// The local DTLS role, from the peer's `a=setup`.
    var localRole: DTLSRole { setup == .passive ? .client : .server }

    /// The peer's side of the transport.
    var remoteTransport: RemoteTransport {
        RemoteTransport(credentials: credentials, fingerprints: fingerprints, localRole: localRole)
    }
}
