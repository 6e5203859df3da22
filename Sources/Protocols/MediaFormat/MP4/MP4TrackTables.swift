import Base

/// The boxes of a track in the `moov` at the start of a recording that the finaliser repeats, as bytes.
struct MP4TrackSource {
    let id: UInt32
    let timescale: UInt32
    /// `tkhd`, whose duration the finaliser fills in.
    let header: [UInt8]
    let mediaHeader: [UInt8]
    /// `hdlr`.
    let handler: [UInt8]
    /// `vmhd` or `smhd`, and `dinf`.
    let information: [UInt8]
    /// `stsd`.
    let descriptions: [UInt8]

    /// Reads the tracks of a `moov`.
    static func all(in bytes: [UInt8]) throws(FormatError) -> [Self] {
        let movie = try BoxSpan.first("moov", in: bytes, 0..<bytes.count)
        var tracks: [Self] = []
        for box in try BoxSpan.all(in: bytes, movie.body) where box.type == "trak" {
            tracks.append(try Self(bytes, box.body))
        }
        guard !tracks.isEmpty else { throw .invalid("the moov: it has no track") }
        return tracks
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) throws(FormatError) {
        let trackHeader = try BoxSpan.first("tkhd", in: bytes, range)
        let media = try BoxSpan.first("mdia", in: bytes, range)
        let mediaHeaderBox = try BoxSpan.first("mdhd", in: bytes, media.body)
        let minf = try BoxSpan.first("minf", in: bytes, media.body)
        let table = try BoxSpan.first("stbl", in: bytes, minf.body)
        let header = trackHeader.copy(of: bytes)
        let mediaHeader = mediaHeaderBox.copy(of: bytes)
        self.header = header
        self.mediaHeader = mediaHeader
        handler = try BoxSpan.first("hdlr", in: bytes, media.body).copy(of: bytes)
        var parts: [UInt8] = []
        for box in try BoxSpan.all(in: bytes, minf.body) where box.type != "stbl" { parts += box.copy(of: bytes) }
        information = parts
        descriptions = try BoxSpan.first("stsd", in: bytes, table.body).copy(of: bytes)
        // Version 1: times of 64 bits.
        guard header.count >= 44, mediaHeader.count >= 44, header[8] == 1, mediaHeader[8] == 1 else {
            throw .unsupported("this header of a track")
        }
        id = unsafe header.span.bytes.bigEndianUInt32(at: 28)
        timescale = unsafe mediaHeader.span.bytes.bigEndianUInt32(at: 28)
        guard timescale > 0 else { throw .invalid("the timescale of a track") }
    }
}

/// The tables of a track, which are counted in one pass and written in later ones.
enum MP4Table: CaseIterable {
    case timeToSample, compositionOffsets, syncSamples, sampleSizes, sampleToChunk, chunkOffsets

    /// The bytes of an entry.
    func entryBytes(isLarge: Bool) -> UInt64 {
        switch self {
        case .timeToSample, .compositionOffsets: 8
        case .syncSamples, .sampleSizes: 4
        case .sampleToChunk: 12
        case .chunkOffsets: isLarge ? 8 : 4
        }
    }
    /// The bytes of the box before its entries.
    var headBytes: UInt64 { self == .sampleSizes ? 20 : 16 }
}

/// Makes the entries of a track's tables of its fragments, in order and without keeping them: an entry that repeats
/// stays open until another value ends it.
struct MP4TableScanner {
    /// The counts and times of the track after all fragments.
    struct Summary {
        var counts: [MP4Table: UInt64] = [:]
        var sampleCount: UInt64 = 0
        var firstTime: UInt64 = 0
        /// The end of the last sample by decode time.
        var endTime: UInt64 = 0
        /// The end of the sample that is shown last.
        var presentationEnd: UInt64 = 0
        var hasOffsets = false
        var hasDifferences = false

        /// The entries that are written: no table of offsets when all are 0, none of sync samples when all are.
        func isWritten(_ table: MP4Table) -> Bool {
            switch table {
            case .compositionOffsets: hasOffsets
            case .syncSamples: hasDifferences
            default: true
            }
        }
    }

    private let track: UInt32
    private(set) var summary = Summary()
    private var chunkCount: UInt32 = 0
    private var nextTime: UInt64 = 0
    /// The duration of the newest sample, which the next fragment's time changes.
    private var lastDuration: UInt64?
    private var openDuration: (count: UInt32, value: UInt32)?
    private var openOffset: (count: UInt32, value: Int32)?
    private var chunkShape: (samples: UInt32, description: UInt32)?

    init(track: UInt32) { self.track = track }

