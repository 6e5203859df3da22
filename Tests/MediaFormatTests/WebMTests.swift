import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

struct WebMTests {
    private func write(_ frames: [MediaFrame]) throws -> (file: MemoryFile, ends: [Int]) {
        var tracks: [WebMTrack] = []
        var index: [MediaKind: Int] = [:]
        for frame in frames where index[frame.kind] == nil {
            guard let configuration = frame.configuration else { continue }
            index[frame.kind] = tracks.count
            tracks.append(try WebMTrack(number: tracks.count + 1, configuration: configuration))
        }
        var writer = try WebMRecordingWriter(tracks: tracks, origin: .zero, clusterDuration: .milliseconds(100))
        let file = MemoryFile()
        file.apply([writer.start])
        var ends = [file.bytes.count]
        for frame in frames {
            for write in try writer.append(frame, track: index[frame.kind] ?? 0) {
                file.apply([write])
                ends.append(file.bytes.count)
            }
        }
        file.apply(writer.finish())
        ends.append(file.bytes.count)
        return (file, ends)
    }

    @Test func `a cluster has the bytes that it should have`() throws {
        let size = PictureSize(width: 640, height: 360)
        let track = try WebMTrack(number: 1, configuration: .vp8(VPConfiguration(size: size)))
        var writer = try WebMRecordingWriter(tracks: [track], origin: .zero)
        let key = MediaFrame(codec: .vp8, decodeTime: .milliseconds(300), isKey: true, bytes: [7])
        let delta = MediaFrame(
            codec: .vp8,
            decodeTime: .milliseconds(333),
            isKey: false,
            isDiscardable: true,
            bytes: [8, 9]
        )
        #expect(try writer.append(key, track: 0).isEmpty)
        #expect(try writer.append(delta, track: 0).isEmpty)
        let golden: [UInt8] = [
            0x1F, 0x43, 0xB6, 0x75, 0x93, 0xE7, 0x82, 0x01, 0x2C, 0xA3, 0x85, 0x81, 0, 0, 0x80, 7, 0xA3, 0x86, 0x81, 0,
            33,
            0x01, 8, 9,
        ]
        #expect(try writer.append(key, track: 0) == [FileWrite(bytes: golden)])
    }

    @Test(arguments: [Fixtures.av1, Fixtures.vp9])
    func `a file that is cut anywhere keeps its whole clusters`(fixture: [UInt8]) throws {
        let (file, ends) = try write(try demux(fixture))
        #expect(ends.count > 3)
        for count in stride(from: 0, through: file.bytes.count, by: 3) {
            let cut = MemoryFile(Array(file.bytes.prefix(count)))
            let state = try? WebMFileState.inspect(length: cut.length, read: cut.read)
            guard count >= ends[0] else {
                #expect(state == nil)
                continue
            }
            let whole = ends.lastIndex { $0 <= count } ?? 0
            #expect(state == .clustered(length: UInt64(ends[whole]), clusters: whole))
        }
    }

    @Test func `the finaliser fills the places of the header`() throws {
        let (file, ends) = try write(try demux(Fixtures.vp9))
        let before = file.bytes
        let completion = try WebMFinaliser.complete(length: file.length, read: file.read, write: file.append)
        #expect(completion.length == file.length && completion.patches.count == 3)
        file.apply(completion.patches)
        #expect(file.bytes.count == Int(completion.length))
        #expect(Array(file.bytes[ends[0]..<before.count]) == Array(before[ends[0]...]), "the clusters stay as they are")
        #expect(try WebMFileState.inspect(length: file.length, read: file.read) == .finalised)
        #expect(completion.durationMS > 350 && completion.durationMS < 500)
        // Cues at the end, and in the SeekHead.
        #expect(Array(file.bytes[before.count..<(before.count + 4)]) == [0x1C, 0x53, 0xBB, 0x6B])
        #expect(throws: FormatError.self) {
            _ = try WebMFinaliser.complete(length: file.length, read: file.read, write: file.append)
        }
    }

    @Test func `codecs of MP4 are refused`() throws {
        let record = try AACConfiguration(sampleRate: 48_000, channels: 2)
        #expect(throws: FormatError.unsupported("aac in WebM")) {
            _ = try WebMTrack(number: 1, configuration: .aac(record))
        }
        #expect(throws: FormatError.self) {
            _ = try MP4Track(id: 1, configuration: .vp8(VPConfiguration(size: nil)))
        }
    }
}
