package import Wire

/// Changes the ICE candidates in a server's description, so that clients send media to the proxy.
///
/// `text` is SDP (RFC 8839 §5.1), an SDP fragment (RFC 8840), or JSON with SDP in a string. UDP candidates get the proxy's
/// address. Others are removed, because media would pass by the proxy.
/// - Parameter replacement: returns the proxy's address that stands for a candidate's, or `nil` to remove the candidate.
package func rewriteCandidates(
    in text: String,
    replacement: (TransportAddress) -> TransportAddress?
) -> String {
    let attribute = Array("a=candidate:".utf8)
    let input = Array(text.utf8)
    var output: [UInt8] = []
    output.reserveCapacity(input.count)
    var index = 0
    while index < input.count {
        guard input[index] == attribute[0], input[index...].starts(with: attribute) else {
            output.append(input[index])
            index += 1
            continue
        }
        let isLineEnd = { (byte: UInt8) in [0x0D, 0x0A, 0x22, 0x5C].contains(byte) }
        let end = input[index...].firstIndex(where: isLineEnd) ?? input.endIndex
        if let line = rewritten(String(decoding: input[index..<end], as: UTF8.self), replacement) {
            output += line.utf8
            index = end
        } else {
            index = end + lineBreakLength(input[end...])
        }
    }
    return String(decoding: output, as: UTF8.self)
}

/// `a=candidate:FOUNDATION COMPONENT TRANSPORT PRIORITY ADDRESS PORT typ …`
private func rewritten(_ line: String, _ replacement: (TransportAddress) -> TransportAddress?) -> String? {
    var fields = line.split(separator: " ")
    guard fields.count >= 8, fields[2].lowercased() == "udp", let ip = IPAddress(fields[4]),
        let port = UInt16(fields[5]),
        let address = replacement(TransportAddress(ip: ip, port: port))
    else { return nil }
    fields[4] = "\(address.ip)"[...]
    fields[5] = "\(address.port)"[...]
    return fields.joined(separator: " ")
}

/// The length of the line break that `bytes` start with: CRLF or LF, or their escapes in JSON.
private func lineBreakLength(_ bytes: ArraySlice<UInt8>) -> Int {
    let breaks = ["\r\n", "\\r\\n", "\n", "\\n", "\r", "\\r"]
    return breaks.first { bytes.starts(with: $0.utf8) }?.utf8.count ?? 0
}
