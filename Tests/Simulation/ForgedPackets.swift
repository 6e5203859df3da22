import Base
import DTLS
import SRTP
import Wire

@testable import Forwarding

// What hostile clients send, and the product never does.

extension Egress {
    /// Encrypts and sends one whole RTP packet as it is, without a number of its own.
    func sendRTP(_ packet: [UInt8], into batch: DatagramBatch) {
        guard let transform, unsafe state.pointee.isSendable else { return }
        unsafe batch.append(to: state.pointee.path) { slot in
            guard packet.count + SRTPLimits.overheadBytesMax <= slot.byteCount else { return nil }
            slot.store(unsafe packet.span.bytes, at: 0)
            return try? transform.protectRTP(&slot, length: packet.count)
        }
    }
}

extension PeerTransport {
    /// Sends one record of application data as it is.
    func sendRecord(_ bytes: [UInt8], at now: Instant, into batch: DatagramBatch) {
        guard let path = selectedPath, connection.send(unsafe bytes.span.bytes, at: now) else { return }
        connection.drainOutput { egress.sendDTLS($0, over: path, into: batch) }
    }
}
