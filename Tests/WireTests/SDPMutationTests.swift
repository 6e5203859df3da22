import Base
import TestSupport
import Testing
import Wire

private let values = [
    "111 opus/48000/2", "102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", "* nack pli",
    "3/sendonly urn:ietf:params:rtp-hdrext:sdes:mid", "hi send pt=96,97;max-width=1280", "send q;~h,i recv a;b",
    "5 msid:x y", "FID 1 2", "BUNDLE a b", "candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host raddr :: rport 9",
    "sha-256 " + (0..<32).map { _ in "AB" }.joined(separator: ":"),
]

@Suite struct SDPMutationTests {
    /// Parses one text as every kind of attribute; a parsed attribute must survive serialization.
    private func readAsEverything(_ text: String) {
        if let line = RTPMapAttribute(text) { #expect(RTPMapAttribute(line.text) == line) }
        if let line = FormatParametersAttribute(text) { #expect(FormatParametersAttribute(line.text) != nil) }
        if let line = FeedbackAttribute(text) { #expect(FeedbackAttribute(line.text) == line) }
        if let line = ExtensionMapAttribute(text) { #expect(ExtensionMapAttribute(line.text) == line) }
        if let line = RIDAttribute(text) { #expect(RIDAttribute(line.text) == line) }
        if let line = SimulcastAttribute(text) { #expect(SimulcastAttribute(line.text) == line) }
        if let line = SSRCAttribute(text) { #expect(SSRCAttribute(line.text) != nil) }
        if let line = SSRCGroupAttribute(text) { #expect(SSRCGroupAttribute(line.text) == line) }
        if let line = GroupAttribute(text) { #expect(GroupAttribute(line.text) == line) }
        if let line = ICECandidateAttribute(text) { #expect(ICECandidateAttribute(line.text) == line) }
        if let line = Fingerprint(attribute: text) { #expect(Fingerprint(attribute: line.description) == line) }
    }

    @Test(arguments: values)
    func `every truncation of an attribute is parsed or refused`(value: String) {
        for count in 0...value.count { readAsEverything(String(value.prefix(count))) }
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `mutated attributes are parsed or refused`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var bytes = Array((values.randomElement(using: &generator) ?? "").utf8)
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.insert(contentsOf: [0x20, 0x3B, 0x2C, 0x3A, 0x2F].shuffled(using: &generator), at: index)
                default: bytes.append(contentsOf: bytes[index...])
                }
            }
            readAsEverything(String(decoding: bytes, as: UTF8.self))
        }
    }
}
