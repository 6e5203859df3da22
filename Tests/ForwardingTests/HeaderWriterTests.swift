import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// The one writer of outgoing headers, held against a packet that is built from its elements.
@Suite struct HeaderWriterTests {
    private static let mid = MID("video-0")
    private static let turn = SendTurn(now: .ms(1_500), ntp: NTPTimestamp(unixNanoseconds: 1_700_000_000_123_456_789))

    private static func parameters(_ ids: [HeaderExtension: UInt8]) throws -> SendTrackParameters {
        var map = HeaderExtensionMap()
        for (kind, id) in ids { map[kind] = HeaderExtensionID(rawValue: id) }
        return SendTrackParameters(
            mid: try #require(mid),
            kind: .video,
            codecs: [],
            extensions: map,
            ssrc: SSRC(rawValue: 0x1234_5678),
            rid: RID("hi"),
            cname: "c"
        )
    }

    private static let ids: [HeaderExtension: UInt8] = [
        .mid: 1, .rtpStreamID: 2, .repairedRTPStreamID: 3, .absoluteSendTime: 4, .transportSequenceNumber: 5,
        .audioLevel: 6, .videoOrientation: 7, .playoutDelay: 8, .dependencyDescriptor: 9,
        .videoContentType: 10,
    ]

    /// A received packet with every element that is forwarded; the descriptor has `descriptorBytes`.
    private static func received(descriptorBytes: Int) -> (bytes: [UInt8], description: PacketDescription) {
        var description = describe(7, timestamp: 5_000, frameNumber: 0x0102)
        var bytes = [UInt8](repeating: 0xAA, count: 12)
        func add(_ data: [UInt8]) -> PacketDescription.Field {
            defer { bytes += data }
            return PacketDescription.Field(bytes.count..<bytes.count + data.count)
        }
        description.audioLevel = add([0x85])
        description.videoOrientation = add([0x02])
        description.playoutDelay = add([1, 2, 3])
        description.dependencyDescriptor = add([0xC0, 1, 2] + (3..<max(descriptorBytes, 3)).map { UInt8($0) })
        return (bytes, description)
    }

