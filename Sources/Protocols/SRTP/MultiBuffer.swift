internal import CIPSecMB
internal import COpenSSL

/// The intel-ipsec-mb manager of one loop, with the packets whose tags are not computed yet.
///
/// SIMD code hashes one packet per lane at the same time. So a packet in counter mode is encrypted at once, which is
/// cheap, and its tag is computed together with the tags of other packets.
@safe
struct MultiBuffer: ~Copyable {
    let manager: OpaquePointer
    private let lanes: Int
    private let messages: UnsafeMutablePointer<nagare_imb_message>
    private var count = 0

    private static let messagesMax = Int(NAGARE_IMB_BATCH_MAX)

    /// `nil` when the library is not available.
    init?() {
        guard let manager = unsafe nagare_imb_create() else { return nil }
        unsafe self.manager = manager
        lanes = unsafe nagare_imb_lanes(manager)
        unsafe messages = .allocate(capacity: Self.messagesMax)
    }

    deinit {
        unsafe nagare_imb_destroy(manager)
        unsafe messages.deallocate()
    }

    /// Adds `length` bytes at `packet`. Their tag is written to `tag` by the next ``complete()`` at the latest.
    @inline(__always)
    mutating func append(
        _ packet: UnsafeRawPointer,
        _ length: Int,
        key: UnsafePointer<nagare_HMAC_SHA1_key>,
        tag: UnsafeMutableRawPointer
    ) {
        let inner = unsafe UnsafeRawPointer(key)
        let outer = unsafe inner + MemoryLayout<SHA_CTX>.stride
        unsafe (messages + count).initialize(
            to: nagare_imb_message(bytes: packet, count: length, inner: inner, outer: outer, tag: tag)
        )
        count += 1
        if count == Self.messagesMax { complete() }
    }

    /// Computes and writes all pending tags.
    mutating func complete() {
        guard count > 0 else { return }
        let full = count - count % lanes
        let together = isWorthPass(from: full) ? count : full
        let isDone = unsafe nagare_imb_hmac_sha1_80(manager, messages, together)
        for index in (isDone ? together : 0)..<count { unsafe completeAlone(messages + index) }
        count = 0
    }

    /// Whether the packets from `start`, fewer than there are lanes, are hashed faster together than one by one. A pass
    /// over 16 lanes takes as long as the CPU's SHA instructions take for 3 to 4 packets of the longest length
    /// (measured on a Sapphire Rapids Xeon, 200 and 1,200 bytes).
    private func isWorthPass(from start: Int) -> Bool {
        var total = 0
        var longest = 0
        for index in start..<count {
            // The outer hash and the padding cost two more blocks.
            let cost = unsafe messages[index].count + 128
            total += cost
            longest = max(longest, cost)
        }
        return total * 2 > longest * 7
    }

    private func completeAlone(_ message: UnsafePointer<nagare_imb_message>) {
        guard let key = unsafe message.pointee.inner, let tag = unsafe message.pointee.tag else { return }
        var digest = InlineArray<20, UInt8>(repeating: 0)
        unsafe withUnsafeMutableBytes(of: &digest) { bytes in
            unsafe nagare_HMAC_SHA1(
                key.assumingMemoryBound(to: nagare_HMAC_SHA1_key.self),
                message.pointee.bytes,
                message.pointee.count,
                bytes.baseAddress
            )
            if let start = bytes.baseAddress {
                unsafe tag.copyMemory(from: start, byteCount: PacketCipher.hmacTagBytes)
            }
        }
    }
}
