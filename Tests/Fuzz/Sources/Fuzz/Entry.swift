import Glibc
import Wire

/// One fuzz target, selected by its name in `FUZZ_TARGET`.
struct FuzzTarget: Sendable {
    let name: String
    /// The longest input in bytes.
    let lengthMax: Int
    /// Runs one input. A violated invariant ends the process.
    let run: @Sendable (RawSpan) -> Void
    /// The seeds of the corpus: name and bytes.
    let seeds: @Sendable () -> [(name: String, bytes: [UInt8])]

    static let all: [FuzzTarget] = [
        FuzzTarget(name: "stun", lengthMax: 600, run: fuzzSTUN, seeds: seedsSTUN),
        FuzzTarget(name: "rtp", lengthMax: 600, run: fuzzRTP, seeds: seedsRTP),
        FuzzTarget(name: "rtcp", lengthMax: 1_200, run: fuzzRTCP, seeds: seedsRTCP),
        FuzzTarget(name: "payload", lengthMax: 400, run: fuzzPayload, seeds: seedsPayload),
        FuzzTarget(name: "sdp", lengthMax: 6_000, run: fuzzSDP, seeds: seedsSDP),
        FuzzTarget(name: "session", lengthMax: 10_000, run: fuzzSession, seeds: seedsSession),
        FuzzTarget(name: "trickle", lengthMax: 2_000, run: fuzzTrickle, seeds: seedsTrickle),
        FuzzTarget(name: "ice", lengthMax: 2_000, run: fuzzICE, seeds: seedsICE),
        FuzzTarget(name: "turn", lengthMax: 2_000, run: fuzzTURN, seeds: seedsTURN),
        FuzzTarget(name: "stream", lengthMax: 4_000, run: fuzzStream, seeds: seedsStream),
        FuzzTarget(name: "dtls-server", lengthMax: 3_000, run: { fuzzDTLS($0, role: .server) }, seeds: seedsDTLS),
        FuzzTarget(name: "dtls-client", lengthMax: 3_000, run: { fuzzDTLS($0, role: .client) }, seeds: seedsDTLS),
        FuzzTarget(name: "tls", lengthMax: 4_000, run: fuzzTLS, seeds: seedsTLS),
        FuzzTarget(name: "srtp", lengthMax: 1_500, run: fuzzSRTP, seeds: seedsSRTP),
        FuzzTarget(name: "sctp", lengthMax: 2_000, run: fuzzSCTP, seeds: seedsSCTP),
        FuzzTarget(name: "rtmp", lengthMax: 6_000, run: fuzzRTMP, seeds: seedsRTMP),
        FuzzTarget(name: "flv", lengthMax: 4_000, run: fuzzFLV, seeds: seedsFLV),
        FuzzTarget(
            name: "media-configuration",
            lengthMax: 1_000,
            run: fuzzMediaConfiguration,
            seeds: seedsMediaConfiguration
        ),
        FuzzTarget(
            name: "received-frames",
            lengthMax: 4_000,
            run: fuzzReceivedFrames,
            seeds: seedsReceivedFrames
        ),
        FuzzTarget(name: "sent-frames", lengthMax: 6_000, run: fuzzSentFrames, seeds: seedsSentFrames),
        FuzzTarget(name: "salvage", lengthMax: 6_000, run: fuzzSalvage, seeds: seedsSalvage),
        FuzzTarget(name: "relay", lengthMax: 4_000, run: fuzzRelay, seeds: seedsRelay),
        FuzzTarget(name: "relay-link", lengthMax: 4_000, run: fuzzRelayLink, seeds: seedsRelayLink),
        FuzzTarget(name: "link", lengthMax: 4_000, run: fuzzLink, seeds: seedsLink),
        FuzzTarget(name: "unconnected", lengthMax: 3_000, run: fuzzUnconnected, seeds: seedsUnconnected),
        FuzzTarget(name: "connected", lengthMax: 4_000, run: fuzzConnected, seeds: seedsConnected),
        FuzzTarget(name: "json", lengthMax: 2_000, run: fuzzJSON, seeds: seedsJSON),
        FuzzTarget(name: "jwt", lengthMax: 2_000, run: fuzzJWT, seeds: seedsJWT),
        FuzzTarget(name: "app-token", lengthMax: 1_000, run: fuzzAppToken, seeds: seedsAppToken),
        FuzzTarget(name: "signed-url", lengthMax: 400, run: fuzzSignedURL, seeds: seedsSignedURL),
        FuzzTarget(name: "sora", lengthMax: 4_000, run: fuzzSora, seeds: seedsSora),
        FuzzTarget(name: "ayame", lengthMax: 2_000, run: fuzzAyame, seeds: seedsAyame),
        FuzzTarget(name: "channel", lengthMax: 12_000, run: fuzzChannel, seeds: seedsChannel),
        FuzzTarget(name: "resp", lengthMax: 2_000, run: fuzzRESP, seeds: seedsRESP),
        FuzzTarget(name: "inflate", lengthMax: 4_000, run: fuzzInflate, seeds: seedsInflate),
    ]
}

/// The target of this process. Selected by the environment and not by an argument, because libFuzzer starts copies of
/// itself with other arguments.
private let chosen: FuzzTarget = {
    let name = environment("FUZZ_TARGET") ?? ""
    if let target = FuzzTarget.all.first(where: { $0.name == name }) { return target }
    leave("FUZZ_TARGET must be one of: \(FuzzTarget.all.map(\.name).joined(separator: " "))", status: 2)
}()

/// Called once at the start. Handles `FUZZ_TARGET=list` and `FUZZ_SEEDS=FOLDER`, and exits.
@c(LLVMFuzzerInitialize)
public func initialize(_ count: OpaquePointer?, _ arguments: OpaquePointer?) -> CInt {
    if environment("FUZZ_TARGET") == "list" {
        leave(FuzzTarget.all.map { "\($0.name) \($0.lengthMax)" }.joined(separator: "\n"), status: 0)
    }
    if let folder = environment("FUZZ_SEEDS") { writeSeeds(under: folder) }
    _ = chosen
    return 0
}

/// Runs one input.
@c(LLVMFuzzerTestOneInput)
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let buffer = unsafe UnsafeRawBufferPointer(start: data, count: count)
    chosen.run(unsafe buffer.bytes)
    return 0
}

/// Ends the process when an invariant of the code under test is violated; libFuzzer keeps the input.
func require(_ condition: @autoclosure () -> Bool, _ invariant: @autoclosure () -> String) {
    if !condition() { fatalError("broken: \(invariant())") }
}

private func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    return unsafe String(cString: value)
}

private func leave(_ text: String, status: CInt) -> Never {
    print(text)
    exit(status)
}

/// Writes the seeds of all targets to `FOLDER/TARGET/NAME`, and exits.
private func writeSeeds(under folder: String) -> Never {
    for target in FuzzTarget.all {
        let path = "\(folder)/\(target.name)"
        _ = unsafe mkdir(path, 0o755)
        for seed in target.seeds() {
            guard let file = unsafe fopen("\(path)/\(seed.name)", "wb") else {
                leave("\(path)/\(seed.name) cannot be written.", status: 1)
            }
            _ = unsafe fwrite(seed.bytes, 1, seed.bytes.count, file)
            _ = unsafe fclose(file)
        }
    }
    leave("Wrote the seeds of \(FuzzTarget.all.count) targets.", status: 0)
}