    /// Writes a header, and returns its bytes.
    private static func write(
        _ parameters: SendTrackParameters,
        _ bytes: [UInt8],
        _ description: PacketDescription,
        isTwoByte: Bool,
        isRTX: Bool,
        templatesBefore: UInt8 = 0
    ) throws -> [UInt8] {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 1)
        if templatesBefore > 0 {
            let ids = TemplateIDs(first: 0, count: templatesBefore)
            let before = describe(7, frameNumber: 0x0101)
            rewriter.begin(StreamID(rawValue: 2), at: before, alignedTimestamp: nil, templateIDs: ids, now: .ms(0))
            rewriter.sent(before, in: try #require(rewriter.currentSegment), at: .ms(0))
        }
        let ids = TemplateIDs(first: 0, count: 3)
        rewriter.begin(StreamID(rawValue: 1), at: description, alignedTimestamp: nil, templateIDs: ids, now: .ms(0))
        let segment = try #require(rewriter.currentSegment)
        let track = ReceivedTrack(
            id: TrackID(peer: PeerID(rawValue: 1), mid: parameters.mid),
            parameters: ReceiveTrackParameters(mid: parameters.mid, kind: .video, codecs: []),
            clockOffset: PeerClock()
        )
        let stream = ReceivedStream(
            id: StreamID(rawValue: 1),
            ssrc: SSRC(rawValue: 1),
            rid: nil,
            track: track,
            historyBytesMax: 0,
            at: .ms(0)
        )
        let extensions = SentExtensions(parameters, retransmitsWithoutRTX: false)
        let egress = EgressState(sentPackets: SentPacketRing(first: 0x0405))
        var target = [UInt8](repeating: 0x77, count: 1_536)
        let length = unsafe target.withUnsafeMutableBytes { buffer -> Int? in
            guard let place = buffer.baseAddress else { return nil }
            var writer = unsafe HeaderWriter(
                place,
                isTwoByte: isTwoByte,
                marker: true,
                payloadType: 96,
                sequence: SequenceNumber(rawValue: 0xBEEF),
                timestamp: RTPTimestamp(rawValue: 0x0A0B_0C0D),
                ssrc: parameters.ssrc
            )
            HeaderNames(parameters).append(to: &writer, isRTX: isRTX)
            egress.writePerSendElements(extensions, turn, to: &writer)
            return unsafe stream.withPending(unsafe bytes.span.bytes, description) { packet in
                unsafe writer.appendForwarded(packet, segment, extensions)
                return writer.finish()
            }
        }
        return Array(target.prefix(try #require(length)))
    }

    /// The same header, built from its elements.
    private static func expected(
        _ parameters: SendTrackParameters,
        _ bytes: [UInt8],
        _ description: PacketDescription,
        isRTX: Bool
    ) -> [UInt8] {
        // The first source plays with its own frame numbers.
        var descriptor = Array(bytes[description.dependencyDescriptor.range])
        (descriptor[1], descriptor[2]) = (1, 2)
        let sendTime = [16, 8, 0].map { UInt8(truncatingIfNeeded: turn.absoluteSendTime >> $0) }
        let elements: [(HeaderExtension, [UInt8]?)] = [
            (.mid, Array(parameters.mid.value.utf8)),
            (isRTX ? .repairedRTPStreamID : .rtpStreamID, parameters.rid.map { Array($0.value.utf8) }),
            (.absoluteSendTime, sendTime),
            (.transportSequenceNumber, [4, 6]),
            (.audioLevel, Array(bytes[description.audioLevel.range])),
            (.videoOrientation, Array(bytes[description.videoOrientation.range])),
            (.playoutDelay, Array(bytes[description.playoutDelay.range])),
            (.dependencyDescriptor, descriptor),
        ]
        return makeRTP(
            payloadType: 96,
            marker: true,
            sequence: 0xBEEF,
            timestamp: 0x0A0B_0C0D,
            ssrc: parameters.ssrc.rawValue,
            extensions: elements.compactMap { kind, data in
                guard let id = parameters.extensions[kind], let data else { return nil }
                return (id.rawValue, data)
            }
        )
    }

    @Test(arguments: [false, true], [3, 16])
    func `elements that fit take the one-byte form`(isRTX: Bool, descriptorBytes: Int) throws {
        let parameters = try Self.parameters(Self.ids)
        let (bytes, description) = Self.received(descriptorBytes: descriptorBytes)
        #expect(
            try Self.write(parameters, bytes, description, isTwoByte: false, isRTX: isRTX)
                == Self.expected(parameters, bytes, description, isRTX: isRTX)
        )
    }

    @Test(arguments: [3, 16, 17])
    func `a descriptor of a next source has template identifiers of its own`(descriptorBytes: Int) throws {
        let parameters = try Self.parameters(Self.ids)
        var (bytes, description) = Self.received(descriptorBytes: descriptorBytes)
        let isTwoByte = !description.fitsOneByteForm
        let header = try Self.write(
            parameters,
            bytes,
            description,
            isTwoByte: isTwoByte,
            isRTX: false,
            templatesBefore: 5
        )
        bytes[Int(description.dependencyDescriptor.offset)] += 5
        #expect(header == Self.expected(parameters, bytes, description, isRTX: false))
    }

    @Test(arguments: [false, true], [17, 200])
    func `a long descriptor takes the two-byte form`(isRTX: Bool, descriptorBytes: Int) throws {
        let parameters = try Self.parameters(Self.ids)
        let (bytes, description) = Self.received(descriptorBytes: descriptorBytes)
        #expect(!description.fitsOneByteForm)
        let header = try Self.write(parameters, bytes, description, isTwoByte: true, isRTX: isRTX)
        #expect(header == Self.expected(parameters, bytes, description, isRTX: isRTX))
        #expect(header.count <= HeaderWriter.lengthMax(description, names: HeaderNames(parameters).count))
    }

    @Test func `an identifier above 14 takes the two-byte form`() throws {
        var ids = Self.ids
        ids[.mid] = 20
        let parameters = try Self.parameters(ids)
        #expect(
            !SentExtensions(parameters, retransmitsWithoutRTX: false).isOneByte && !HeaderNames(parameters).isOneByte
        )
        let (bytes, description) = Self.received(descriptorBytes: 5)
        #expect(
            try Self.write(parameters, bytes, description, isTwoByte: true, isRTX: false)
                == Self.expected(parameters, bytes, description, isRTX: false)
        )
    }

    @Test func `a header without extensions is the fixed one`() throws {
        let parameters = try Self.parameters([:])
        let (bytes, description) = Self.received(descriptorBytes: 5)
        let header = try Self.write(parameters, bytes, description, isTwoByte: false, isRTX: false)
        #expect(header.count == 12)
        #expect(header == Self.expected(parameters, bytes, description, isRTX: false))
    }
}
