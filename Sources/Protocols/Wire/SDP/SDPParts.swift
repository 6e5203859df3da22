/// The text of a description, split into the session part and the media sections without parsing them.
public struct SDPParts {
    public let session: Substring
    /// Each starts with its `m=` line.
    public let sections: [Substring]

    /// O(n) in the length of the text.
    ///
    /// - Returns: `nil` when the text exceeds ``SDPLimits``.
    public init?(_ text: String) {
        guard text.utf8.count <= SDPLimits.bytesMax else { return nil }
        var starts: [String.Index] = []
        let bytes = Array(text.utf8)
        var isLineStart = true
        for (offset, byte) in bytes.enumerated() {
            if isLineStart, byte == UInt8(ascii: "m"), offset + 1 < bytes.count, bytes[offset + 1] == UInt8(ascii: "=")
            {
                guard starts.count < SDPLimits.mediaSectionsMax else { return nil }
                starts.append(text.utf8.index(text.startIndex, offsetBy: offset))
            }
            isLineStart = byte == 0x0A
        }
        session = text[..<(starts.first ?? text.endIndex)]
        let ends = starts.dropFirst() + [text.endIndex]
        sections = zip(starts, ends).map { text[$0..<$1] }
    }
}
