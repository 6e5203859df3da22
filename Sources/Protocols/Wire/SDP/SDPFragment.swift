/// An `application/trickle-ice-sdpfrag` body (RFC 8840 §9): session attributes and media sections, without the first
/// lines of a session description.
public struct SDPFragment: Hashable, Sendable {
    public var attributes: [SDPAttribute]
    public var media: [MediaDescription]

    public init(attributes: [SDPAttribute] = [], media: [MediaDescription] = []) {
        self.attributes = attributes
        self.media = media
    }

    /// Parses a fragment with CR LF or LF line ends, with the limits of ``SDPLimits``. Session lines other than `a=`
    /// are ignored.
    public init(parsing text: String) throws(SDPParseError) {
        var sections = try SDPSections(parsing: text)
        attributes = sections.attributes
        media = sections.takeMedia()
    }

    /// The fragment as text with CR LF line ends.
    public func serialized() -> String {
        var text = ""
        for attribute in attributes { attribute.write(to: &text) }
        for section in media { section.write(to: &text) }
        return text
    }
}
