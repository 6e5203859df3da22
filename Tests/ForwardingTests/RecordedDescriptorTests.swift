import Base
import Foundation
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Dependency descriptors that Chromium sent (Tests/Interop/record_descriptors.py records them), through the layer filter, against a receiver that reads them by itself.
@Suite struct RecordedDescriptorTests {
    private static let names = ["av1-l3t3", "av1-l3t3-key", "av1-l2t2-key-shift", "vp9-l3t3-key"]

    @Test(arguments: names)
    func `each target gets its frames and all that they refer to`(name: String) throws {
        for stream in try RecordedStream.load(name) {
            #expect(stream.packets.count > 100)
            for spatialID in 0...stream.spatialMax {
                for temporalID in 0...2 as ClosedRange<UInt8> {
                    let layers = (spatialID, temporalID)
                    let run = RecordedRun(stream) { _ in layers }
                    #expect(run.faults == [], "\(name), S\(spatialID) T\(temporalID)")
                    #expect(!run.neededKeyFrame, "\(name), S\(spatialID) T\(temporalID)")
                }
            }
        }
    }

    @Test(arguments: names)
    func `a receiver decodes all that it is sent while the target changes`(name: String) throws {
        for stream in try RecordedStream.load(name) {
            for seed in 0..<100 as Range<UInt64> {
                var generator = SeededGenerator(seed: seed)
                var layers: (UInt8, UInt8) = (.max, .max)
                let run = RecordedRun(stream) { _ in
                    if Int.random(in: 0..<30, using: &generator) == 0 {
                        layers = (
                            UInt8.random(in: 0...stream.spatialMax, using: &generator),
                            UInt8.random(in: 0...2, using: &generator)
                        )
                    }
                    return layers
                }
                #expect(run.faults == [], "\(name), seed \(seed)")
            }
        }
    }
}

/// The packets of one SSRC.
private struct RecordedStream {
    struct Packet {
        let sequence: Int64
        let timestamp: UInt32
        let marker: Bool
        let payloadBytes: UInt16
        let descriptor: [UInt8]
    }

    private(set) var packets: [Packet] = []
    private(set) var spatialMax: UInt8 = 0

    static func load(_ name: String) throws -> [RecordedStream] {
        let url = try #require(Bundle.module.url(forResource: "Resources/\(name)", withExtension: "txt"))
        var streams = [RecordedStream()]
        let text = try String(contentsOf: url, encoding: .utf8)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let fields = line.split(separator: " ")
            if fields.isEmpty {
                if streams.last?.packets.isEmpty == false { streams.append(RecordedStream()) }
            } else {
                try streams[streams.count - 1].append(fields.map(String.init))
            }
        }
        streams.removeAll { $0.packets.isEmpty }
        try #require(!streams.isEmpty)
        return streams
    }

    private mutating func append(_ fields: [String]) throws {
        let wire = try #require(Int64(fields[0]))
        let before = packets.last?.sequence ?? 0x1_0000 + wire
        let hex = fields[4] == "-" ? [] : Array(fields[4].utf8)
        let bytes = try stride(from: 0, to: hex.count - hex.count % 2, by: 2).map { place in
            try #require(UInt8(String(decoding: hex[place..<place + 2], as: UTF8.self), radix: 16))
        }
        packets.append(
            Packet(
                sequence: before + Int64(Int16(truncatingIfNeeded: wire &- before)),
                timestamp: try #require(UInt32(fields[1])),
                marker: fields[2] != "0",
                payloadBytes: try #require(UInt16(fields[3])),
                descriptor: bytes
            )
        )
        let structure = try? DependencyDescriptor(unsafe bytes.span.bytes, structure: nil).attachedStructure
        spatialMax = max(spatialMax, structure?.decodeTargets.map(\.spatialID).max() ?? 0)
    }
}

/// One stream through a filter, and what a receiver makes of it.
private struct RecordedRun {
    private(set) var faults: [String] = []
    private(set) var neededKeyFrame = false

