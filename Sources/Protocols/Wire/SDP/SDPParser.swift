/// Why a text was not accepted as a session description.
public enum SDPParseError: Error, Hashable, Sendable {
    /// More bytes than `SDPLimits.bytesMax`.
    case tooLarge(byteCount: Int)
    /// Not UTF-8.
    case notUTF8
    /// The text is empty or white space.
    case empty
    /// A line, counted from 1, is not `letter=value` or contains a control character.
    case malformedLine(number: Int)
    /// A line is longer than `SDPLimits.lineBytesMax`.
    case lineTooLong(number: Int)
    /// The text does not begin with `v=0`.
    case missingVersion
    /// There is no `o=` line before the first media section.
    case missingOrigin
    /// An `m=`, `o=` or `a=` line is malformed.
    case malformedField(kind: Character, number: Int)
    case tooManyMediaSections
    case tooManyAttributes
    /// More formats on one `m=` line than `SDPLimits.formatsMax`.
    case tooManyFormats(number: Int)
}

extension SDPParseError {
    /// One sentence for the author of the description.
    public var message: String {
        switch self {
        case .tooLarge(let byteCount):
            "The SDP has \(byteCount) bytes; at most \(SDPLimits.bytesMax) are read."
        case .notUTF8: "The SDP is not UTF-8 text."
        case .empty: "The SDP is empty."
        case .malformedLine(let number): "Line \(number) of the SDP is not of the form letter=value."
        case .lineTooLong(let number):
            "Line \(number) of the SDP is longer than \(SDPLimits.lineBytesMax) bytes."
        case .missingVersion: "The SDP does not begin with v=0; send the description's sdp string and nothing else."
        case .missingOrigin: "The SDP has no o= line."
        case .malformedField(let kind, let number): "The \(kind)= line at line \(number) of the SDP cannot be read."
        case .tooManyMediaSections: "The SDP has more than \(SDPLimits.mediaSectionsMax) m= lines."
        case .tooManyAttributes: "The SDP has more than \(SDPLimits.attributesMax) a= lines."
        case .tooManyFormats(let number):
            "The m= line at line \(number) of the SDP lists more than \(SDPLimits.formatsMax) formats."
        }
    }
}

/// The limits of a session description. The largest offer of a browser, with all codecs and ten sections, has about 100
/// KiB. An answer with the most sections and four video codecs in each has about 350 KiB and 10,000 attributes.
public enum SDPLimits {
    public static let bytesMax = 448 * 1024
    public static let lineBytesMax = 8 * 1024
    public static let mediaSectionsMax = 256
    /// In the session and all sections.
    public static let attributesMax = 16_384
    /// An RTP section can name each of the 128 payload types once.
    public static let formatsMax = 128
    /// `b=` lines of the session or of one section; further ones are ignored.
    public static let bandwidthsMax = 16
}

extension SessionDescription {
    /// Parses a description with CR LF or LF line ends. Unknown line types and any order are accepted, except that
    /// `v=0` comes first and that the lines of a section follow its `m=` line.
    ///
    /// Time and memory are linear in the length of the text. A text above the limit is refused before it is parsed.
    public init(parsing text: String) throws(SDPParseError) {
        var sections = try SDPSections(parsing: text)
        guard sections.session.first?.type == UInt8(ascii: "v") else { throw .missingVersion }
        self.init(origin: SDPOrigin(sessionID: 0, version: 0))
        var origin: SDPOrigin?
        for line in sections.session {
            switch line.type {
            case UInt8(ascii: "v"):
                guard line.value == "0" else { throw .missingVersion }
            case UInt8(ascii: "o"):
                guard let parsed = SDPOrigin(parsing: line.value) else {
                    throw .malformedField(kind: "o", number: line.number)
                }
                origin = parsed
            case UInt8(ascii: "s"): name = line.value.isEmpty ? "-" : line.value
            case UInt8(ascii: "c"): connection = line.value
            case UInt8(ascii: "b"):
                if bandwidths.count < SDPLimits.bandwidthsMax { bandwidths.append(line.value) }
            case UInt8(ascii: "t"): timing = line.value
            default: break
            }
        }
        guard let origin else { throw .missingOrigin }
        self.origin = origin
        attributes = sections.attributes
        media = sections.takeMedia()
    }

    /// Parses a description from UTF-8 bytes, such as an HTTP body.
    public init(parsing bytes: some Collection<UInt8>) throws(SDPParseError) {
        guard bytes.count <= SDPLimits.bytesMax else { throw .tooLarge(byteCount: bytes.count) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .notUTF8 }
        try self.init(parsing: text)
    }
}

