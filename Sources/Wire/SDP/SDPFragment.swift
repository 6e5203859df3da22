/// An `application/trickle-ice-sdpfrag` body (RFC 8840 §9): session attributes, then media sections, without the
/// lines that a whole description begins with.
public struct SDPFragment: Hashable, Sendable {
    public var attributes: [SDPAttribute]
    public var media: [MediaDescription]

    public init(attributes: [SDPAttribute] = [], media: [MediaDescription] = []) {
        self.attributes = attributes
        self.media = media
    }

    /// Reads a fragment with CR LF or LF line ends, under the same limits as a description. Lines other than `a=` and
    /// `m=` and those of a section are skipped.
    public init(parsing text: String) throws(SDPParseError) {
        var sections = try SDPSections(parsing: text)
        attributes = sections.attributes
        media = sections.takeMedia()
    }

    /// The fragment as text, each line ended by CR LF.
    public func serialized() -> String {
        var text = ""
        for attribute in attributes { attribute.write(to: &text) }
        for section in media { section.write(to: &text) }
        return text
    }
}
