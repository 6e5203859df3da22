import TestSupport
import Testing

@testable import JSON

@Suite struct JSONValueTests {
    @Test(
        arguments: [
            ("null", .null), (" true ", true), ("false", false), ("0", 0), ("-12", -12), ("\"\"", ""),
            (#""a\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00""#, "a\"\\/\u{8}\u{C}\n\r\tAé😀"),
            ("[]", []), ("[1,[2],{}]", [1, [2], [:]]), (#"{"a":1,"b":{"c":[null]}}"#, ["a": 1, "b": ["c": [.null]]]),
            ("1.0", 1), ("1e3", 1_000), ("-1.5", .number(-1.5)), ("9007199254740993", 9_007_199_254_740_993),
            ("18446744073709551616", .number(18_446_744_073_709_551_616)),
            ("\t{ \"x\" :\r\n 1 } ", ["x": 1]),
        ] as [(String, JSONValue)]
    )
    func `valid JSON is parsed`(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text) == value)
    }

    @Test(arguments: [
        "", " ", "nul", "tru", "True", "01", "-", "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "1e400", "\"",
        "\"a",
        "\"\n\"", #""\x""#, #""\u12""#, #""\u12g4""#, #""\ud800""#, "[", "[1", "[1,", "[,1]", "[1 2]", "{", "{\"a\"",
        "[1,]", "{\"a\":1,}", "[1,,2]", "\u{FEFF}1", "1\u{0}", "\u{0}", "\"\u{0}\"", "- 1", "1 .5", "1e+", "1e5.0",
        #""\uD83D\u0041""#,
        "{\"a\":", "{\"a\":1", "{\"a\":1,", "{a:1}", "{1:1}", "1 2", "{} x", "'a'", "]", "}", "// c\n1",
    ])
    func `invalid JSON is refused`(text: String) {
        #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    }

    @Test func `bytes that are not UTF-8 are refused`() {
        for bytes in [[0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]] {
            #expect(throws: JSONError.malformed) { try JSONValue(parsing: bytes) }
        }
    }

    @Test func `depth and number of containers are bounded, and brackets in strings do not count`() throws {
        let deep = String(repeating: "[", count: 32) + String(repeating: "]", count: 32)
        _ = try JSONValue(parsing: deep)
        #expect(throws: JSONError.tooComplex) { try JSONValue(parsing: "[\(deep)]") }
        #expect(throws: JSONError.tooComplex) { try JSONValue(parsing: String(repeating: "{\"a\":", count: 100_000)) }
        #expect(throws: JSONError.tooComplex) {
            try JSONValue(parsing: "[" + String(repeating: "[],", count: 4_096) + "0]")
        }
        _ = try JSONValue(parsing: "[" + String(repeating: "[],", count: 4_095) + "0]")
        let text = String(repeating: #"[{\""#, count: 10_000)
        #expect(try JSONValue(parsing: "\"\(text)\"") == .string(text.replacing(#"\""#, with: "\"")))
    }

    @Test func `a text in UTF-16 or UTF-32 is refused`() {
        let text = "[" + Array(repeating: "[]", count: 500).joined(separator: ",") + "]"
        let (bigEndian, littleEndian) = (
            text.utf16.flatMap { [0, UInt8($0)] as [UInt8] }, text.utf16.flatMap { [UInt8($0), 0] as [UInt8] }
        )
        let wide = text.unicodeScalars.flatMap { [0, 0, 0, UInt8($0.value)] as [UInt8] }
        for bytes in [bigEndian, littleEndian, wide, [0xFE, 0xFF] + bigEndian, [0xFF, 0xFE] + littleEndian] {
            #expect(throws: JSONError.malformed) { try JSONValue(parsing: bytes) }
        }
        #expect(throws: JSONError.malformed) { try JSONValue(parsing: Array(repeating: 0, count: 120_000)) }
    }

    @Test(arguments: ["1", "-1.5e3", "true", "null", "[]", "{}", #""a\u00e9\n""#, #"{"a":"b"}"#, "[[[[]]]]"])
    func `the cost of parsing is linear in the length and does not depend on the depth`(element: String) throws {
        for depth in [1, 8, 28] {
            for count in [100, 1_000] {
                let elements = Array(repeating: element, count: count).joined(separator: ",")
                let text = Array(repeating: "[", count: depth) + [elements] + Array(repeating: "]", count: depth)
                let bytes = Array(text.joined().utf8)
                var parser = JSONParser(bytes, limits: .standard)
                _ = try parser.parse()
                #expect(parser.work <= 6 * bytes.count, "\(count) at a depth of \(depth)")
            }
        }
    }

    @Test func `each limit is enforced`() throws {
        let limits = JSONLimits(
            bytesMax: 40,
            depthMax: 2,
            containersMax: 3,
            valuesMax: 6,
            nameBytesMax: 4,
            numberBytesMax: 5
        )
        for text in [
            "\"" + String(repeating: "a", count: 38) + "\"", "[[],[]]", "[1,2,3,4,5,6]", #"{"abcd":1}"#, "[12345]",
            #"{"\u00e9\u00e9":1}"#,
        ] {
            _ = try JSONValue(parsing: text, limits: limits)
        }
        for text in [
            "\"" + String(repeating: "a", count: 39) + "\"", "[[[]]]", "[[],[],[]]", "[1,2,3,4,5,6,7]", #"{"abcde":1}"#,
            "[123456]", #"{"\u00e9\u00e9e":1}"#,
        ] {
            #expect(throws: JSONError.tooComplex) { try JSONValue(parsing: text, limits: limits) }
        }
    }

    @Test func `numbers keep the precision of Int64 and Double`() throws {
        #expect(try JSONValue(parsing: "0.30000000000000004") == .number(0.30000000000000004))
        #expect(try JSONValue(parsing: "-9223372036854775807") == .integer(-9_223_372_036_854_775_807))
        #expect(try JSONValue(parsing: "9223372036854775807") == .integer(.max))
        #expect(try JSONValue(parsing: "5e-324") == .number(.leastNonzeroMagnitude))
        #expect(try JSONValue(parsing: "1.7976931348623157e308") == .number(.greatestFiniteMagnitude))
        #expect(try JSONValue(parsing: "1E5") == 100_000)
        #expect(try JSONValue(parsing: "-0") == 0)
    }

    @Test func `with duplicate names the last member counts`() throws {
        #expect(try JSONValue(parsing: #"{"a":1,"\u0061":2}"#) == ["a": 2])
    }

    @Test func `any value survives encoding and parsing`() throws {
        var generator = SeededGenerator(seed: 19)
        for _ in 0..<500 {
            let value = JSONValue.random(depth: 5, using: &generator)
            #expect(try JSONValue(parsing: value.bytes) == value)
        }
    }

    @Test func `the number of values is bounded, and commas in strings do not count`() throws {
        _ = try JSONValue(parsing: "[1" + String(repeating: ",1", count: 65_535) + "]")
        #expect(throws: JSONError.tooComplex) {
            try JSONValue(parsing: "[1" + String(repeating: ",1", count: 65_536) + "]")
        }
        _ = try JSONValue(parsing: "\"" + String(repeating: ",", count: 100_000) + "\"")
    }

    @Test func `numbers are converted to the requested type`() throws {
        #expect(try JSONValue(parsing: "1.5").integer == nil)
        #expect(try JSONValue(parsing: "1.5").double == 1.5)
        #expect(try JSONValue(parsing: "-9223372036854775808").integer == .min)
        #expect(try JSONValue(parsing: "9223372036854775808").integer == nil)
        #expect(JSONValue.double(.nan) == .null && JSONValue.double(2) == 2)
        #expect(JSONValue.double(0.5).text == "0.5")
        #expect(JSONValue.integer(UInt64.max) == .integer(Int64.max))
    }

    @Test func `a value's text has sorted members and the required escapes`() throws {
        let value: JSONValue = ["b": ["\u{1}\u{1F}\"\\/é\u{2028}", 1, nil], "a": true]
        #expect(value.text == #"{"a":true,"b":["\u0001\u001f\"\\/é"# + "\u{2028}" + #"",1,null]}"#)
        #expect(try JSONValue(parsing: value.text) == value)
    }

    @Test func `truncated and mutated texts are refused or parsed and never trap`() throws {
        let text = Array(#"{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00"],"b":{"c":null,"d":[true,false]}}"#.utf8)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            var changed = text
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                changed[Int.random(in: changed.indices, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            changed.removeLast(Int.random(in: 0...10, using: &generator))
            guard let value = try? JSONValue(parsing: changed) else { continue }
            #expect(try JSONValue(parsing: value.bytes) == value)
        }
    }
}

extension JSONValue {
    /// A random value with strings of all kinds of characters.
    fileprivate static func random(depth: Int, using generator: inout SeededGenerator) -> Self {
        func text() -> String {
            var text = ""
            for _ in 0..<Int.random(in: 0...8, using: &generator) {
                let ranges: [ClosedRange<UInt32>] = [0...0x7F, 0x80...0x7FF, 0x800...0xD7FF, 0xE000...0x10_FFFF]
                let range = ranges.randomElement(using: &generator) ?? 0...0
                text.unicodeScalars.append(Unicode.Scalar(UInt32.random(in: range, using: &generator)) ?? "?")
            }
            return text
        }
        switch Int.random(in: 0...(depth > 0 ? 7 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2: return .integer(Int64.random(in: .min ... .max, using: &generator))
        case 3: return .double(Double(bitPattern: UInt64.random(in: 0...UInt64.max, using: &generator)))
        case 4: return .double(Double.random(in: -1e6...1e6, using: &generator))
        case 5: return .string(text())
        case 6:
            return .array(
                (0..<Int.random(in: 0...4, using: &generator)).map { _ in random(depth: depth - 1, using: &generator) }
            )
        default:
            var members: [String: JSONValue] = [:]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                members[text()] = random(depth: depth - 1, using: &generator)
            }
            return .object(members)
        }
    }
}
