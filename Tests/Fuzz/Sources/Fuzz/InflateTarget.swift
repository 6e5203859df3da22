@testable import Deflate

/// A compressed message of a client: never longer than its bound, however it was made; and what is compressed here.
func fuzzInflate(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let bytesMax = input.pick([0, 1, 100, 1_024, 5_000, 65_536, 1 << 20])
    let rest = input.rest()
    if let content = try? Zlib.decompress(rest, bytesMax: bytesMax) {
        require(content.count <= bytesMax, "the content is bounded")
        if !content.isEmpty { requireTooLong(rest, bytesMax: content.count - 1) }
    }
    let compressed = Zlib.compress(rest)
    require((try? Zlib.decompress(compressed, bytesMax: rest.count)) == rest, "a message stays")
    if !rest.isEmpty { requireTooLong(compressed, bytesMax: rest.count - 1) }
    require((try? Zlib.decompress(compressed + [0], bytesMax: rest.count)) == nil, "nothing follows a stream")
}

private func requireTooLong(_ stream: [UInt8], bytesMax: Int) {
    do {
        _ = try Zlib.decompress(stream, bytesMax: bytesMax)
        fatalError("broken: content of more than \(bytesMax) bytes is refused")
    } catch {
        require(error == .tooLong, "a stream within other bounds is whole")
    }
}

func seedsInflate() -> [(name: String, bytes: [UInt8])] {
    let contents: [(String, [UInt8])] = [
        ("text", Array(#"{"type":"notify","event_type":"connection.created"}"#.utf8)),
        ("empty", []), ("bomb", [UInt8](repeating: 0, count: 400_000)),
        ("mixed", (0..<600).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }),
    ]
    return contents.map { ($0, [4] + Zlib.compress($1)) } + [("bomb-fits", [6] + Zlib.compress(contents[2].1))]
}
