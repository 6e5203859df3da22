import EventLoop
import Foundation
import SRTP

extension Machine {
    /// The machine that this process runs on.
    static var current: Self {
        Self(
            cores: ProcessInfo.processInfo.activeProcessorCount,
            addresses: NetworkInterfaces.addresses(),
            hostName: ProcessInfo.processInfo.hostName,
            srtpBackends: SRTPBackend.available
        )
    }
}
