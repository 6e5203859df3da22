internal import CIPSecMB
public import Wire

/// Which implementation encrypts. All produce the same bytes.
public enum SRTPBackend: String, Sendable, CaseIterable {
    /// libsrtp2: the reference, and the portable fallback.
    case libsrtp2
    /// OpenSSL's ciphers with their contexts kept.
    case openssl
    /// intel-ipsec-mb: vectors of AES, and many packets' SHA-1 at the same time. x86-64 with AES-NI only.
    case ipsecMB = "ipsec-mb"

    /// What this build, this machine's libraries and this CPU have, the fastest first.
    public static var available: [SRTPBackend] {
        nagare_imb_is_available() ? [.ipsecMB, .openssl, .libsrtp2] : [.openssl, .libsrtp2]
    }

    /// The fastest that is available.
    public static var preferred: SRTPBackend { available.first ?? .libsrtp2 }
}

/// One loop's crypto: the backend, with the memory that its batches need. One thread at a time.
@safe
public final class SRTPEngine {
    public let backend: SRTPBackend
    /// In memory of its own, for ciphers to point to; `nil` unless the backend is ``SRTPBackend/ipsecMB``.
    let multiBuffer: UnsafeMutablePointer<MultiBuffer>?

    /// - Throws: ``SRTPError/failed`` when the backend is not available here.
    public init(_ backend: SRTPBackend = .preferred) throws(SRTPError) {
        self.backend = backend
        guard backend == .ipsecMB else {
            unsafe multiBuffer = nil
            return
        }
        guard let created = MultiBuffer() else { throw .failed }
        let memory = UnsafeMutablePointer<MultiBuffer>.allocate(capacity: 1)
        unsafe memory.initialize(to: created)
        unsafe multiBuffer = memory
    }

    deinit {
        guard let multiBuffer = unsafe multiBuffer else { return }
        unsafe multiBuffer.deinitialize(count: 1)
        unsafe multiBuffer.deallocate()
    }

    /// The contexts for one peer. They keep the engine, whose thread they belong to.
    /// - Parameters:
    ///   - sourcesMax: how many senders the peer may use at the same time, RTP and RTCP together.
    ///   - allowsRepeats: whether a sequence number may be protected again, for streams that are repeated without RTX.
    ///     Without it a second packet of the same number is refused, which keeps the key stream from being used twice.
    /// - Throws: ``SRTPError/failed`` when a library refuses the keys or cannot allocate.
    public func makeTransform(
        _ keys: SRTPKeyingMaterial,
        sourcesMax: Int = 64,
        allowsRepeats: Bool = true
    ) throws(SRTPError) -> any SRTPTransform {
        switch backend {
        case .libsrtp2: try LibSRTPTransform(keys, sourcesMax: sourcesMax, allowsRepeats: allowsRepeats)
        case .openssl, .ipsecMB:
            try NativeTransform(keys, sourcesMax: sourcesMax, allowsRepeats: allowsRepeats, engine: self)
        }
    }

    /// Completes every packet that was handed to an ``SRTPSender`` since the call before.
    public func flush() { unsafe multiBuffer?.pointee.complete() }
}
