import Base
import Glibc
import SRTP
import TestSupport
import Testing
import Wire

/// Runs the traffic of several peers through every backend: all must send the same bytes and return the same results.
/// Uses raw memory, so that hundreds of thousands of packets take seconds.
@safe
final class BackendDifference {
    /// The packets of a run: each source wraps its sequence numbers several times.
    static let packets: Int = {
        #if DEBUG
            40_000
        #else
            500_000
        #endif
    }()

    /// One stream of one peer.
    private struct Stream {
        var ssrc: UInt32
        var newest: UInt64
        /// The handles, one per backend.
        var handles: [SRTPOutboundStream]
    }

    private struct Peer {
        /// One per backend.
        let near: [any SRTPTransform]
        let far: [any SRTPTransform]
        let senders: [SRTPSender]
        var streams: [Stream] = []
    }

    /// A packet of a batch, by its position in each backend's arena.
    private struct Sent {
        let peer: Int
        let stream: Int
        let ssrc: UInt32
        let offset: Int
        let length: Int
        let isRTCP: Bool
        /// The position of the unprotected packet.
        let plain: Int
        let plainLength: Int
    }

    private static let arenaBytes = 1 << 18
    private static let noiseBytes = 1 << 14
    private static let canary: UInt8 = 0xA7

    private let backends: [SRTPBackend]
    private let engines: [SRTPEngine]
    private let tagLength: Int
    private let arenas: [UnsafeMutableRawPointer]
    private let plains: UnsafeMutableRawPointer
    private let scratch: UnsafeMutableRawPointer
    /// Random bytes for headers and payloads.
    private let noise: UnsafeMutableRawPointer
    private var peers: [Peer] = []
    private var generator: SeededGenerator
    private var nextSSRC: UInt32 = 1
    private(set) var sent = 0
    private(set) var accepted = 0
    private(set) var replaced = 0
    /// The first difference; empty when there is none.
    private(set) var difference = ""

    init(_ profile: SRTPProfile, seed: UInt64, peerCount: Int = 6) throws {
        backends = SRTPBackend.available
        engines = try backends.map { backend in try SRTPEngine(backend) }
        tagLength = profile.tagLength
        unsafe arenas = backends.map { _ in .allocate(byteCount: Self.arenaBytes, alignment: 64) }
        unsafe plains = .allocate(byteCount: Self.arenaBytes, alignment: 64)
        unsafe scratch = .allocate(byteCount: 4_096, alignment: 64)
        unsafe noise = .allocate(byteCount: Self.noiseBytes, alignment: 64)
        generator = SeededGenerator(seed: seed)
        for offset in stride(from: 0, to: Self.noiseBytes, by: 8) {
            unsafe noise.storeBytes(of: generator.next(), toByteOffset: offset, as: UInt64.self)
        }
        for number in 0..<peerCount {
            let local = Pair.keys(profile, seed: UInt8(number))
            let remote = Pair.keys(profile, seed: UInt8(number + 128))
            let near = try #require(SRTPKeyingMaterial(profile: profile, local: local, remote: remote))
            let far = try #require(SRTPKeyingMaterial(profile: profile, local: remote, remote: local))
            let senders = try engines.map { engine in try engine.makeTransform(near) }
            var peer = Peer(
                near: senders,
                far: try engines.map { engine in try engine.makeTransform(far, sourcesMax: 4) },
                senders: senders.map(\.sender)
            )
            for _ in 0..<3 { peer.streams.append(makeStream(peer)) }
            peers.append(peer)
        }
    }

    deinit {
        for backend in backends.indices { unsafe arenas[backend].deallocate() }
        unsafe plains.deallocate()
        unsafe scratch.deallocate()
        unsafe noise.deallocate()
    }

    private func makeStream(_ peer: Peer) -> Stream {
        nextSSRC &+= 0x0101_0101
        let ssrc = nextSSRC
        return Stream(
            ssrc: ssrc,
            newest: UInt64(generator.below(0x1_0000)),
            handles: peer.senders.compactMap { $0.stream(SSRC(rawValue: ssrc)) }
        )
    }

    /// Sends and delivers `count` packets, or fewer after a difference.
    func run(_ count: Int) {
        while sent < count, difference.isEmpty {
            let batch = send(1 + generator.below(100))
            for engine in engines { engine.flush() }
            compareArenas()
            deliver(batch)
        }
    }

    // MARK: - Sending

    private func send(_ count: Int) -> [Sent] {
        for backend in backends.indices {
            unsafe arenas[backend].initializeMemory(as: UInt8.self, repeating: Self.canary, count: Self.arenaBytes)
        }
        var batch: [Sent] = []
        var offset = 0
        var plain = 0
        for _ in 0..<count {
            // Any alignment, as in a batch that is packed back to back.
            offset += generator.below(3)
            let packet =
                generator.below(24) == 0 ? sendRTCP(at: offset, plain: plain) : sendRTP(at: offset, plain: plain)
            guard let packet else { continue }
            offset += packet.length
            plain += packet.plainLength
            batch.append(packet)
            sent += 1
        }
        return batch
    }