    init(_ stream: RecordedStream, _ target: (Int) -> (spatialID: UInt8, temporalID: UInt8)) {
        let templates = DependencyTemplates()
        var filter = LayerFilter(spatialID: .max, temporalID: .max, after: 0, of: nil, at: .ms(0))
        var reader = ReferenceReader()
        var forwarded: Set<UInt16> = []
        var last: (timestamp: UInt32, marker: Bool)?
        for (index, recorded) in stream.packets.enumerated() {
            var packet = describe(recorded.sequence, timestamp: recorded.timestamp, payloadBytes: recorded.payloadBytes)
            packet.marker = recorded.marker
            packet.dependencyDescriptor = PacketDescription.Field(20..<20 + recorded.descriptor.count)
            let bytes = recorded.descriptor
            let header = DependencyDescriptorHeader(unsafe bytes.span.bytes)
            packet.startsKeyFrame = header?.startsKeyFrame == true
            templates.read(unsafe bytes.span.bytes, into: &packet)
            let layers = target(index)
            if index == 0 {
                filter.begin(at: packet.sequence, spatialID: layers.spatialID, temporalID: layers.temporalID)
            }
            filter.setTarget(spatialID: layers.spatialID, temporalID: layers.temporalID)
            let decision = filter.decide(packet, of: Unretained(templates), at: .ms(index))
            if filter.needsKeyFrame { neededKeyFrame = true }
            if filter.isChainBroken { faults.append("\(packet.frameNumber) is behind a broken chain") }
            let isWanted = packet.dependencies.indication(for: Int(filter.state.decodeTarget)) != .notPresent
            let references = reader.references(bytes)
            guard decision != .dropped else {
                if isWanted, packet.frame.contains(.startsFrame) { faults.append("\(packet.frameNumber) is left out") }
                continue
            }
            let sent = packet.adapted(to: decision)
            if let last, last.timestamp != recorded.timestamp, !last.marker {
                faults.append("the picture before \(packet.frameNumber) has no marker")
            }
            if let last, last.timestamp == recorded.timestamp, last.marker {
                faults.append("the picture of \(packet.frameNumber) goes on behind its marker")
            }
            last = (recorded.timestamp, sent.marker)
            guard packet.frame.contains(.startsFrame) else { continue }
            forwarded.insert(packet.frameNumber)
            guard let references else {
                faults.append("the descriptor of \(packet.frameNumber) cannot be read")
                continue
            }
            for distance in references where !forwarded.contains(packet.frameNumber &- distance) {
                faults.append("\(packet.frameNumber) is sent without the frame \(distance) before it")
            }
        }
    }
}

/// Reads the frames that a frame refers to (AV1 RTP specification, A.8.2 and A.8.3), which the server does not.
private struct ReferenceReader {
    private var first: UInt8 = 0
    private var templates: [[UInt16]] = []
    private var targetCount = 0

    /// - Returns: the distances in frames; `nil` for a descriptor that cannot be read.
    mutating func references(_ bytes: [UInt8]) -> [UInt16]? {
        guard bytes.count >= 3 else { return nil }
        var bits = Bits(bytes: bytes, position: 24)
        let flags = bytes.count > 3 ? bits.read(5) : 0
        if flags & 0x10 != 0 { readStructure(&bits) }
        if flags & 0x08 != 0 { _ = bits.read(targetCount) }
        if flags & 0x04 != 0 { _ = (0..<targetCount).map { _ in bits.read(2) } }
        let index = Int((bytes[0] & 0x3F) &- first & 0x3F)
        guard index < templates.count else { return nil }
        guard flags & 0x02 != 0 else { return templates[index] }
        var references: [UInt16] = []
        while case let size = bits.read(2), size > 0 { references.append(UInt16(bits.read(4 * size)) + 1) }
        return references
    }

    private mutating func readStructure(_ bits: inout Bits) {
        first = UInt8(bits.read(6))
        targetCount = bits.read(5) + 1
        templates = [[]]
        var spatialLayers = 1
        while case let next = bits.read(2), next != 3, templates.count < 64 {
            templates.append([])
            if next == 2 { spatialLayers += 1 }
        }
        for _ in templates { for _ in 0..<targetCount { _ = bits.read(2) } }
        for index in templates.indices {
            while bits.read(1) == 1 { templates[index].append(UInt16(bits.read(4)) + 1) }
        }
        let chains = bits.readNonSymmetric(targetCount + 1)
        if chains > 0 {
            for _ in 0..<targetCount { _ = bits.readNonSymmetric(chains) }
            for _ in templates { for _ in 0..<chains { _ = bits.read(4) } }
        }
        if bits.read(1) == 1 { bits.position += 32 * spatialLayers }
    }

    private struct Bits {
        let bytes: [UInt8]
        var position: Int

        mutating func read(_ count: Int) -> Int {
            var value = 0
            for _ in 0..<count {
                let bit = position / 8 < bytes.count ? bytes[position / 8] >> UInt8(7 - position % 8) & 1 : 0
                value = value << 1 | Int(bit)
                position += 1
            }
            return value
        }

        mutating func readNonSymmetric(_ limit: Int) -> Int {
            let width = Int.bitWidth - limit.leadingZeroBitCount
            let short = 1 << width - limit
            let value = read(width - 1)
            return value < short ? value : value << 1 - short + read(1)
        }
    }
}
