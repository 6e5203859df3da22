package import Base

/// Makes samples of a track's frames. A sample is ready when its successor is known, because the successor tells its
/// duration.
package struct MP4SampleQueue: Sendable {
    /// The longest sample in seconds: what comes later than that after a gap is still at its own time.
    private static let durationSecondsMax = 3_600
    /// A gap of audio in ticks within which samples follow each other without one: 2 ms, as RTMP counts milliseconds.
    private let tolerance: Int64

    private let timescale: Int
    private let origin: Interval
    private var waiting: MP4Sample?
    private var lastDuration: UInt32

    /// - Parameters:
    ///   - timescale: ticks each second.
    ///   - origin: the time that is 0 in the file; frames before it count as at it.
    package init(timescale: UInt32, origin: Interval) {
        self.timescale = max(Int(timescale), 1)
        self.origin = origin
        tolerance = Int64(timescale / 500)
        lastDuration = max(timescale / 50, 1)
    }

    /// The bytes of the frame that waits for its successor.
    package var waitingBytes: Int { waiting?.bytes.count ?? 0 }

    /// Takes the next frame.
    /// - Parameters:
    ///   - description: the index of its sample description, from 1.
    ///   - nominalDuration: the duration of a frame of audio in ticks, which codecs fix; `nil` for video.
    /// - Returns: the sample of the frame before, complete.
    package mutating func append(_ frame: MediaFrame, description: UInt32, nominalDuration: Int? = nil) -> MP4Sample? {
        let presentation = MediaFrame.ticks(frame.presentationTime - origin, per: timescale)
        var decode = max(MediaFrame.ticks(frame.decodeTime - origin, per: timescale), 0)
        var completed = waiting
        if let before = waiting {
            if let nominalDuration {
                let expected = before.decodeTime &+ Int64(nominalDuration)
                if abs(decode &- expected) <= tolerance { decode = expected }
            }
            // Decode times must ascend, whatever the source says.
            decode = max(decode, before.decodeTime &+ 1)
            let longest = Int64(Self.durationSecondsMax) &* Int64(timescale)
            lastDuration = UInt32(clamping: min(decode &- before.decodeTime, longest))
            completed?.duration = lastDuration
        } else if let nominalDuration {
            lastDuration = UInt32(clamping: nominalDuration)
        }
        waiting = MP4Sample(
            decodeTime: decode,
            duration: 0,
            compositionOffset: Int32(clamping: presentation &- decode),
            isKey: frame.isKey,
            isDiscardable: frame.isDiscardable,
            description: description,
            bytes: frame.bytes
        )
        if nominalDuration != nil { waiting?.compositionOffset = 0 }
        return completed
    }

    /// The last sample, with the duration of the one before; `nil` when none waits.
    package mutating func finish() -> MP4Sample? {
        defer { waiting = nil }
        waiting?.duration = lastDuration
        return waiting
    }
}

extension CodecConfiguration {
    /// The duration of a frame of audio in ticks of ``sampleRate``; `nil` for video, and where the frame does not tell
    /// it.
    package func nominalDuration(of frame: MediaFrame) -> Int? {
        switch self {
        case .aac(let record):
            record.sampleRate > 0 ? record.frameSamples * record.outputSampleRate / record.sampleRate : nil
        case .opus: OpusConfiguration.samples(of: unsafe frame.bytes.span.bytes)
        case .h264, .h265, .av1, .vp8, .vp9, .plain: nil
        }
    }

    /// The parameter sets after their lengths, as they stand before a key frame that has them in-band; empty for codecs
    /// whose key frames have them always.
    package var inBandParameterSets: [UInt8] {
        let units: [[UInt8]] =
            switch self {
            case .h264(let record): record.sequenceParameterSets + record.pictureParameterSets
            case .h265(let record):
                record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
            case .av1, .vp8, .vp9, .opus, .aac, .plain: []
            }
        var bytes: [UInt8] = []
        for unit in units {
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: unit.count))
            bytes += unit
        }
        return bytes
    }
}
