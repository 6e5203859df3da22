@testable import JSON

/// A JSON text within the limits of one of its readers: parsed in linear time, written, and parsed again.
func fuzzJSON(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let limits = input.pick([JSONLimits.standard, .unauthenticated, .tokenHeader])
    let text = input.rest()
    var parser = JSONParser(text, limits: limits)
    let value: JSONValue
    do { value = try parser.parse() } catch { return }
    require(parser.work <= 6 * text.count + 6, "parsing is linear")
    let written = value.bytes
    do {
        let again = try JSONValue(parsing: written)
        require(again == value, "what was written reads the same")
        require(again.bytes == written, "writing settles")
    } catch {
        fatalError("broken: what was written reads: \(error)")
    }
    if let fields = try? JSONFields(value) { read(fields) }
}

private func read(_ fields: JSONFields) {
    for name in fields.members.keys {
        if let text = try? fields.string(name, bytesMax: 8) { require(text.utf8.count <= 8, "strings are bounded") }
        if let number = try? fields.integer(name, 1...9) { require((1...9).contains(number), "integers are bounded") }
        if let texts = try? fields.strings(name, countMax: 2) { require(texts.count <= 2, "arrays are bounded") }
        if let objects = try? fields.objects(name, countMax: 2) { require(objects.count <= 2, "arrays are bounded") }
    }
}

func seedsJSON() -> [(name: String, bytes: [UInt8])] {
    let texts = [
        "members": #"{"a":[1,-2.5e3,true,false,null,"\u00e9\ud83d\ude00\n"],"b":{"c":9223372036854775807}}"#,
        "space": " [ 0 , { } , [ ] , 1E-2 , -0.0 ]\r\n", "number": "18446744073709551616",
        "nested": String(repeating: "[", count: 31) + "{}" + String(repeating: "]", count: 31),
    ]
    var seeds = texts.map { (name: $0.key, bytes: [0] + Array($0.value.utf8)) }
    seeds.append(("header", [2] + Array(#"{"alg":"HS256","typ":"JWT","kid":"a"}"#.utf8)))
    return seeds
}