    private func sendRTP(at offset: Int, plain: Int) -> Sent? {
        let peer = generator.below(peers.count)
        let number = generator.below(peers[peer].streams.count)
        let stream = peers[peer].streams[number]
        let step =
            switch generator.below(200) {
            case 0: 10_000 + generator.below(9_000)
            case 1...20: -generator.below(1_023)
            case 21...30: 2 + generator.below(40)
            default: 1
            }
        let index = UInt64(max(0, Int(stream.newest) + step))
        peers[peer].streams[number].newest = max(stream.newest, index)
        let header = unsafe writeHeader(plains + plain, ssrc: stream.ssrc, index: index)
        let payload = payloadLength()
        // The payload of a repeated packet differs from the first one, which no backend checks.
        unsafe fill(plains + plain + header, payload)
        let inference = step < 1_000 && generator.below(4) == 0
        let isInPlace = generator.below(3) == 0
        let misalignment = generator.below(16)
        var length = 0
        for backend in backends.indices {
            let target = unsafe arenas[backend] + offset
            unsafe target.copyMemory(from: plains + plain, byteCount: header)
            let result: Int
            if inference {
                unsafe target.copyMemory(from: plains + plain, byteCount: header + payload)
                result = unsafe protect(peers[peer].near[backend], target, header + payload, isRTCP: false)
            } else {
                let source = unsafe isInPlace ? target + header : scratch + misalignment
                unsafe source.copyMemory(from: plains + plain + header, byteCount: payload)
                result = unsafe peers[peer].senders[backend].protectRTP(
                    stream.handles[backend],
                    target,
                    headerLength: header,
                    payload: source,
                    payloadLength: payload,
                    index: index
                )
            }
            if backend == 0 { length = result }
            note(result == length, "\(backends[backend]) returned \(result) for index \(index)")
        }
        note(length == header + payload + tagLength, "\(length) bytes for \(header) and \(payload)")
        guard length > 0 else { return nil }
        return Sent(
            peer: peer,
            stream: number,
            ssrc: stream.ssrc,
            offset: offset,
            length: length,
            isRTCP: false,
            plain: plain,
            plainLength: header + payload
        )
    }

    private func sendRTCP(at offset: Int, plain: Int) -> Sent? {
        let peer = generator.below(peers.count)
        let number = generator.below(peers[peer].streams.count)
        let count = 8 + 4 * generator.below(60)
        unsafe fill(plains + plain, count)
        unsafe plains.storeBytes(of: 0x81, toByteOffset: plain, as: UInt8.self)
        let ssrc = peers[peer].streams[number].ssrc
        unsafe plains.storeBytes(of: ssrc.bigEndian, toByteOffset: plain + 4, as: UInt32.self)
        var length = 0
        for backend in backends.indices {
            let target = unsafe arenas[backend] + offset
            unsafe target.copyMemory(from: plains + plain, byteCount: count)
            let result = unsafe protect(peers[peer].near[backend], target, count, isRTCP: true)
            if backend == 0 { length = result }
            note(result == length, "\(backends[backend]) returned \(result) for RTCP")
        }
        note(length == count + tagLength + 4, "\(length) bytes for RTCP of \(count)")
        guard length > 0 else { return nil }
        return Sent(
            peer: peer,
            stream: number,
            ssrc: ssrc,
            offset: offset,
            length: length,
            isRTCP: true,
            plain: plain,
            plainLength: count
        )
    }

    /// A header with any number of contributing sources and an extension of any length, mostly short ones.
    private func writeHeader(_ place: UnsafeMutableRawPointer, ssrc: UInt32, index: UInt64) -> Int {
        let sources = generator.below(8) == 0 ? generator.below(16) : 0
        let words = generator.below(4) == 0 ? -1 : generator.below(40) == 0 ? generator.below(60) : generator.below(5)
        let length = 12 + 4 * sources + (words < 0 ? 0 : 4 + 4 * words)
        unsafe fill(place, length)
        unsafe place.storeBytes(of: 0x80 | (words < 0 ? 0 : 0x10) | UInt8(sources), as: UInt8.self)
        unsafe place.storeBytes(of: UInt16(truncatingIfNeeded: index).bigEndian, toByteOffset: 2, as: UInt16.self)
        unsafe place.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
        guard words >= 0 else { return length }
        unsafe place.storeBytes(of: UInt16(0xBEDE).bigEndian, toByteOffset: 12 + 4 * sources, as: UInt16.self)
        unsafe place.storeBytes(of: UInt16(words).bigEndian, toByteOffset: 14 + 4 * sources, as: UInt16.self)
        return length
    }

    private func payloadLength() -> Int {
        switch generator.below(8) {
        case 0: generator.below(40)
        case 1: 16 * generator.below(40)
        case 2: 1_100 + generator.below(301)
        default: generator.below(400)
        }
    }

    private func fill(_ place: UnsafeMutableRawPointer, _ count: Int) {
        unsafe place.copyMemory(from: noise + generator.below(Self.noiseBytes - count), byteCount: count)
    }

