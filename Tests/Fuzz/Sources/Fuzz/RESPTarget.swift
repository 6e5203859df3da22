@testable import Cluster

/// The replies of a store: read in pieces as in one, and a node's record in each text. Then a command of the same bytes,
/// which reads as it was written.
func fuzzRESP(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let size = 1 + input.choice(64)
    let stream = input.rest()
    let whole = replies(in: stream, pieces: max(stream.count, 1))
    require(replies(in: stream, pieces: size) == whole, "replies are read however the stream is cut")
    for reply in whole.values { inspect(reply, depth: 0) }
    checkCommand(stream.split(separator: 0x0D, maxSplits: 8, omittingEmptySubsequences: false).map { Array($0) })
}

private let signer = RecordSigner(secrets: ["the-secret-of-the-cluster-that-is-fuzzed"])
private let instance = NodeInstance("a:7")!
private let cluster = ClusterName(rawValue: "t")!

private struct Replies: Equatable {
    var values: [RESPValue] = []
    var error: RESPError?
}

private func replies(in stream: [UInt8], pieces size: Int) -> Replies {
    var replies = Replies()
    do throws(RESPError) {
        let reader = try RESPReader()
        for start in stride(from: 0, to: stream.count, by: size) {
            withSpan(Array(stream[start..<min(start + size, stream.count)])) { reader.feed($0) }
            while let reply = try reader.next() { replies.values.append(reply) }
        }
    } catch { replies.error = error }
    return replies
}

private func inspect(_ reply: RESPValue, depth: Int) {
    require(depth <= RESPReader.depthMax, "arrays are bounded")
    require((reply.errorCode ?? "").count <= 32, "codes are bounded")
    _ = reply.number
    for value in reply.array ?? [] { inspect(value, depth: depth + 1) }
    guard let text = reply.text else { return }
    require(signer.verify(text, of: instance, in: cluster) != .valid, "nobody without the secret signs a record")
    guard let record = NodeRecord(encoded: text), let encoded = record.encoded() else { return }
    let signed = signer.sign(encoded, of: instance, in: cluster)
    require(signed.utf8.count <= NodeRecord.bytesMax, "records are bounded")
    require(NodeRecord(encoded: encoded) == record && NodeRecord(encoded: signed) == record, "a record stays")
    require(signer.verify(signed, of: instance, in: cluster) == .valid, "a signature is verified")
}

private func checkCommand(_ arguments: [[UInt8]]) {
    guard let command = try? RESPCommand(arguments).encoded() else { fatalError("broken: a command is written") }
    let read = replies(in: command, pieces: command.count)
    require(read == Replies(values: [.array(arguments.map { .bytes($0) })]), "a command reads as it was written")
}

func seedsRESP() -> [(name: String, bytes: [UInt8])] {
    let record =
        #"{"a":["198.51.100.7:7000"],"b":"1","k":"a:1","l":20,"m":3,"n":1,"r":"eu","s":"ready","u":"wss://a","z":"1"}"#
    let signed = String(record.dropLast()) + #","h":"0123456789abcdef0123456789abcdef"}"#
    let streams = [
        "simple": "+OK\r\n-NOSCRIPT No matching script.\r\n:42\r\n:-1\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n",
        "arrays": "*3\r\n:1\r\n*2\r\n+a\r\n*0\r\n$-1\r\n+next\r\n*-1\r\n", "nested": "*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
        "long": "*99999999999\r\n", "record": "*2\r\n$\(record.utf8.count)\r\n\(record)\r\n:1\r\n",
        "signed-record": "$\(signed.utf8.count)\r\n\(signed)\r\n",
    ]
    return streams.map { (name: $0.key, bytes: [4] + Array($0.value.utf8)) }
}
