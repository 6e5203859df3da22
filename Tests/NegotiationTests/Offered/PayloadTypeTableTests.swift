import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct PayloadTypeTableTests {
    private static let usual: [(CodecName, UInt8, UInt8?)] = [
        (.opus, 109, nil), (.vp8, 96, 97), (.vp9, 120, 124), (.av1, 45, 46), (.h264, 106, 107), (.h265, 49, 50),
    ]

    @Test(arguments: usual)
    func `a codec has its usual number whatever came before it`(name: CodecName, number: UInt8, rtx: UInt8?) {
        for others in [[], CodecName.allCases.filter { $0 != name }] {
            var table = PayloadTypeTable()
            for other in others { _ = table.number(.offered(other)) }
            let first = table.number(.offered(name))
            let again = table.number(.offered(name))
            #expect(first?.payloadType.rawValue == number)
            #expect(first?.rtxPayloadType?.rawValue == rtx)
            #expect(again == first)
        }
    }

    private func h264(_ profile: String, mode: String) -> CodecParameters {
        .offered(
            .h264,
            format: [
                FormatParameter(key: "packetization-mode", value: mode),
                FormatParameter(key: "profile-level-id", value: profile),
            ]
        )
    }

    @Test func `each profile has its own payload type, and levels share one`() throws {
        var table = PayloadTypeTable()
        let profiles = ["42e01f", "42001f", "4d001f", "640c1f", "64001f", "f4001f"]
        var numbers: Set<UInt8> = []
        for profile in profiles {
            for mode in ["0", "1"] {
                let format = table.number(h264(profile, mode: mode))
                let numbered = try #require(format)
                numbers.insert(numbered.payloadType.rawValue)
                numbers.insert(try #require(numbered.rtxPayloadType).rawValue)
                #expect(!numbered.payloadType.isMistakenForRTCP)
            }
        }
        #expect(numbers.count == 24)
        let low = table.number(h264("42e01f", mode: "1"))
        let high = table.number(h264("42e034", mode: "1"))
        #expect(low != nil && high == low)
    }

    @Test func `every format that there is finds a number`() {
        var table = PayloadTypeTable()
        let formats = every
        let numbered = formats.compactMap { table.number($0) }
        #expect(numbered.count == formats.count)
        let all = numbered.flatMap { [$0.payloadType, $0.rtxPayloadType].compactMap { $0?.rawValue } }
        #expect(Set(all).count == all.count)
    }

    private var every: [CodecParameters] {
        let format = { (name: CodecName, pairs: [(String, String)]) in
            CodecParameters.offered(name, format: pairs.map { FormatParameter(key: $0.0, value: $0.1) })
        }
        var all: [CodecParameters] = [.offered(.opus), .standard(.red), .offered(.vp8)]
        all += (0...3).map { format(.vp9, [("profile-id", "\($0)")]) }
        for profile in 0...2 { all += (0...1).map { format(.av1, [("profile", "\(profile)"), ("tier", "\($0)")]) } }
        for profile in 1...2 {
            all += (0...1).map { format(.h265, [("profile-id", "\(profile)"), ("tier-flag", "\($0)")]) }
        }
        for profile in ["42e01f", "42001f", "4d001f", "640c1f", "64001f", "f4001f"] {
            all += ["0", "1"].map { h264(profile, mode: $0) }
        }
        return all
    }

    @Test(arguments: [
        ("profile-id", "4", CodecName.vp9), ("profile-id", "x", .vp9), ("profile", "3", .av1), ("tier", "9", .av1),
        ("profile-id", "3", .h265), ("tx-mode", "MRST", .h265), ("profile-level-id", "zzzzzz", .h264),
        ("packetization-mode", "2", .h264),
    ])
    func `a profile that there is not gets none, so that nobody can use the numbers up`(
        key: String,
        value: String,
        name: CodecName
    ) {
        var table = PayloadTypeTable()
        let format = CodecParameters.offered(name, format: [FormatParameter(key: key, value: value)])
        #expect(!format.isOfferable)
        let numbered = table.number(format)
        #expect(numbered == nil)
    }

    /// Formats with clock rates and channel counts that no codec has.
    private static var odd: [CodecParameters] {
        CodecName.allCases.flatMap { name in
            [(name.clockRate, 3 - name.channels), (name.clockRate, 255), (name.clockRate / 2, name.channels)].map {
                CodecParameters(name: name, payloadType: PayloadType(wire: 96), clockRate: $0.0, channels: $0.1)
            }
        }
    }

    @Test(arguments: odd)
    func `a clock rate or channel count that the codec does not have gets no number`(format: CodecParameters) {
        var table = PayloadTypeTable()
        _ = table.number(.offered(.opus))
        #expect(!format.isOfferable)
        let numbered = table.number(format)
        #expect(numbered == nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `whatever publishers offer in whatever order, an honest one finds a number, and the same one again`(
        seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        var table = PayloadTypeTable()
        // Redundant audio has a number once Opus has one.
        _ = table.number(.offered(.opus))
        var numbers: [UInt8: CodecParameters] = [:]
        for _ in 0..<4 {
            for format in (every + Self.odd).shuffled(using: &generator) {
                guard let first = table.number(format) else {
                    #expect(Self.odd.contains(format), "an honest format got no number")
                    continue
                }
                #expect(matches(first, format), "a format matches itself")
                let again = table.number(format)
                let ofItself = table.number(first)
                #expect(again == first && ofItself == first, "\(format) is numbered once")
                for number in [first.payloadType, first.rtxPayloadType].compactMap({ $0?.rawValue }) {
                    #expect(numbers.updateValue(first, forKey: number) ?? first == first, "a number means one format")
                }
            }
        }
        #expect(numbers.count == 56)
    }

    @Test func `redundant audio is of the session's Opus`() {
        var table = PayloadTypeTable()
        let without = table.number(.standard(.red))
        _ = table.number(.offered(.opus))
        let with = table.number(.standard(.red))
        #expect(without == nil)
        #expect(with?.format == [FormatParameter(key: "", value: "109/109")])
    }

    @Test func `what cannot stand in a line is left out`() {
        var table = PayloadTypeTable()
        let hostile = CodecParameters.offered(
            .vp8,
            format: [
                FormatParameter(key: "max-fs", value: "1\r\na=evil"), FormatParameter(key: "a b", value: "1"),
                FormatParameter(key: "max-fr", value: "30"), FormatParameter(key: "", value: "x"),
                FormatParameter(key: "long", value: String(repeating: "9", count: 300)),
            ]
        )
        let numbered = table.number(hostile)
        #expect(numbered?.format == [FormatParameter(key: "max-fr", value: "30")])
    }
}
