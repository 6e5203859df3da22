import Base

/// The write that makes a fragmented recording an ordinary MP4 file, after the bytes that ``MP4Finaliser`` wrote to its
/// end.
package struct MP4Completion: Hashable, Sendable {
    /// One write of 16 bytes over the `free` at the start, which becomes an `mdat` over all before the `moov` at the
    /// end. It is made when the `moov` is on the disk: until then the file is readable by its fragments.
    package let patch: FileWrite
    /// The bytes of the file with the `moov`.
    package let length: UInt64
    /// The length of the longest track in milliseconds, from the file's origin.
    package let durationMS: UInt64
}

/// Completes a recording: reads its `moof`s back and writes a `moov` with all samples to the end of the file.
///
/// Nothing of a sample stays in memory: each table is written in a walk of its own over the fragments, so that a file
/// of a day needs as much as one of a minute, and thirteen walks for two tracks.
package struct MP4Finaliser {
    /// The bytes that are handed to the closure at once.
    private static let outputBytes = 64 << 10

    private let read: FileReader
    private let length: UInt64
    private let write: ([UInt8]) -> Bool
    private let layout: MP4FileState.Layout
    private var output: [UInt8] = []
    private var written: UInt64 = 0
    private var isLarge: Bool { length > UInt64(UInt32.max) }

    /// Completes a file.
    /// - Parameters:
    ///   - length: the bytes of the file, which end with a whole fragment: see ``MP4FileState/inspect(length:read:)``.
    ///   - read: reads bytes of the file.
    ///   - write: appends bytes to the file, and tells whether it could.
    /// - Throws: when the file is finalised already, has no samples, or cannot be read or written.
    package static func complete(
        length: UInt64,
        read: @escaping FileReader,
        write: @escaping ([UInt8]) -> Bool
    ) throws(FormatError) -> MP4Completion {
        var finaliser = try Self(length: length, read: read, write: write)
        return try finaliser.run()
    }

    private init(
        length: UInt64,
        read: @escaping FileReader,
        write: @escaping ([UInt8]) -> Bool
    ) throws(FormatError) {
        self.length = length
        self.read = read
        self.write = write
        layout = try MP4FileState.readLayout(length: length, read)
        guard !layout.isPatched else { throw .invalid("the state of the file: it is complete") }
    }

    private mutating func run() throws(FormatError) -> MP4Completion {
        guard let movie = read(layout.movie.lowerBound, layout.movie.count) else { throw .unreadable }
        let sources = try MP4TrackSource.all(in: movie)
        let tracks = try summarise(sources)
        guard !tracks.isEmpty else { throw .invalid("the file: it has no samples") }
        let durationMS = tracks.map { Self.milliseconds($0.1.presentationEnd, $0.0.timescale) }.max() ?? 0
        try writeMovie(tracks, durationMS: durationMS)
        try flush()
        var patch: [UInt8] = []
        patch.append(bigEndian: UInt32(1))
        patch.append("mdat" as FourCC)
        patch.append(bigEndian: length - layout.placeholder)
        return MP4Completion(
            patch: FileWrite(offset: layout.placeholder, bytes: patch),
            length: length + written,
            durationMS: durationMS
        )
    }

    /// Counts the entries of all tables in one walk. Tracks without samples are left out.
    private func summarise(
        _ sources: [MP4TrackSource]
    ) throws(FormatError) -> [(MP4TrackSource, MP4TableScanner.Summary)] {
        var scanners = sources.map { MP4TableScanner(track: $0.id) }
        var walk = MP4FragmentWalk(from: layout.firstFragment, length: length, read: read)
        while let fragment = try walk.next() {
            for index in scanners.indices {
                try scanners[index].receive(fragment, at: walk.fragmentOffset) { _, _ in }
            }
        }
        guard walk.offset == length else { throw .invalid("the end of the file: it is no fragment") }
        for index in scanners.indices { try scanners[index].finish { _, _ in } }
        return zip(sources, scanners.map(\.summary)).filter { $0.1.sampleCount > 0 }
    }

    private static func milliseconds(_ ticks: UInt64, _ timescale: UInt32) -> UInt64 {
        let scale = UInt64(max(timescale, 1))
        return ticks / scale &* 1_000 &+ ticks % scale * 1_000 / scale
    }

    private mutating func writeMovie(
        _ tracks: [(MP4TrackSource, MP4TableScanner.Summary)],
        durationMS: UInt64
    ) throws(FormatError) {
        var header = BoxWriter()
        header.movieHeader(duration: durationMS, nextTrack: (tracks.map(\.0.id).max() ?? 0) &+ 1)
        let plans = tracks.map { TrackPlan($0.0, $0.1, isLarge: isLarge) }
        try beginBox("moov", bodyBytes: plans.reduce(UInt64(header.bytes.count)) { $0 + $1.trackBytes })
        try append(header.bytes)
        for plan in plans { try writeTrack(plan) }
    }

    private mutating func writeTrack(_ plan: TrackPlan) throws(FormatError) {
        try beginBox("trak", bodyBytes: plan.trackBytes - 8)
        try append(plan.head)
        try beginBox("mdia", bodyBytes: plan.mediaBytes - 8)
        try append(plan.mediaHead)
        try beginBox("minf", bodyBytes: plan.informationBytes - 8)
        try append(plan.source.information)
        try beginBox("stbl", bodyBytes: plan.tableBytes - 8)
        try append(plan.source.descriptions)
        for table in plan.tables { try writeTable(table, plan) }
    }

    private mutating func writeTable(_ table: MP4Table, _ plan: TrackPlan) throws(FormatError) {
        let count = plan.summary.counts[table] ?? 0
        let type: FourCC
        var head: [UInt8] = [0, 0, 0, 0]
        switch table {
        case .timeToSample: type = "stts"
        case .compositionOffsets:
            type = "ctts"
            // Version 1 has signed offsets.
            head = [1, 0, 0, 0]
        case .syncSamples: type = "stss"
        case .sampleSizes:
            type = "stsz"
            head += [0, 0, 0, 0]
        case .sampleToChunk: type = "stsc"
        case .chunkOffsets: type = isLarge ? "co64" : "stco"
        }
        head.append(bigEndian: UInt32(clamping: count))
        try beginBox(type, bodyBytes: plan.bytes(of: table) - 8)
        try append(head)
        var scanner = MP4TableScanner(track: plan.source.id)
        var walk = MP4FragmentWalk(from: layout.firstFragment, length: length, read: read)
        let isShort = table == .chunkOffsets && !isLarge
        var copy = self
        let emit = { (found: MP4Table, entry: [UInt8]) throws(FormatError) in
            if found == table { try copy.append(isShort ? Array(entry.suffix(4)) : entry) }
        }
        while let fragment = try walk.next() {
            try scanner.receive(fragment, at: walk.fragmentOffset, emit: emit)
        }
        try scanner.finish(emit: emit)
        self = copy
    }

    private mutating func beginBox(_ type: FourCC, bodyBytes: UInt64) throws(FormatError) {
        guard bodyBytes <= UInt64(UInt32.max) - 8 else { throw .limit("bytes of a box") }
        var head: [UInt8] = []
        head.append(bigEndian: UInt32(truncatingIfNeeded: bodyBytes + 8))
        head.append(type)
        try append(head)
    }

    private mutating func append(_ bytes: [UInt8]) throws(FormatError) {
        output += bytes
        if output.count >= Self.outputBytes { try flush() }
    }

    private mutating func flush() throws(FormatError) {
        guard !output.isEmpty else { return }
        guard write(output) else { throw .unwritable }
        written += UInt64(output.count)
        output = []
    }
}

