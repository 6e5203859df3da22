import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

@Suite struct PayloadMappingTests {
    private static let mid = MID("0")

    private func track(_ codecs: [CodecParameters]) throws -> ReceiveTrackParameters {
        ReceiveTrackParameters(mid: try #require(Self.mid), kind: codecs[0].name.kind, codecs: codecs)
    }
    private func slot(_ codecs: [CodecParameters]) throws -> SendTrackParameters {
        SendTrackParameters(
            mid: try #require(Self.mid),
            kind: codecs[0].name.kind,
            codecs: codecs,
            ssrc: SSRC(rawValue: 1),
            cname: "c"
        )
    }
    private func codec(_ name: CodecName, _ payloadType: UInt8, rtx: UInt8? = nil) -> CodecParameters {
        var codec = CodecParameters.standard(name)
        codec.payloadType = PayloadType(wire: payloadType)
        codec.rtxPayloadType = rtx.map { PayloadType(wire: $0) }
        return codec
    }

    @Test func `a format goes out under the subscriber's number for it`() throws {
        let mapping = PayloadMapping(
            PayloadType(wire: 96),
            of: try track([codec(.vp8, 96)]),
            to: try slot([codec(.vp9, 96), codec(.vp8, 120, rtx: 121)])
        )
        guard case .same(let payloadType, let rtx) = mapping else {
            Issue.record("\(String(describing: mapping))")
            return
        }
        #expect(payloadType.rawValue == 120)
        #expect(rtx?.rawValue == 121)
    }

    @Test func `a format that the subscriber lacks is named, one that the source lacks is none`() throws {
        let source = try track([codec(.h265, 49)])
        guard
            case .unsupported(.h265) = PayloadMapping(
                PayloadType(wire: 49),
                of: source,
                to: try slot([codec(.vp8, 49)])
            )
        else {
            Issue.record("H.265 has no place there")
            return
        }
        #expect(PayloadMapping(PayloadType(wire: 50), of: source, to: try slot([codec(.vp8, 49)])) == nil)
    }

    @Test func `RED goes out as RED, as its primary block, or not at all`() throws {
        let source = try track([codec(.opus, 111), codec(.red, 63)])
        guard
            case .red(let red, let primary) = PayloadMapping(
                PayloadType(wire: 63),
                of: source,
                to: try slot([codec(.opus, 100), codec(.red, 101)])
            )
        else {
            Issue.record("the subscriber takes RED")
            return
        }
        #expect(red.rawValue == 101)
        #expect(primary.rawValue == 100)
        guard
            case .redPrimary(let stripped) = PayloadMapping(
                PayloadType(wire: 63),
                of: source,
                to: try slot([codec(.opus, 100)])
            )
        else {
            Issue.record("the subscriber takes Opus alone")
            return
        }
        #expect(stripped.rawValue == 100)
        let lonely = try track([codec(.red, 63)])
        guard
            case .unsupported(.red) = PayloadMapping(
                PayloadType(wire: 63),
                of: lonely,
                to: try slot([codec(.opus, 100)])
            )
        else {
            Issue.record("nothing says what is inside")
            return
        }
    }
}

@Suite struct REDBlocksTests {
    /// Two redundant blocks of 3 and 2 bytes, then the primary one of 4.
    private static let payload: [UInt8] =
        [0x80 | 111, 0x0F, 0x00, 0x03, 0x80 | 111, 0x07, 0x80, 0x02, 111, 1, 1, 1, 2, 2, 3, 3, 3, 3]

    @Test func `the primary block is what stands last`() {
        #expect(REDBlocks.primaryRange(of: unsafe Self.payload.span.bytes) == 14..<18)
        let single: [UInt8] = [111, 9, 9]
        #expect(REDBlocks.primaryRange(of: unsafe single.span.bytes) == 1..<3)
    }

    @Test(
        arguments: [
            [], [0x80 | 111], [0x80 | 111, 0, 0], [0x80 | 111, 0, 0, 9], [0x80 | 111, 0, 0, 9, 111, 1, 2],
        ] as [[UInt8]]
    )
    func `a payload that ends too soon has none`(payload: [UInt8]) {
        #expect(REDBlocks.primaryRange(of: unsafe payload.span.bytes) == nil)
    }

    @Test func `every block's payload type is changed, and nothing else`() {
        var bytes = [UInt8](repeating: 0xEE, count: 5) + Self.payload + [0xEE]
        unsafe bytes.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            REDBlocks.rewritePayloadTypes(in: &span, from: 5, count: Self.payload.count, to: PayloadType(wire: 100))
        }
        var expected = Self.payload
        expected[0] = 0x80 | 100
        expected[4] = 0x80 | 100
        expected[8] = 100
        #expect(bytes == [UInt8](repeating: 0xEE, count: 5) + expected + [0xEE])
    }

    @Test func `headers without an end do not reach behind the payload`() {
        var bytes = [UInt8](repeating: 0xFF, count: 11)
        unsafe bytes.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            REDBlocks.rewritePayloadTypes(in: &span, from: 0, count: 6, to: PayloadType(wire: 1))
        }
        #expect(bytes == [0x81, 0xFF, 0xFF, 0xFF, 0x81] + [UInt8](repeating: 0xFF, count: 6))
    }
}
