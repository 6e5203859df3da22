import Base
import ChannelTypes
import MediaTypes
import TestSupport
import Testing

struct IdentifierTests {
    @Test func `identifiers have their format and read back`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            let id = ParticipantID(using: &generator)
            #expect(ParticipantID(id.value) == id)
            let session = ResourceID(using: &generator)
            #expect(ResourceID(session.value) == session)
            #expect(!"\(session)".contains(session.value))
        }
    }

    @Test(arguments: [(0, "00000"), (7, "00007"), (0x12_3456, "14D2P"), (0xFF_FFFF, "FZZZZ")] as [(UInt32, String)])
    func `the identifier of a resource in a cluster starts with the tag of its node`(number: UInt32, tag: String) throws
    {
        var generator = SeededGenerator(seed: 7)
        let node = try #require(NodeIncarnation(rawValue: number))
        let id = ResourceID(node: node, using: &generator)
        #expect(id.value.hasPrefix(tag) && id.value.utf8.count == 57 && id.node == node)
        #expect(ResourceID(id.value) == id && ResourceID(id.value)?.node == node)
        #expect(ResourceID(id.value.dropFirst(5))?.node == nil)
        #expect(ResourceID(id.value.dropFirst()) == nil)
        #expect(ResourceID("G0000" + id.value.dropFirst(5)) == nil, "more than 24 bits")
    }

    @Test(arguments: [
        "", "0", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0ZZZZZZZZZZZZZZZZZZZZZZZZU", "0zzzzzzzzzzzzzzzzzzzzzzzzz",
        "0ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
    ])
    func `what is no identifier is refused`(text: String) { #expect(ParticipantID(text) == nil) }

    @Test func `the largest value is all ones, and the UUID version is set`() {
        #expect(Crockford.text(high: .max, low: .max) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
        #expect(Crockford.text(high: 0, low: 1) == "00000000000000000000000001")
        struct Ones: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }
        var ones = Ones()
        #expect(
            ParticipantID(using: &ones).value
                == Crockford.text(high: 0xFFFF_FFFF_FFFF_4FFF, low: 0xBFFF_FFFF_FFFF_FFFF)
        )
    }

    @Test(arguments: [
        ("a", true), ("", false), (String(repeating: "x", count: 255), true),
        (String(repeating: "x", count: 256), false),
        (String(repeating: "é", count: 128), false), ("sp ace/slash", true), ("tab\t", false), ("\u{85}", false),
        ("流れ", true), (".", false), ("..", false), ("...", true), (" ", false), (" \u{3000}\u{A0}", false),
        (" a ", true),
    ])
    func `channel names are bounded, can be a path segment, and are not blank`(name: String, isValid: Bool) {
        #expect((ChannelName(name) != nil) == isValid)
    }

    @Test func `names that differ in bytes are different channels`() {
        #expect(ChannelName("caf\u{E9}") != ChannelName("cafe\u{301}"))
    }
}
