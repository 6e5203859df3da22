import JSON

/// A message from a client. Unknown types are ``ignored``, because clients of other versions may send them.
enum SoraClientMessage: Hashable, Sendable {
    case connect(SoraConnect)
    /// The answer to an offer: `answer`, `re-answer`, or `update` in early SDKs.
    case answer(sdp: String)
    /// A candidate. It is ignored, because an ICE lite agent learns addresses from connectivity checks.
    case candidate
    /// The answer to a `ping`, with the client's statistics if the `ping` asked for them.
    case pong(reports: JSONValue?)
    /// The answer to `req-stats`.
    case statistics(reports: JSONValue?)
    case disconnect(reason: String?)
    case request([String: JSONValue], byteCount: Int)
    case ignored(type: String)

    /// The maximum length of a `candidate` message, in bytes. Typical ones have 200.
    static let candidateBytesMax = 4096
    /// The maximum length of a `pong` whose statistics are stored, in bytes.
    static let reportsBytesMax = 256 * 1024

    /// Whether a text starts or ends like a `pong` with further members. SDKs write the type first, or last if their encoder
    /// sorts members. This recognizes no other order.
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

    /// - Parameter limits: The limits of the JSON parser.
    /// - Throws: The close for an invalid message.
    init(decoding text: String, limits: JSONLimits = .standard) throws(SoraClose) {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: text, limits: limits)
        } catch {
            let fault =
                error == .malformed ? "is not JSON" : "is too long, has too many values, or is nested too deeply"
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
            case "stats":
                let reports = byteCount <= Self.reportsBytesMax ? fields.value("reports") : nil
                self = .statistics(reports: reports?.array == nil ? nil : reports)
            case "request": self = .request(fields.members, byteCount: byteCount)
            case "disconnect": self = .disconnect(reason: try? fields.string("reason"))
            default: self = .ignored(type: type)
            }
        } catch {
            throw SoraClose(
                .invalidMessage,
                "A message of type \"\(type)\" is refused: \(error.message)",
                mistake: "in \"\(type)\", \(error.message)"
            )
        }
    }
}
