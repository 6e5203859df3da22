import Foundation
import JSON
import Logging

/// One entry of the log as a line.
///
/// Values come from clients, too. Nothing in them can end the line, look like another field or control a terminal.
struct LogLine {
    let time: Date
    let level: Logger.Level
    /// The name of the logger.
    let label: String
    let message: String
    /// The fields by name.
    let metadata: Logger.Metadata

    private static let timeStyle = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    /// Names that a JSON line has itself. A field with such a name gets `_` behind it.
    private static let ownNames: Set<String> = ["time", "level", "logger", "message"]

    /// The line without its end.
    func text(_ format: LogFormat) -> String {
        switch format {
        case .text: plainText
        case .json: jsonText
        }
    }

    private var fields: [(name: String, value: Logger.MetadataValue)] {
        metadata.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    }

    private var plainText: String {
        var line = "\(time.formatted(Self.timeStyle)) \(level.rawValue) \(label): "
        line += message.isBareMessage ? message : message.quoted
        for (name, value) in fields {
            let text = value.text
            line += " \(name.isBareValue ? name : name.quoted)=\(text.isBareValue ? text : text.quoted)"
        }
        return line
    }

    private var jsonText: String {
        var members: [(String, JSONValue)] = [
            ("time", .string(time.formatted(Self.timeStyle))),
            ("level", .string(level.rawValue)),
            ("logger", .string(label)),
            ("message", .string(message)),
        ]
        members += fields.map { (Self.ownNames.contains($0.name) ? "\($0.name)_" : $0.name, $0.value.json) }
        return "{" + members.map { "\(JSONValue.string($0).text):\($1.text)" }.joined(separator: ",") + "}"
    }
}

extension Logger.MetadataValue {
    fileprivate var text: String {
        switch self {
        case .string(let text): text
        case .stringConvertible(let value): value.description
        case .array, .dictionary: json.text
        }
    }

    fileprivate var json: JSONValue {
        switch self {
        case .string(let text): .string(text)
        case .stringConvertible(let value): .string(value.description)
        case .array(let values): .array(values.map(\.json))
        case .dictionary(let members): .object(members.mapValues(\.json))
        }
    }
}

extension String {
    /// Whether the text can stand as a value without quotes.
    fileprivate var isBareValue: Bool {
        !isEmpty && unicodeScalars.allSatisfy { $0.isHarmless && $0 != " " && $0 != "=" && $0 != "\"" && $0 != "\\" }
    }

    /// Whether the text can stand as a message without quotes: it cannot be taken for fields.
    fileprivate var isBareMessage: Bool {
        !isEmpty && unicodeScalars.allSatisfy { $0.isHarmless && $0 != "=" && $0 != "\"" && $0 != "\\" }
    }

    /// The text in quotes, with the escapes of a JSON string.
    fileprivate var quoted: String {
        var text = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.isHarmless: text.unicodeScalars.append(scalar)
            default: for unit in String(scalar).utf16 { text += unit.escape }
            }
        }
        return text + "\""
    }
}

extension UInt16 {
    /// `\u` and four hexadecimal digits.
    fileprivate var escape: String {
        let digits = String(self, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}

extension Unicode.Scalar {
    /// Whether a terminal shows it and does nothing else.
    fileprivate var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}