/// The sizes of the boxes of a track, known before they are written.
private struct TrackPlan {
    let source: MP4TrackSource
    let summary: MP4TableScanner.Summary
    /// `tkhd` and, when the track begins late, `edts`.
    let head: [UInt8]
    /// `mdhd` and `hdlr`.
    let mediaHead: [UInt8]
    let tables: [MP4Table]
    private let isLarge: Bool

    init(_ source: MP4TrackSource, _ summary: MP4TableScanner.Summary, isLarge: Bool) {
        self.source = source
        self.summary = summary
        self.isLarge = isLarge
        tables = MP4Table.allCases.filter { summary.isWritten($0) }
        let scale = UInt64(max(source.timescale, 1))
        let start = summary.firstTime / scale &* 1_000 &+ summary.firstTime % scale * 1_000 / scale
        // Pictures that are shown later than they are decoded have to be within the edit.
        let end = summary.presentationEnd / scale &* 1_000 &+ summary.presentationEnd % scale * 1_000 / scale
        head = Self.setting(duration: end, at: 36, in: source.header) + Self.edits(startMS: start, endMS: end)
        let ticks = summary.endTime - min(summary.firstTime, summary.endTime)
        mediaHead = Self.setting(duration: ticks, at: 32, in: source.mediaHeader) + source.handler
    }

    /// Overwrites the 64 bits of a header's duration.
    private static func setting(duration: UInt64, at offset: Int, in box: [UInt8]) -> [UInt8] {
        var box = box
        guard box.count >= offset + 8 else { return box }
        box.store(bigEndian: UInt32(truncatingIfNeeded: duration >> 32), at: offset)
        box.store(bigEndian: UInt32(truncatingIfNeeded: duration), at: offset + 4)
        return box
    }

    /// An edit list with an empty edit before the media (ISO/IEC 14496-12 §8.6.6), in milliseconds.
    private static func edits(startMS: UInt64, endMS: UInt64) -> [UInt8] {
        guard startMS > 0 else { return [] }
        var writer = BoxWriter()
        writer.box("edts") { edits in
            edits.fullBox("elst", version: 1) { list in
                list.append(UInt32(2))
                list.append(startMS)
                list.append(UInt64.max)
                list.append(UInt32(0x0001_0000))
                list.append(endMS - min(startMS, endMS))
                list.append(UInt64(0))
                list.append(UInt32(0x0001_0000))
            }
        }
        return writer.bytes
    }

    func bytes(of table: MP4Table) -> UInt64 {
        table.headBytes + (summary.counts[table] ?? 0) * table.entryBytes(isLarge: isLarge)
    }
    var tableBytes: UInt64 { tables.reduce(8 + UInt64(source.descriptions.count)) { $0 + bytes(of: $1) } }
    var informationBytes: UInt64 { 8 + UInt64(source.information.count) + tableBytes }
    var mediaBytes: UInt64 { 8 + UInt64(mediaHead.count) + informationBytes }
    var trackBytes: UInt64 { 8 + UInt64(head.count) + mediaBytes }
}