    /// Takes a fragment and passes each entry that it completes to `emit`.
    mutating func receive(
        _ fragment: MP4Fragment,
        at fragmentOffset: UInt64,
        emit: (MP4Table, [UInt8]) throws(FormatError) -> Void
    ) throws(FormatError) {
        for run in fragment.runs where run.track == track {
            try beginRun(run, at: fragmentOffset, emit: emit)
            var copy = self
            try fragment.forEach(run) { entry throws(FormatError) in try copy.receive(entry, emit: emit) }
            self = copy
        }
    }

    private mutating func beginRun(
        _ run: MP4Fragment.Run,
        at fragmentOffset: UInt64,
        emit: (MP4Table, [UInt8]) throws(FormatError) -> Void
    ) throws(FormatError) {
        if summary.sampleCount == 0 {
            summary.firstTime = run.decodeTime
            nextTime = run.decodeTime
        } else if let last = lastDuration {
            // A gap before the fragment prolongs the sample before it; an overlap cannot be, and is left out.
            let gap = run.decodeTime > nextTime ? run.decodeTime - nextTime : 0
            lastDuration = last + gap
            nextTime += gap
        }
        chunkCount &+= 1
        var offset: [UInt8] = []
        offset.append(bigEndian: fragmentOffset + UInt64(run.dataOffset))
        try emit(.chunkOffsets, offset)
        count(.chunkOffsets)
        let shape = (samples: UInt32(truncatingIfNeeded: run.count), description: run.description)
        guard chunkShape.map({ $0 != shape }) ?? true else { return }
        chunkShape = shape
        var entry: [UInt8] = []
        entry.append(bigEndian: chunkCount)
        entry.append(bigEndian: shape.samples)
        entry.append(bigEndian: shape.description)
        try emit(.sampleToChunk, entry)
        count(.sampleToChunk)
    }

    private mutating func receive(
        _ entry: MP4Fragment.Entry,
        emit: (MP4Table, [UInt8]) throws(FormatError) -> Void
    ) throws(FormatError) {
        try endSample(emit)
        summary.sampleCount += 1
        lastDuration = UInt64(entry.duration)
        let shownUntil = Int64(clamping: nextTime) &+ Int64(entry.compositionOffset) &+ Int64(entry.duration)
        summary.presentationEnd = max(summary.presentationEnd, UInt64(clamping: shownUntil))
        nextTime += UInt64(entry.duration)
        var size: [UInt8] = []
        size.append(bigEndian: entry.size)
        try emit(.sampleSizes, size)
        count(.sampleSizes)
        if entry.isKey {
            var number: [UInt8] = []
            number.append(bigEndian: UInt32(truncatingIfNeeded: summary.sampleCount))
            try emit(.syncSamples, number)
            count(.syncSamples)
        } else {
            summary.hasDifferences = true
        }
        if entry.compositionOffset != 0 { summary.hasOffsets = true }
        if let open = openOffset, open.value == entry.compositionOffset {
            openOffset = (open.count &+ 1, open.value)
        } else {
            try endOffset(emit)
            openOffset = (1, entry.compositionOffset)
        }
    }

    /// The duration of the newest sample is known now.
    private mutating func endSample(_ emit: (MP4Table, [UInt8]) throws(FormatError) -> Void) throws(FormatError) {
        guard let last = lastDuration else { return }
        let duration = UInt32(clamping: last)
        lastDuration = nil
        if let open = openDuration, open.value == duration {
            openDuration = (open.count &+ 1, duration)
        } else {
            try endDuration(emit)
            openDuration = (1, duration)
        }
    }

    private mutating func endDuration(_ emit: (MP4Table, [UInt8]) throws(FormatError) -> Void) throws(FormatError) {
        guard let open = openDuration else { return }
        var entry: [UInt8] = []
        entry.append(bigEndian: open.count)
        entry.append(bigEndian: open.value)
        try emit(.timeToSample, entry)
        count(.timeToSample)
    }

    private mutating func endOffset(_ emit: (MP4Table, [UInt8]) throws(FormatError) -> Void) throws(FormatError) {
        guard let open = openOffset else { return }
        var entry: [UInt8] = []
        entry.append(bigEndian: open.count)
        entry.append(bigEndian: UInt32(bitPattern: open.value))
        try emit(.compositionOffsets, entry)
        count(.compositionOffsets)
    }

    /// Ends the entries that are open.
    mutating func finish(emit: (MP4Table, [UInt8]) throws(FormatError) -> Void) throws(FormatError) {
        try endSample(emit)
        try endDuration(emit)
        try endOffset(emit)
        (openDuration, openOffset) = (nil, nil)
        summary.endTime = nextTime
        summary.presentationEnd = max(summary.presentationEnd, nextTime)
    }

    private mutating func count(_ table: MP4Table) { summary.counts[table, default: 0] += 1 }
}
