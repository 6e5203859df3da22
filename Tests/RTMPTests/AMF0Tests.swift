import Base
import Testing

@testable import RTMP

@Suite struct AMF0Tests {
    private func read(_ bytes: [UInt8]) throws(AMF0Error) -> [AMF0Value] {
        var reader = AMF0Reader(bytes)
        var values: [AMF0Value] = []
        while !reader.isAtEnd { values.append(try reader.read()) }
        return values
    }

    private func written(_ value: AMF0Value) -> [UInt8] {
        var writer = AMF0Writer()
        writer.write(value)
        return writer.bytes
    }

    static let values: [(AMF0Value, [UInt8])] = [
        (.number(1), [0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0]), (.boolean(true), [1, 1]), (.boolean(false), [1, 0]),
        (.string("añ"), [2, 0, 3, 0x61, 0xC3, 0xB1]), (.string(""), [2, 0, 0]), (.null, [5]), (.undefined, [6]),
        (.object([]), [3, 0, 0, 9]), (.object([AMF0Member("a", .null)]), [3, 0, 1, 0x61, 5, 0, 0, 9]),
        (.object([AMF0Member("", .null)]), [3, 0, 0, 5, 0, 0, 9]),
        (.ecmaArray([AMF0Member("a", .undefined)]), [8, 0, 0, 0, 1, 0, 1, 0x61, 6, 0, 0, 9]),
        (.strictArray([.null, .boolean(true)]), [10, 0, 0, 0, 2, 5, 1, 1]),
        (.date(-1), [11, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ]

    @Test(arguments: values)
    func `each type reads as it is written`(value: AMF0Value, bytes: [UInt8]) throws {
        #expect(written(value) == bytes)
        #expect(try read(bytes) == [value])
        for count in 1..<max(bytes.count, 1) {
            // An ECMA array may end with its message, but only between members.
            if case .ecmaArray = value, count == 5 || count == 9 { continue }
            #expect(throws: AMF0Error.truncated) { _ = try read(Array(bytes.prefix(count))) }
        }
    }

    @Test(arguments: [65_535, 65_536, 70_000])
    func `long strings have their own type`(count: Int) throws {
        let text = String(repeating: "x", count: count)
        let bytes = written(.string(text))
        #expect(bytes.first == (count > 65_535 ? 12 : 2))
        #expect(try read(bytes) == [.string(text)])
    }

    @Test func `an array's count is only a hint, and its end may lack`() throws {
        let members: [UInt8] = [0, 1, 0x61, 5]
        let expected: [AMF0Value] = [.ecmaArray([AMF0Member("a", .null)])]
        #expect(try read([8, 0xFF, 0xFF, 0xFF, 0xFF] + members + [0, 0, 9]) == expected)
        #expect(try read([8, 0, 0, 0, 0] + members) == expected)
    }

    // 4 is a movie clip, 7 a reference, 9 an end, 13 unsupported, 14 a record set, 15 XML, 16 a typed object, 17 AMF3.
    @Test(arguments: [4, 7, 9, 13, 14, 15, 16, 17, 255] as [UInt8])
    func `other types are refused with a sentence`(marker: UInt8) {
        #expect(throws: AMF0Error.unknownMarker(marker)) { _ = try read([marker, 0, 0]) }
        #expect(AMF0Error.unknownMarker(marker).description.contains(" \(marker)."))
    }

    private func nested(_ depth: Int, isArray: Bool) -> AMF0Value {
        (0..<depth).reduce(.null) { value, _ in
            isArray ? .strictArray([value]) : .object([AMF0Member("a", value)])
        }
    }

    @Test(arguments: [true, false])
    func `depth has a bound`(isArray: Bool) throws {
        _ = try read(written(nested(8, isArray: isArray)))
        #expect(throws: AMF0Error.tooDeep) { _ = try read(written(nested(9, isArray: isArray))) }
        #expect(throws: AMF0Error.self) { _ = try read([UInt8](repeating: 10, count: 65_536)) }
    }

    @Test func `members and values have a bound`() throws {
        let members = (0..<65).map { AMF0Member("m\($0)", .null) }
        _ = try read(written(.object(Array(members.prefix(64)))))
        #expect(throws: AMF0Error.tooManyMembers) { _ = try read(written(.object(members))) }
        #expect(throws: AMF0Error.tooManyMembers) { _ = try read(written(.ecmaArray(members))) }
        #expect(throws: AMF0Error.tooManyMembers) { _ = try read([10, 0, 0, 0, 65]) }
        #expect(throws: AMF0Error.tooManyMembers) { _ = try read([10, 0xFF, 0xFF, 0xFF, 0xFF]) }
        _ = try read([UInt8](repeating: 5, count: 512))
        #expect(throws: AMF0Error.tooManyValues) { _ = try read([UInt8](repeating: 5, count: 513)) }
    }

    @Test func `bytes that are not UTF-8 are replaced`() throws {
        #expect(try read([2, 0, 2, 0xFF, 0x61]) == [.string("\u{FFFD}a")])
    }

    @Test(arguments: UInt64(1)...200)
    func `no bytes trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
            Bool.random(using: &generator) ? UInt8.random(in: 0...12, using: &generator) : 0
        }
        do { _ = try read(bytes) } catch {}
    }
}
