import Foundation
import JSON

@testable import Operators
@testable import nagare

/// A file of the documentation that is generated from the code.
enum ReferencePage: String, CaseIterable {
    case settings = "Sources/nagare/Nagare.docc/Settings.md"
    case limits = "Sources/nagare/Nagare.docc/Limits.md"
    case metrics = "Sources/nagare/Nagare.docc/Metrics.md"
    case openAPI = "Sources/nagare/Nagare.docc/openapi.json"

    /// From the repository's top.
    var path: String { rawValue }

    func contents() throws -> String {
        switch self {
        case .settings: SettingsReference.page
        case .limits: SettingsReference.limits
        case .metrics: MetricsReference(of: NodeSnapshot.complete.page).page
        case .openAPI: try Self.indented(OperatorsAPI.document)
        }
    }

    private static func indented(_ value: JSONValue) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(value.text.utf8))
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try JSONSerialization.data(withJSONObject: object, options: options), as: UTF8.self)
            + "\n"
    }
}
