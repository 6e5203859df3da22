import JSON

/// Writes one JSON object member by member, in the order of the calls.
struct JSONObjectWriter {
    private var written = "{"

    /// The object with its closing brace.
    var text: String { written + "}" }

    /// - Parameter key: has nothing that JSON would escape.
    private mutating func begin(_ key: StaticString) {
        written += written.utf8.count > 1 ? ",\"" : "\""
        written += key.description
        written += "\":"
    }

    mutating func add(_ key: StaticString, _ value: String) { add(key, json: jsonString(value)) }
    mutating func add(_ key: StaticString, _ value: Bool) { add(key, json: value ? "true" : "false") }
    mutating func add(_ key: StaticString, _ value: Int) { add(key, json: String(value)) }

    /// A value or, without one, `null`.
    mutating func add(_ key: StaticString, orNull value: String?) {
        add(key, json: value.map(jsonString) ?? "null")
    }

    /// - Parameter json: the text of a JSON value.
    mutating func add(_ key: StaticString, json: String) {
        begin(key)
        written += json
    }

    /// Leaves the member out without a value.
    mutating func add(_ key: StaticString, ifPresent json: String?) {
        if let json { add(key, json: json) }
    }
}

/// The text of an array of JSON texts.
func jsonArray(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

/// A string as JSON text with its quotation marks. What needs no escaping, as identifiers do not, costs no encoder.
func jsonString(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy { byte in
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
    return isPlain ? "\"\(value)\"" : JSONValue.string(value).text
}
