package import Base
import Wire

/// Writes the tags of HTTP-FLV and of FLV files: classic for H.264, AAC, MP3, G.711 and Speex, enhanced for the others,
/// so that a stream of H.264 and AAC plays everywhere.
package struct FLVMuxer: Sendable {
    /// The time that is 0 in the file.
    private let origin: Interval
    private var configurations: [MediaKind: CodecConfiguration] = [:]

    /// - Parameter origin: the time of the first frame of any track.
    package init(origin: Interval) { self.origin = origin }

    /// The file's header and the size of the tag before the first, 0 (FLV §E.2): 13 bytes.
    package static func header(hasAudio: Bool, hasVideo: Bool) -> [UInt8] {
        let flags: UInt8 = (hasAudio ? 0x04 : 0) | (hasVideo ? 0x01 : 0)
        return Array("FLV".utf8) + [1, flags, 0, 0, 0, 9, 0, 0, 0, 0]
    }

    /// The sequence header of the frame's configuration, if it carries one, and the frame.
    package mutating func write(_ frame: MediaFrame) -> [UInt8] {
        tags(of: frame).flatMap(\.encoded)
    }

    /// The same as tags, whose bodies are RTMP messages.
    package mutating func tags(of frame: MediaFrame) -> [FLVTag] {
        let milliseconds = max(MediaFrame.ticks(frame.decodeTime - origin, per: 1_000), 0)
        let timestamp = UInt32(truncatingIfNeeded: milliseconds)
        let type: FLVTagType = frame.kind == .audio ? .audio : .video
        var tags: [FLVTag] = []
        if let configuration = frame.configuration, configuration != configurations[frame.kind] {
            configurations[frame.kind] = configuration
            if let body = Self.sequenceHeader(configuration) {
                tags.append(FLVTag(type: type, timestamp: timestamp, body: body))
            }
        }
        let body = frame.kind == .audio ? audioBody(frame) : Self.videoBody(frame)
        tags.append(FLVTag(type: type, timestamp: timestamp, body: body))
        return tags
    }

    private static func sequenceHeader(_ configuration: CodecConfiguration) -> [UInt8]? {
        switch configuration {
        case .h264(let record): return [0x17, 0, 0, 0, 0] + record.encoded
        case .aac(let record): return [0xAF, 0] + record.encoded
        case .plain: return nil
        case .opus(let record): return enhanced(0x90 | EnhancedPacket.sequenceStart, .opus) + record.opusHead
        case .h265, .av1:
            return enhanced(0x90 | EnhancedPacket.sequenceStart, configuration.codec) + configuration.record
        case .vp8, .vp9:
            // Version and flags of the box belong to it, as FFmpeg and MediaMTX have it.
            let head = enhanced(0x90 | EnhancedPacket.sequenceStart, configuration.codec)
            return head + [1, 0, 0, 0] + configuration.record
        }
    }

    private static func enhanced(_ first: UInt8, _ codec: MediaCodec) -> [UInt8] {
        var bytes = [first]
        bytes.append(codec.fourCC ?? "    ")
        return bytes
    }

    private static func videoBody(_ frame: MediaFrame) -> [UInt8] {
        let frameType: UInt8 = frame.isKey ? 1 : 2
        let offset = MediaFrame.ticks(frame.presentationTime - frame.decodeTime, per: 1_000)
        let composition = UInt32(truncatingIfNeeded: min(max(offset, -0x80_00_00), 0x7F_FF_FF))
        var body: [UInt8]
        switch frame.codec {
        case .h264:
            body = [frameType << 4 | 7, 1]
            body.append(bigEndian24: composition)
        case .h265 where composition != 0:
            body = enhanced(0x80 | frameType << 4 | EnhancedPacket.codedFrames, .h265)
            body.append(bigEndian24: composition)
        case .h265: body = enhanced(0x80 | frameType << 4 | EnhancedPacket.codedFramesX, .h265)
        default: body = enhanced(0x80 | frameType << 4 | EnhancedPacket.codedFrames, frame.codec)
        }
        return body + frame.bytes
    }

    private func audioBody(_ frame: MediaFrame) -> [UInt8] {
        let head: [UInt8]
        switch frame.codec {
        case .aac: head = [0xAF, 1]
        case .mp3, .pcma, .pcmu, .speex: head = [plainHeader(frame.codec)]
        default: head = Self.enhanced(0x90 | EnhancedPacket.codedFrames, frame.codec)
        }
        return head + frame.bytes
    }

    /// SoundFormat, SoundRate, SoundSize and SoundType (FLV §E.4.2.1).
    private func plainHeader(_ codec: MediaCodec) -> UInt8 {
        let current = configurations[.audio]
        let rate = current?.sampleRate ?? 44_100
        let stereo: UInt8 = (current?.channels ?? 2) > 1 ? 1 : 0
        let rateBits: UInt8 = rate >= 44_100 ? 3 : rate >= 22_050 ? 2 : rate >= 11_025 ? 1 : 0
        return switch codec {
        case .pcma: 0x70 | 2 | stereo
        case .pcmu: 0x80 | 2 | stereo
        case .speex: 0xB6
        default: rate == 8_000 ? 0xE2 | stereo : 0x20 | rateBits << 2 | 2 | stereo
        }
    }
}
