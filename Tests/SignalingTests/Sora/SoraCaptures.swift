import Foundation
import JSON
import Testing

@testable import Signaling

/// The captured messages of a native SDK on one connection, with its answer to an offer of another server.
struct CapturedExchange: Sendable, CustomTestStringConvertible {
    let name: String
    let connect: String
    /// An SDP answer; ``SDPAnswer`` fits it to another offer.
    let answer: String
    /// Candidates and `disconnect`.
    let after: [String]
    var testDescription: String { name }

    static let all: [Self] = {
        guard let url = Bundle.module.url(forResource: "exchanges", withExtension: "json"),
            let data = try? Data(contentsOf: url),
            let list = try? JSONValue(parsing: Array(data)).array
        else { return [] }
        return list.compactMap { value in
            guard let name = value["name"]?.string, let connect = value["connect"],
                let answer = value["answer"]?.string, let after = value["after"]?.array
            else { return nil }
            return Self(name: name, connect: connect.text, answer: answer, after: after.map(\.text))
        }
    }()

    static func named(_ name: String) throws -> Self { try #require(all.first { $0.name == name }) }
}
