import Base

/// The state of a WebM recording: complete, or left by a crash.
package enum WebMFileState: Hashable, Sendable {
    /// The file was completed: nothing is to be done.
    case finalised
    /// The file is to be cut to `length` bytes, the end of its last whole cluster, and finalised.
    case clustered(length: UInt64, clusters: Int)

    /// Looks at a file that ``WebMRecordingWriter`` wrote, however it was cut. Reads the start of each cluster.
    /// - Parameters:
    ///   - length: the bytes of the file.
    ///   - read: reads bytes of it.
    /// - Throws: when the file was cut within its header, so that nothing of it is readable.
    package static func inspect(length: UInt64, read: @escaping FileReader) throws(FormatError) -> Self {
        let layout = try WebMFileLayout(length: length, read)
        if layout.isComplete { return .finalised }
        var walk = WebMClusterWalk(layout, length: length, read)
        var count = 0
        while try walk.next() != nil { count += 1 }
        return .clustered(length: walk.offset, clusters: count)
    }
}

/// The writes that make a WebM recording seekable, after the bytes that ``WebMFinaliser`` wrote to its end.
package struct WebMCompletion: Hashable, Sendable {
    /// Writes over the start of the file, in this order, when the cues are on the disk: SeekHead, duration, and last
    /// the size of the segment, which tells that the file is complete.
    package let patches: [FileWrite]
    /// The bytes of the file with the cues.
    package let length: UInt64
    /// The time of the last frame in milliseconds, from the file's origin.
    package let durationMS: UInt64
}

/// Completes a WebM recording: reads its clusters back and makes Cues, SeekHead and duration.
package enum WebMFinaliser {
    /// The cues of one file. When there are more, every second is left out, so that they stay evenly spread.
    package static let cuesMax = 4_096

    private struct Cue {
        let time: UInt64
        let position: UInt64
    }

    /// Completes a file.
    /// - Parameters:
    ///   - length: the bytes of the file, which end with a whole cluster: see ``WebMFileState/inspect(length:read:)``.
    ///   - read: reads bytes of the file.
    ///   - write: appends bytes to the file, and tells whether it could.
    /// - Throws: when the file is finalised already, has no frames, or cannot be read or written.
    package static func complete(
        length: UInt64,
        read: @escaping FileReader,
        write: @escaping ([UInt8]) -> Bool
    ) throws(FormatError) -> WebMCompletion {
        let layout = try WebMFileLayout(length: length, read)
        guard !layout.isComplete else { throw .invalid("the state of the file: it is complete") }
        var walk = WebMClusterWalk(layout, length: length, read)
        var cues: [Cue] = []
        var stride = 1
        var keyCount = 0
        var last: WebMCluster?
        while let cluster = try walk.next() {
            last = cluster
            guard cluster.firstTrack == layout.cueTrack, cluster.startsWithKey else { continue }
            defer { keyCount += 1 }
            guard keyCount % stride == 0 else { continue }
            if cues.count == cuesMax {
                cues = cues.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
                stride *= 2
                guard keyCount % stride == 0 else { continue }
            }
            cues.append(Cue(time: cluster.time, position: cluster.offset - UInt64(WebMLayout.segmentStart)))
        }
        guard let last else { throw .invalid("the file: it has no frames") }
        guard walk.offset == length else { throw .invalid("the end of the file: it is no cluster") }
        let durationMS = try last.endTime(read)
        let table = encode(cues, track: layout.cueTrack)
        guard table.isEmpty || write(table) else { throw .unwritable }
        let end = length + UInt64(table.count)
        return WebMCompletion(
            patches: patches(end: end, cues: cues.isEmpty ? nil : length, durationMS: durationMS),
            length: end,
            durationMS: durationMS
        )
    }

    private static func encode(_ cues: [Cue], track: UInt8) -> [UInt8] {
        guard !cues.isEmpty else { return [] }
        var writer = EBMLWriter()
        writer.append(.cues) { list in
            for cue in cues {
                list.append(.cuePoint) { point in
                    point.append(.cueTime, cue.time)
                    point.append(.cueTrackPositions) { positions in
                        positions.append(.cueTrack, UInt64(track))
                        positions.append(.cueClusterPosition, cue.position)
                    }
                }
            }
        }
        return writer.bytes
    }

    /// - Parameter cues: where Cues begins; `nil` without cues.
    private static func patches(end: UInt64, cues: UInt64?, durationMS: UInt64) -> [FileWrite] {
        let segment = UInt64(WebMLayout.segmentStart)
        var targets: [(EBMLElement, UInt64)] = [
            (.information, UInt64(WebMLayout.informationStart) - segment),
            (.tracks, UInt64(WebMLayout.tracksStart) - segment),
        ]
        if let cues { targets.append((.cues, cues - segment)) }
        var seekHead = EBMLWriter()
        seekHead.append(.seekHead) { list in
            for (element, position) in targets {
                list.append(.seek) { seek in
                    seek.append(.seekIdentifier, element.bytes)
                    seek.append(.seekPosition, position)
                }
            }
        }
        seekHead.append(void: WebMLayout.seekHeadBytes - seekHead.bytes.count)
        var duration = EBMLWriter()
        duration.append(.duration, Double(durationMS))
        var size: [UInt8] = []
        size.append(bigEndian: 0x0100_0000_0000_0000 | (end - segment))
        return [
            FileWrite(offset: segment, bytes: seekHead.bytes),
            FileWrite(offset: UInt64(WebMLayout.durationStart), bytes: duration.bytes),
            FileWrite(offset: segment - 8, bytes: size),
        ]
    }
}
