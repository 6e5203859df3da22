import Testing

@testable import JSON

@Suite struct JSONFieldsTests {
    @Test func `a string has at most so many bytes of UTF-8`() throws {
        let fields = JSONFields(["name": .string("éé"), "nothing": .null])
        #expect(try fields.string("name", bytesMax: 4) == "éé")
        #expect(throws: JSONShapeError.self) { try fields.string("name", bytesMax: 3) }
        #expect(try fields.string("nothing", bytesMax: 3) == nil && fields.string("missing", bytesMax: 3) == nil)
    }
}
