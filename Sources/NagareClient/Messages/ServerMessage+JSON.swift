internal import Foundation

extension ServerMessage {
    /// An offer about a hundred members is a quarter of this.
    private static let bytesMax = 1 << 20
    /// Deeper nesting has no meaning in this protocol, and decoding it takes stack.
    private static let depthMax = 32

    /// What a text says. A message of a known shape with wrong members is ``ignored``, as is one of an unknown type.
    static func parse(_ text: String) -> ServerMessage {
        guard text.utf8.count <= bytesMax, isShallow(text) else { return .unreadable }
        let data = Data(text.utf8)
        let decoder = JSONDecoder()
        guard let kind = try? decoder.decode(Kind.self, from: data) else { return .unreadable }
        func read<Content: Decodable>(_ make: (Content) -> ServerMessage?) -> ServerMessage {
            (try? decoder.decode(Content.self, from: data)).flatMap(make) ?? .ignored
        }
        switch kind.type {
        case "redirect": return read { (body: Redirect) in .redirect(to: body.location) }
        case "offer": return read { .offer($0) }
        case "re-offer": return read { (body: Description) in .laterOffer(body.sdp, answeredAs: .reAnswer) }
        case "update": return read { (body: Description) in .laterOffer(body.sdp, answeredAs: .update) }
        case "ping": return read { (body: Ping) in .ping(wantsStatistics: body.stats ?? false) }
        case "notify": return read { .notify($0) }
        case "push": return read { (body: Push) in .push(body.data ?? .null) }
        case "response": return read { (body: Response) in body.number.map { .response($0, body.outcome) } }
        default: return .ignored
        }
    }

    private static func isShallow(_ text: String) -> Bool {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for byte in text.utf8 {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > depthMax { return false }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return true
    }

    private struct Kind: Decodable { var type: String }
    private struct Redirect: Decodable { var location: String }
    private struct Description: Decodable { var sdp: String }
    private struct Ping: Decodable { var stats: Bool? }
    private struct Push: Decodable { var data: JSONValue? }

    private struct Response: Decodable {
        struct Failure: Decodable {
            var code: Int?
            var reason: String?
            var message: String?
        }
        var id: JSONValue?
        var result: JSONValue?
        var error: Failure?

        var number: Int? { id?.text.flatMap { Int($0) } }

        var outcome: Result<JSONValue, NagareError> {
            guard let error else { return .success(result ?? .object([:])) }
            return .failure(
                NagareError(
                    reason: error.reason ?? "REFUSED",
                    message: error.message ?? "The server refused the request.",
                    code: error.code ?? 0
                )
            )
        }
    }
}
