import Base
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct NegotiationMutationTests {
    private static let samples = PublishOffers.all + WatchOffers.all

    @Test(arguments: samples)
    func `a sample is equal after serialization and parsing`(sample: SampleOffer) throws {
        let first = try SessionDescription(parsing: sample.text)
        let text = first.serialized()
        let second = try SessionDescription(parsing: text)
        #expect(second == first)
        #expect(second.serialized() == text)
    }

    /// Negotiates in every role. Every answer must parse.
    private func negotiate(_ text: String, origin: String) {
        var generator = SeededGenerator(seed: 9)
        let answers = [
            try? NegotiationServer.publish(text).answer,
            try? WatchOffer(parsing: text).answer(
                local: NegotiationServer.local,
                streamID: "s",
                sessionID: 1,
                using: &generator
            ).answer,
        ]
        for case let answer? in answers {
            #expect(throws: Never.self, "\(origin)") { try SessionDescription(parsing: answer) }
        }
        _ = try? TrickleFragment(parsing: text)
    }

    @Test(.timeLimit(.minutes(10)), arguments: samples)
    func `a truncated sample is answered or refused`(sample: SampleOffer) {
        let bytes = Array(sample.text.utf8)
        for count in stride(from: 0, through: bytes.count, by: 41) {
            negotiate(String(decoding: bytes[..<count], as: UTF8.self), origin: "\(sample.name), \(count) bytes")
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: samples)
    func `a mutated sample is answered or refused`(sample: SampleOffer) {
        for seed in 0..<60 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let text =
                seed.isMultiple(of: 2)
                ? NegotiationMutation.bytes(sample.text, using: &generator)
                : NegotiationMutation.lines(sample.text, using: &generator)
            negotiate(text, origin: "\(sample.name), seed \(seed)")
        }
    }
}

/// Ways to spoil a description.
enum NegotiationMutation {
    static func bytes(_ text: String, using generator: inout SeededGenerator) -> String {
        var bytes = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...12, using: &generator) {
            let index = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: bytes[index] = UInt8.random(in: 0x20...0x7E, using: &generator)
            case 1: bytes[index] = UInt8.random(in: 0...255, using: &generator)
            default: bytes.remove(at: index)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Removes, duplicates and moves lines, and makes numbers extreme: mutations that keep the syntax.
    static func lines(_ text: String, using generator: inout SeededGenerator) -> String {
        let numbers = ["0", "-1", "127", "128", "255", "256", "65535", "65536", "4294967295", "99999999999999999999"]
        var lines = text.split(separator: "\n").map(String.init)
        for _ in 0..<Int.random(in: 1...12, using: &generator) {
            let index = Int.random(in: 0..<lines.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: lines.remove(at: index)
            case 1: lines.insert(lines[index], at: Int.random(in: 0...lines.count, using: &generator))
            case 2: lines.swapAt(index, Int.random(in: 0..<lines.count, using: &generator))
            default:
                var fields = lines[index].split(separator: " ").map(String.init)
                guard !fields.isEmpty else { continue }
                let field = Int.random(in: 0..<fields.count, using: &generator)
                let number = numbers.randomElement(using: &generator) ?? "0"
                let head = fields[field].prefix { $0 != ":" }
                fields[field] = fields[field].contains(":") ? "\(head):\(number)" : number
                lines[index] = fields.joined(separator: " ")
            }
            if lines.isEmpty { break }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
