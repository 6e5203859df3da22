/// Answers to the server's offers, made from their lines.
enum SDPAnswer {
    /// The answer of a client that sends in its own sections and accepts all others.
    ///
    /// - Parameters:
    ///   - own: the names of the sections that the client sends in.
    ///   - refused: the names of sections that it does not want.
    ///   - lacking: the names of sections that it has no codec of.
    static func make(
        to offer: String,
        own: [String],
        refused: Set<String> = [],
        lacking: Set<String> = []
    ) -> String {
        let parts = sections(offer)
        var lines = [
            "v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0",
        ]
        lines += parts[0].filter { $0.hasPrefix("a=group:") }
        var ssrc = 1000
        for section in parts.dropFirst() {
            let mid = value("mid", section) ?? ""
            let isOpen = !section[0].contains(" 0 ") && !section.contains("a=inactive")
            if lacking.contains(mid) {
                lines += ["m=\(section[0].hasPrefix("m=audio") ? "audio" : "video") 0 UDP/TLS/RTP/SAVPF 0"]
                lines += ["a=mid:\(mid)", "a=inactive"]
                continue
            }
            lines.append(section[0])
            lines += ["c=IN IP4 0.0.0.0", "a=ice-ufrag:UfRg", "a=ice-pwd:passwordpasswordpassword"]
            lines.append("a=fingerprint:sha-256 " + (0..<32).map { _ in "AB" }.joined(separator: ":"))
            lines += ["a=setup:active", "a=mid:\(mid)", "a=rtcp-mux"]
            lines += section.filter { line in
                ["a=rtpmap:", "a=fmtp:", "a=rtcp-fb:", "a=extmap:"].contains { line.hasPrefix($0) }
            }
            if own.contains(mid) {
                lines += ["a=sendonly", "a=msid:stream track"]
                let rids = section.filter { $0.hasPrefix("a=rid:") }
                lines += rids.map { $0.replacing(" recv", with: " send") }
                lines += section.filter { $0.hasPrefix("a=simulcast:") }.map { $0.replacing(":recv", with: ":send") }
                if rids.isEmpty {
                    lines.append("a=ssrc:\(ssrc) cname:client")
                    ssrc += 1
                }
            } else {
                lines.append(isOpen && !refused.contains(mid) ? "a=recvonly" : "a=inactive")
            }
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// A captured answer with the names and the numbers of layers that another offer has.
    static func fitted(_ answer: String, to offer: String) -> String {
        let offered = sections(offer)
        var parts = sections(answer)
        for index in parts.indices where index < offered.count {
            parts[index] = parts[index].map { line in
                if line.hasPrefix("a=group:") { return offered[0].first { $0.hasPrefix("a=group:") } ?? line }
                if line.hasPrefix("a=mid:") { return "a=mid:" + (value("mid", offered[index]) ?? "") }
                return line
            }
        }
        return parts.joined().joined(separator: "\r\n") + "\r\n"
    }

    /// The session's lines, and those of each section.
    static func sections(_ sdp: String) -> [[String]] {
        sdp.split(whereSeparator: \.isNewline).map(String.init).reduce(into: [[]]) { parts, line in
            if line.hasPrefix("m=") { parts.append([]) }
            parts[parts.count - 1].append(line)
        }
    }

    static func value(_ attribute: String, _ section: [String]) -> String? {
        section.first { $0.hasPrefix("a=\(attribute):") }.map { String($0.dropFirst(attribute.count + 3)) }
    }
}