    /// Compares the whole arenas, with the bytes between and after the packets.
    private func compareArenas() {
        for backend in backends.indices.dropFirst() {
            let isEqual = unsafe memcmp(arenas[backend], arenas[0], Self.arenaBytes) == 0
            note(isEqual, "\(backends[backend]) wrote other bytes than \(backends[0])")
        }
    }

    // MARK: - Delivering

    /// Delivers in any order: some packets are lost, some duplicated, some modified first.
    private func deliver(_ batch: [Sent]) {
        var order = Array(batch.indices)
        // Only neighbours are swapped, so that the reordering stays within the replay window.
        for index in order.indices.dropLast() where generator.below(4) == 0 { order.swapAt(index, index + 1) }
        for index in order where generator.below(16) > 0 {
            let packet = batch[index]
            if generator.below(8) == 0 { forge(packet) }
            switch receive(packet) {
            case .success:
                accepted += 1
                if generator.below(8) == 0 { note(receive(packet) == .failure(.replayed), "a replay was accepted") }
            case .failure(.authentication) where !packet.isRTCP: replaceStream(packet)
            case .failure: break
            }
        }
    }

    /// Passes one packet to every backend; returns their common result.
    private func receive(_ packet: Sent) -> Result<Int, SRTPError> {
        var outcome: Result<Int, SRTPError>?
        for backend in backends.indices {
            unsafe scratch.copyMemory(from: arenas[0] + packet.offset, byteCount: packet.length)
            let result = unprotect(peers[packet.peer].far[backend], packet.length, isRTCP: packet.isRTCP)
            if let outcome { note(outcome == result, "\(backends[backend]): \(result), \(backends[0]): \(outcome)") }
            outcome = result
            guard case .success(let length) = result else { continue }
            let isSame = unsafe memcmp(scratch, plains + packet.plain, packet.plainLength) == 0
            note(length == packet.plainLength && isSame, "\(backends[backend]) made something else of it")
        }
        return outcome ?? .failure(.failed)
    }

    /// A changed bit or missing bytes: all refuse it for the same reason, and no state changes.
    private func forge(_ packet: Sent) {
        let position = generator.below(packet.length)
        let bit = UInt8(1) << UInt8(generator.below(8))
        let length = generator.below(10) == 0 ? generator.below(packet.length) : packet.length
        var outcome: Result<Int, SRTPError>?
        for backend in backends.indices {
            unsafe scratch.copyMemory(from: arenas[0] + packet.offset, byteCount: packet.length)
            let byte = unsafe scratch.load(fromByteOffset: position, as: UInt8.self)
            unsafe scratch.storeBytes(of: byte ^ bit, toByteOffset: position, as: UInt8.self)
            let far = peers[packet.peer].far[backend]
            let before = far.sourceCount
            let result = unprotect(far, length, isRTCP: packet.isRTCP)
            if case .success = result { note(false, "\(backends[backend]) accepted a forged packet") }
            if let outcome { note(outcome == result, "\(backends[backend]): \(result), \(backends[0]): \(outcome)") }
            outcome = result
            note(far.sourceCount == before, "a forged packet changed the sources")
        }
    }

    /// A receiver that missed the roll-over accepts nothing more of a stream: it is replaced by a new stream.
    private func replaceStream(_ packet: Sent) {
        let stream = peers[packet.peer].streams[packet.stream]
        guard stream.ssrc == packet.ssrc else { return }
        for far in peers[packet.peer].far { far.removeStream(SSRC(rawValue: stream.ssrc)) }
        peers[packet.peer].streams[packet.stream] = makeStream(peers[packet.peer])
        replaced += 1
    }

    private func protect(
        _ transform: any SRTPTransform,
        _ place: UnsafeMutableRawPointer,
        _ count: Int,
        isRTCP: Bool
    ) -> Int {
        var span = unsafe MutableRawSpan(
            _unsafeBytes: UnsafeMutableRawBufferPointer(start: place, count: count + SRTPLimits.overheadBytesMax)
        )
        let result =
            isRTCP
            ? try? transform.protectRTCP(&span, length: count) : try? transform.protectRTP(&span, length: count)
        return result ?? -1
    }

    private func unprotect(
        _ transform: any SRTPTransform,
        _ count: Int,
        isRTCP: Bool
    ) -> Result<Int, SRTPError> {
        var span = unsafe MutableRawSpan(_unsafeBytes: UnsafeMutableRawBufferPointer(start: scratch, count: count))
        do throws(SRTPError) {
            return .success(
                isRTCP
                    ? try transform.unprotectRTCP(&span, length: count)
                    : try transform.unprotectRTP(&span, length: count)
            )
        } catch {
            return .failure(error)
        }
    }

    private func note(_ holds: Bool, _ text: @autoclosure () -> String) {
        if !holds, difference.isEmpty { difference = text() }
    }
}

extension SeededGenerator {
    /// A number from 0 to `limit` - 1.
    mutating func below(_ limit: Int) -> Int { Int(truncatingIfNeeded: next() >> 33) % limit }
}
