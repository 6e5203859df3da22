import Testing
import Wire

/// Writes bits, most significant first.
private struct BitWriter {
    var bytes: [UInt8] = []
    private var count = 0
    mutating func put(_ value: Int, _ width: Int) {
        for bit in stride(from: width - 1, through: 0, by: -1) {
            if count % 8 == 0 { bytes.append(0) }
            if value >> bit & 1 == 1 { bytes[count / 8] |= 0x80 >> UInt8(count % 8) }
            count += 1
        }
    }
}

struct RTPDependencyDescriptorTests {
    /// L1T2 as in libwebrtc's ScalabilityStructureL1T2: two decode targets, one chain, three templates.
    static let keyFrame: [UInt8] = {
        var bits = BitWriter()
        bits.put(1, 1)  // start of frame
        bits.put(1, 1)  // end of frame
        bits.put(10, 6)  // template
        bits.put(0x0102, 16)  // frame number
        bits.put(0b10000, 5)  // structure present
        bits.put(10, 6)  // template id offset
        bits.put(1, 5)  // two decode targets
        for next in [0, 1, 3] { bits.put(next, 2) }  // T0 T0 T1
        for indications in [[2, 2], [2, 2], [0, 1]] { for one in indications { bits.put(one, 2) } }
        bits.put(0, 1)  // template 0: no references
        for _ in 0..<1 { bits.put(0b1_0001_0, 6) }  // template 1: 2 frames back
        bits.put(0b1_0000_0, 6)  // template 2: 1 frame back
        bits.put(0b10, 2)  // ns(3) of 1: one chain
        // ns(1) takes no bits: both targets are protected by chain 0.
        for difference in [0, 2, 1] { bits.put(difference, 4) }
        bits.put(1, 1)  // resolutions
        bits.put(1279, 16)
        bits.put(719, 16)
        return bits.bytes
    }()

    static func structure() throws -> DependencyStructure {
        let bytes = keyFrame
        return try #require(try DependencyDescriptor(unsafe bytes.span.bytes, structure: nil).attachedStructure)
    }

    @Test func `a key frame has an attached structure`() throws {
        let bytes = Self.keyFrame
        let head = try #require(DependencyDescriptorHeader(unsafe bytes.span.bytes))
        #expect(head.startsFrame && head.endsFrame && head.hasStructure && head.startsKeyFrame)
        #expect(head.templateID == 10 && head.frameNumber == 0x0102)
        let descriptor = try DependencyDescriptor(unsafe bytes.span.bytes, structure: nil)
        #expect(descriptor.spatialID == 0 && descriptor.temporalID == 0)
        #expect(descriptor.activeDecodeTargets == 0b11)
        #expect(descriptor.indications[0] == .switchable)
        let structure = try #require(descriptor.attachedStructure)
        #expect(structure.templates.map(\.temporalID) == [0, 0, 1])
        #expect(structure.decodeTargets == [.init(0), .init(1)])
        #expect(structure.chainCount == 1)
        #expect(structure.protectingChains == [0, 0])
        #expect(structure.resolutions.map(\.width) == [1280])
        #expect(structure.resolutions.map(\.height) == [720])
    }

    @Test(arguments: 0..<64 as Range<UInt8>)
    func `template identifiers are shifted with their structure`(shift: UInt8) throws {
        var key = Self.keyFrame
        var delta: [UInt8] = [0x80 | 12, 0, 7]
        unsafe key.withUnsafeMutableBytes { buffer in
            var bytes = unsafe buffer.mutableBytes
            DependencyDescriptorHeader.shiftTemplateIDs(in: &bytes, by: shift)
        }
        unsafe delta.withUnsafeMutableBytes { buffer in
            var bytes = unsafe buffer.mutableBytes
            DependencyDescriptorHeader.shiftTemplateIDs(in: &bytes, by: shift)
        }
        let descriptor = try DependencyDescriptor(unsafe key.span.bytes, structure: nil)
        let structure = try #require(descriptor.attachedStructure)
        #expect(descriptor.header.templateID == (10 + shift) & 0x3F)
        #expect(structure.templateIDOffset == (10 + shift) & 0x3F)
        let before = try Self.structure()
        #expect(structure.templates == before.templates && structure.resolutions == before.resolutions)
        #expect(try DependencyDescriptor(unsafe delta.span.bytes, structure: structure).temporalID == 1)
    }

    @Test func `a delta frame takes its template from the structure`() throws {
        let bytes: [UInt8] = [0x80 | 12, 0, 7]
        let descriptor = try DependencyDescriptor(unsafe bytes.span.bytes, structure: try Self.structure())
        #expect(!descriptor.header.startsKeyFrame)
        #expect(descriptor.temporalID == 1)
        #expect(descriptor.indications[0] == .notPresent)
        #expect(descriptor.indications[1] == .discardable)
        #expect(descriptor.chainDifference(0) == 1)
        #expect(descriptor.activeDecodeTargets == nil)
    }

    @Test func `custom fields replace the template's`() throws {
        var bits = BitWriter()
        bits.put(0x80 | 11, 8)
        bits.put(9, 16)
        bits.put(0b01111, 5)
        bits.put(0b01, 2)  // active targets
        for one in [3, 0] { bits.put(one, 2) }
        bits.put(0b01_0011_00, 8)  // one reference of four bits
        bits.put(200, 8)
        let bytes = bits.bytes
        let descriptor = try DependencyDescriptor(unsafe bytes.span.bytes, structure: try Self.structure())
        #expect(descriptor.activeDecodeTargets == 0b01)
        #expect(descriptor.indications[0] == .required)
        #expect(descriptor.indications[1] == .notPresent)
        #expect(descriptor.chainDifference(0) == 200)
    }

    @Test func `a descriptor that cannot be resolved is refused`() throws {
        let structure = try Self.structure()
        let short: [UInt8] = [0x80, 0]
        #expect(throws: DependencyDescriptorError.truncated) {
            try DependencyDescriptor(unsafe short.span.bytes, structure: structure)
        }
        let delta: [UInt8] = [0x80 | 13, 0, 1]
        #expect(throws: DependencyDescriptorError.noStructure) {
            try DependencyDescriptor(unsafe delta.span.bytes, structure: nil)
        }
        #expect(throws: DependencyDescriptorError.unknownTemplate) {
            try DependencyDescriptor(unsafe delta.span.bytes, structure: structure)
        }
        // Endless next_layer_idc codes for another spatial layer.
        let endless: [UInt8] = [0x80, 0, 1, 0x80, 0x00, 0xAA, 0xAA, 0xAA, 0xAA]
        #expect(throws: DependencyDescriptorError.invalidStructure) {
            try DependencyDescriptor(unsafe endless.span.bytes, structure: nil)
        }
    }

    @Test func `mutated descriptors never trap`() throws {
        let structure = try Self.structure()
        forEachDamage(of: Self.keyFrame, seed: 5, rounds: 20_000) { bytes in
            let descriptor = try? DependencyDescriptor(unsafe bytes.span.bytes, structure: structure)
            guard let descriptor else { return }
            for chain in 0..<descriptor.chainCount { _ = descriptor.chainDifference(chain) }
            // An accepted structure can be used for the next frame.
            for template in 0..<64 as Range<UInt8> {
                let next: [UInt8] = [template, 0, 1]
                _ = try? DependencyDescriptor(unsafe next.span.bytes, structure: descriptor.attachedStructure)
            }
        }
    }
}

extension DependencyStructure.Layer {
    fileprivate init(_ temporalID: UInt8) { self.init(spatialID: 0, temporalID: temporalID) }
}
