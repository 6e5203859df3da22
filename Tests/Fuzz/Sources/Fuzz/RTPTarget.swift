import Base
import TestSupport
import Wire

/// An RTP packet: reads every extension element as every kind of value, reads the payload, and writes the elements
/// again.
func fuzzRTP(_ bytes: RawSpan) {
    _ = RTPPacketView.isRTCP(bytes)
    let packet: RTPPacketView
    do { packet = try RTPPacketView(bytes) } catch { return }
    require(packet.payloadRange.upperBound <= bytes.byteCount, "the payload is inside")
    require(packet.payloadRange.lowerBound == packet.headerLength, "the payload follows the header")
    require(packet.payload.byteCount == packet.payloadRange.count, "the payload is the range's")
    _ = (packet.marker, packet.payloadType, packet.sequenceNumber, packet.timestamp, packet.ssrc)
    var structure: DependencyStructure?
    var cursor = packet.makeExtensionCursor()
    var elements: [(id: UInt8, data: [UInt8])] = []
    while let element = cursor.next() {
        require(element.id != 0, "an element has an identifier")
        require(element.range.lowerBound >= packet.extensionOffset + 4, "an element is in the block")
        require(element.range.upperBound <= packet.headerLength, "an element is in the block")
        let data = packet.data(of: element)
        readValues(data)
        readDependency(data, &structure)
        elements.append((element.id, data.array()))
    }
    for codec in CodecName.allCases { _ = isKeyFrameStart(codec: codec, payload: packet.payload) }
    write(elements)
}

private func readValues(_ data: RawSpan) {
    if let mid = MID(data) { require(Array(mid.value.utf8) == data.array(), "a MID is its bytes") }
    if let rid = RID(data) { require(Array(rid.value.utf8) == data.array(), "a RID is its bytes") }
    _ = VideoContentType(data)
}

private func readDependency(_ data: RawSpan, _ structure: inout DependencyStructure?) {
    let head = DependencyDescriptorHeader(data)
    for codec in CodecName.allCases { _ = isKeyFrameStart(codec: codec, payload: data, descriptor: head) }
    let descriptor: DependencyDescriptor
    do { descriptor = try DependencyDescriptor(data, structure: structure) } catch { return }
    require(descriptor.header == head, "the header reads the same by itself")
    for chain in 0..<descriptor.chainCount { _ = descriptor.chainDifference(chain) }
    for target in 0..<32 { _ = descriptor.indications[target] }
    require(descriptor.spatialID < 4 && descriptor.temporalID < 8, "layers are within the format")
    guard let attached = descriptor.attachedStructure else { return }
    require((1...64).contains(attached.templates.count), "1…64 templates")
    require((1...32).contains(attached.decodeTargetCount), "1…32 decode targets")
    require(attached.chainCount <= 32, "at most 32 chains")
    for template in attached.templates {
        require(template.chainDifferences.count == attached.chainCount, "one difference a chain")
    }
    structure = attached
}

/// Writes the elements again and reads them back.
private func write(_ elements: [(id: UInt8, data: [UInt8])]) {
    withSpan(makeRTP(extensions: elements)) { bytes in
        let packet: RTPPacketView
        do { packet = try RTPPacketView(bytes) } catch { fatalError("broken: what was written reads: \(error)") }
        require(packet.headerLength == bytes.byteCount, "the block is aligned and whole")
        var left = elements[...]
        var cursor = packet.makeExtensionCursor()
        while let element = cursor.next() {
            let expected = left.popFirst()
            require(element.id == expected?.id, "elements stay in order")
            require(packet.data(of: element).array() == expected?.data, "an element stays as it was")
        }
        require(left.isEmpty, "no element is lost")
    }
}

/// Dependency descriptors: a structure of three temporal layers with one chain, and a frame that follows it.
let dependencyStructure: [UInt8] = [
    0x80, 0x00, 0x01, 0x80, 0x02, 0x14, 0xEA, 0xA8, 0x60, 0x41, 0x4D, 0x14, 0x10, 0x20, 0x84, 0x26,
]
let dependencyFrame: [UInt8] = [0xC2, 0x00, 0x02]

func seedsRTP() -> [(name: String, bytes: [UInt8])] {
    let small: [(id: UInt8, data: [UInt8])] = [
        (1, [0x30]), (2, [0x80]), (3, [0x12, 0x34, 0x56]), (4, [0x00, 0x2A]), (5, [0x02]), (6, [0x00, 0x10, 0x20]),
        (7, dependencyFrame), (8, Array("hi".utf8)),
    ]
    let large: [(id: UInt8, data: [UInt8])] = [
        (20, dependencyStructure), (21, dependencyFrame), (1, []), (2, Array(repeating: 0x61, count: 20)),
    ]
    var padded = makeRTP(payload: [0x90, 0x80, 0x01, 0x00, 0x00, 0x00, 0x04])
    padded[0] |= 0x20
    var contributed = makeRTP(extensions: [(4, [0, 1])], payload: [1, 2, 3])
    contributed[0] |= 2
    contributed.insert(contentsOf: [0, 0, 0, 1, 0, 0, 0, 2], at: 12)
    return [
        ("plain", makeRTP(payload: [0x10, 0x00, 0x9D, 0x01, 0x2A])),
        ("one-byte", makeRTP(extensions: small, payload: [0x90, 0xE0, 0x80, 0x01, 0x02, 0x20, 0x00])),
        ("two-byte", makeRTP(extensions: large, payload: [0x08, 0x0A, 0x0B])),
        ("structure", makeRTP(extensions: [(7, dependencyStructure), (8, dependencyFrame)], payload: [0x08])),
        ("padded", padded), ("contributed", contributed),
    ]
}