extension SDPOrigin {
    init?(parsing value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 3)
        guard fields.count == 4 else { return nil }
        let isNumber = { (field: Substring) in
            field.utf8.count <= 40 && field.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard isNumber(fields[1]), isNumber(fields[2]) else { return nil }
        self.init(
            username: String(fields[0]),
            sessionID: String(fields[1]),
            version: String(fields[2]),
            address: String(fields[3])
        )
    }
}

/// The part that descriptions and fragments share: the lines of the session and of each section.
struct SDPSections {
    /// The session's lines other than `a=`.
    private(set) var session: [SDPLine] = []
    /// The session's attributes.
    private(set) var attributes: [SDPAttribute] = []
    private var media: [MediaDescription] = []
    private var attributeCount = 0

    init(parsing text: String) throws(SDPParseError) {
        guard text.utf8.count <= SDPLimits.bytesMax else { throw .tooLarge(byteCount: text.utf8.count) }
        var lines = SDPLines(text)
        var isEmpty = true
        while let line = try lines.next() {
            isEmpty = false
            try add(line)
        }
        if isEmpty { throw .empty }
    }

    mutating func takeMedia() -> [MediaDescription] {
        defer { media = [] }
        return media
    }

    private mutating func add(_ line: SDPLine) throws(SDPParseError) {
        switch line.type {
        case UInt8(ascii: "m"):
            guard media.count < SDPLimits.mediaSectionsMax else { throw .tooManyMediaSections }
            media.append(try MediaDescription(mediaLine: line))
        case UInt8(ascii: "a"):
            guard attributeCount < SDPLimits.attributesMax else { throw .tooManyAttributes }
            attributeCount += 1
            guard let attribute = SDPAttribute(parsing: line.value) else {
                throw .malformedField(kind: "a", number: line.number)
            }
            if media.isEmpty {
                attributes.append(attribute)
            } else {
                media[media.count - 1].attributes.append(attribute)
            }
        case UInt8(ascii: "c") where !media.isEmpty: media[media.count - 1].connection = line.value
        case UInt8(ascii: "b") where !media.isEmpty:
            if media[media.count - 1].bandwidths.count < SDPLimits.bandwidthsMax {
                media[media.count - 1].bandwidths.append(line.value)
            }
        default:
            guard media.isEmpty else { return }
            guard session.count < SDPLimits.attributesMax else { throw .tooManyAttributes }
            session.append(line)
        }
    }
}

extension SDPAttribute {
    /// From the text after `a=`; `nil` when the name is not a token (RFC 8866 §9 `att-field`).
    init?(parsing text: String) {
        let (name, value) = text.divided(at: ":") ?? (text[...], nil)
        guard !name.isEmpty, name.utf8.allSatisfy(isTokenCharacter) else { return nil }
        self.init(String(name), value.map(String.init))
    }
}

extension MediaDescription {
    init(mediaLine line: SDPLine) throws(SDPParseError) {
        let fields = line.value.parts(separatedBy: " ", maxSplits: SDPLimits.formatsMax + 3)
        guard fields.count <= SDPLimits.formatsMax + 3 else { throw .tooManyFormats(number: line.number) }
        guard fields.count >= 4, fields[0].utf8.allSatisfy(isTokenCharacter),
            let port = fields[1].parts(separatedBy: "/", maxSplits: 1).first.flatMap({ UInt16($0) })
        else { throw .malformedField(kind: "m", number: line.number) }
        self.init(
            type: String(fields[0]),
            port: port,
            protocolName: String(fields[2]),
            formats: fields[3...].map(String.init)
        )
    }
}

/// One line: its type letter and its value.
struct SDPLine {
    let type: UInt8
    let value: String
    /// Counted from 1.
    let number: Int
}

/// Iterates over the lines of a text.
struct SDPLines {
    private let bytes: [UInt8]
    private var position = 0
    private var number = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    /// The next line that is not blank; `nil` at the end.
    mutating func next() throws(SDPParseError) -> SDPLine? {
        while position < bytes.count {
            number += 1
            let start = position
            while position < bytes.count, bytes[position] != 0x0A { position += 1 }
            var end = position
            position += 1
            if end > start, bytes[end - 1] == 0x0D { end -= 1 }
            guard end - start <= SDPLimits.lineBytesMax else { throw .lineTooLong(number: number) }
            while end > start, bytes[end - 1] == 0x20 { end -= 1 }
            guard end > start else { continue }
            let line = bytes[start..<end]
            guard end - start >= 2, (0x61...0x7A).contains(line[start]), line[start + 1] == 0x3D,
                line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
            else { throw .malformedLine(number: number) }
            return SDPLine(
                type: line[start],
                value: String(decoding: line.dropFirst(2), as: UTF8.self),
                number: number
            )
        }
        return nil
    }
}
