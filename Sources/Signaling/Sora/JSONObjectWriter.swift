import JSON

/// Serializes one JSON object, with members in the order of the calls.
struct JSONObjectWriter {
    private var written = "{"

    /// The object with its closing brace.
    var text: String { written + "}" }

    /// - Parameter key: A string without characters that JSON escapes.
    private mutating func begin(_ key: StaticString) {
        written += written.utf8.count > 1 ? ",\"" : "\""
        written += key.description
        written += "\":"
    }

    mutating func add(_ key: StaticString, _ value: String) { add(key, json: jsonString(value)) }
    mutating func add(_ key: StaticString, _ value: Bool) { add(key, json: value ? "true" : "false") }
    mutating func add(_ key: StaticString, _ value: Int) { add(key, json: String(value)) }

    /// Adds `null` for `nil`.
    mutating func add(_ key: StaticString, orNull value: String?) {
        add(key, json: value.map(jsonString) ?? "null")
    }

    /// - Parameter json: The text of a JSON value.
    mutating func add(_ key: StaticString, json: String) {
        begin(key)
        written += json
    }

    /// Adds no member for `nil`.
    mutating func add(_ key: StaticString, ifPresent json: String?) {
        if let json { add(key, json: json) }
    }
}

/// The JSON array of the given JSON texts.
func jsonArray(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

/// A string as JSON text with quotation marks. A string without characters to escape needs no encoder.
func jsonString(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy { byte in
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
    return isPlain ? "\"\(value)\"" : JSONValue.string(value).text
}
