import Base

/// Collects samples of several tracks and writes them as `moof` and `mdat` (ISO/IEC 14496-12 §8.8.4), one `traf` a
/// track: a fragment of a recording, or a part of HLS (a CMAF chunk).
package struct MP4FragmentBuilder: Sendable {
    /// The bytes of samples in one fragment, at most.
    package static let bytesMax = 64 << 20
    /// The samples of one fragment, at most.
    package static let samplesMax = 16_384

    private struct Entry: Sendable {
        let duration: UInt32
        let size: UInt32
        let flags: UInt32
        let compositionOffset: Int32
    }
    private struct Run: Sendable {
        let description: UInt32
        let decodeTime: Int64
        var endTime: Int64
        var entries: [Entry] = []
        var data: [UInt8] = []
    }

    /// mfhd's sequence_number of the next fragment.
    private var sequence: UInt32 = 1
    /// By track_ID.
    private var runs: [UInt32: Run] = [:]
    /// The bytes of the samples so far.
    package private(set) var byteCount = 0
    /// The samples so far.
    package private(set) var sampleCount = 0

    /// Creates an empty builder, whose first fragment has the sequence number 1.
    package init() {}

    /// Whether there are no samples.
    package var isEmpty: Bool { sampleCount == 0 }

    /// Whether a sample can be in the fragment: it follows the one before without a gap, has the same description, and
    /// the limits hold. Otherwise the caller finishes the fragment first.
    package func accepts(_ sample: MP4Sample, track: UInt32) -> Bool {
        guard sampleCount < Self.samplesMax, byteCount + sample.bytes.count <= Self.bytesMax else { return isEmpty }
        guard let run = runs[track] else { return true }
        return run.description == sample.description && run.endTime == sample.decodeTime
    }

    /// Adds a sample.
    /// - Throws: when it is not accepted.
    package mutating func append(_ sample: MP4Sample, track: UInt32) throws(FormatError) {
        guard accepts(sample, track: track), sample.bytes.count <= FormatLimits.frameBytesMax else {
            throw .invalid("the order of samples in a fragment")
        }
        let entry = Entry(
            duration: sample.duration,
            size: UInt32(truncatingIfNeeded: sample.bytes.count),
            flags: sample.flags,
            compositionOffset: sample.compositionOffset
        )
        let empty = Run(
            description: sample.description,
            decodeTime: max(sample.decodeTime, 0),
            endTime: sample.decodeTime
        )
        runs[track, default: empty].entries.append(entry)
        runs[track, default: empty].data += sample.bytes
        runs[track, default: empty].endTime = sample.decodeTime &+ Int64(sample.duration)
        byteCount += sample.bytes.count
        sampleCount += 1
    }

    /// The fragment, after which the builder is empty; `nil` without samples.
    package mutating func finish() -> [UInt8]? {
        guard !isEmpty else { return nil }
        let ordered = runs.sorted { $0.key < $1.key }
        var writer = BoxWriter()
        var offsetFields: [Int] = []
        writer.box("moof") { fragment in
            fragment.fullBox("mfhd") { $0.append(sequence) }
            for (track, run) in ordered {
                fragment.box("traf") { offsetFields.append(Self.write(run, track: track, to: &$0)) }
            }
        }
        // Offsets count from the start of moof (default-base-is-moof).
        var offset = writer.bytes.count + 8
        for (field, run) in zip(offsetFields, ordered) {
            writer.store(UInt32(truncatingIfNeeded: offset), at: field)
            offset += run.value.data.count
        }
        writer.box("mdat") { data in
            for (_, run) in ordered { data.append(run.data) }
        }
        sequence &+= 1
        runs = [:]
        (byteCount, sampleCount) = (0, 0)
        return writer.bytes
    }

    /// `tfhd`, `tfdt` and `trun` (ISO/IEC 14496-12 §8.8.7, §8.8.12, §8.8.8).
    /// - Returns: the position of data_offset.
    private static func write(_ run: Run, track: UInt32, to writer: inout BoxWriter) -> Int {
        let first = run.entries.first
        let hasOneDuration = run.entries.allSatisfy { $0.duration == first?.duration }
        let hasOneFlags = run.entries.allSatisfy { $0.flags == first?.flags }
        let hasOffsets = run.entries.contains { $0.compositionOffset != 0 }
        var headerFlags: UInt32 = 0x02_00_02
        headerFlags |= (hasOneDuration ? 0x08 : 0) | (hasOneFlags ? 0x20 : 0)
        writer.fullBox("tfhd", flags: headerFlags) { header in
            header.append(track)
            header.append(run.description)
            if hasOneDuration { header.append(first?.duration ?? 0) }
            if hasOneFlags { header.append(first?.flags ?? 0) }
        }
        writer.fullBox("tfdt", version: 1) { $0.append(UInt64(clamping: run.decodeTime)) }
        var runFlags: UInt32 = 0x201
        runFlags |= (hasOneDuration ? 0 : 0x100) | (hasOneFlags ? 0 : 0x400) | (hasOffsets ? 0x800 : 0)
        var offsetField = 0
        writer.fullBox("trun", version: 1, flags: runFlags) { table in
            table.append(UInt32(truncatingIfNeeded: run.entries.count))
            offsetField = table.bytes.count
            table.append(UInt32(0))
            for entry in run.entries {
                if !hasOneDuration { table.append(entry.duration) }
                table.append(entry.size)
                if !hasOneFlags { table.append(entry.flags) }
                if hasOffsets { table.append(entry.compositionOffset) }
            }
        }
        return offsetField
    }
}
