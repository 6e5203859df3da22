import JSON

/// What a client says. Types that are not known are ``ignored``, as clients of other versions may send them.
enum SoraClientMessage: Hashable, Sendable {
    case connect(SoraConnect)
    /// The answer to an offer: `answer`, `re-answer`, or `update` as early SDKs say.
    case answer(sdp: String)
    /// A candidate. The server is an ICE-lite one, to which clients' checks say all that matters.
    case candidate
    /// With the client's statistics where it was asked for them.
    case pong(reports: JSONValue?)
    case disconnect(reason: String?)
    case ignored(type: String)

    /// The longest candidate with its keys, in bytes: real ones have 200.
    static let candidateBytesMax = 4096
    /// The longest statistics that are kept, in bytes.
    static let reportsBytesMax = 256 * 1024

    /// Whether a text is a `pong` with more in it than its type, as far as its first or its last bytes say. SDKs write the
    /// type first, or last where their encoder sorts the members; one that is written otherwise is only told by parsing.
    static func isStatistics(_ text: String) -> Bool {
        var bytes = text.utf8[...]
        func skip(_ token: String) -> Bool {
            bytes = bytes.drop { $0 == 0x20 || 0x09...0x0D ~= $0 }
            guard bytes.starts(with: token.utf8) else { return false }
            bytes = bytes.dropFirst(token.utf8.count)
            return true
        }
        guard skip("{") else { return false }
        if skip("\"type\"") { return skip(":") && skip("\"pong\"") && skip(",") }
        let end = text.utf8.suffix(32).filter { $0 != 0x20 && !(0x09...0x0D ~= $0) }
        return end.reversed().starts(with: ",\"type\":\"pong\"}".utf8.reversed())
    }

    /// - Parameter limits: how much the message may hold.
    /// - Throws: the refusal of a message that is not one.
    init(decoding text: String, limits: JSONLimits = .standard) throws(SoraClose) {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: text, limits: limits)
        } catch {
            let fault = error == .malformed ? "is not JSON" : "is too long, has too many values, or they lie too deep"
            throw SoraClose(.invalidJSON, "A message \(fault).")
        }
        guard let members = value.object else { throw SoraClose(.invalidMessage, "A message is not a JSON object.") }
        guard let typeValue = members["type"] else { throw SoraClose(.missingType, "A message has no \"type\".") }
        guard let type = typeValue.string else {
            throw SoraClose(.invalidMessage, "The \"type\" of a message is not a string.")
        }
        let fields = JSONFields(members)
        if type == "connect" {
            self = .connect(try SoraConnect(fields))
        } else {
            try self.init(type: type, fields: fields, byteCount: text.utf8.count)
        }
    }

    private init(type: String, fields: JSONFields, byteCount: Int) throws(SoraClose) {
        do throws(JSONShapeError) {
            switch type {
            case "answer", "re-answer", "update":
                self = .answer(sdp: try fields.requiredString("sdp", bytesMax: .max))
            case "candidate":
                guard byteCount <= Self.candidateBytesMax else {
                    throw JSONShapeError("it may have at most \(Self.candidateBytesMax) bytes.")
                }
                self = .candidate
            case "pong":
                let reports = byteCount <= Self.reportsBytesMax ? fields.value("stats") : nil
                self = .pong(reports: reports?.array == nil ? nil : reports)
            case "disconnect": self = .disconnect(reason: try? fields.string("reason"))
            default: self = .ignored(type: type)
            }
        } catch {
            throw SoraClose(.invalidMessage, "A message of type \"\(type)\" is refused: \(error.sentence)")
        }
    }
}
