package import ChannelTypes
package import Web

/// The thread on which the messages of all WebSockets are handled. Clients take turns on it.
package struct SignalingQueue: Sendable {
    package let work = FairWorkQueue<WorkOwner, ChannelName?>(label: "nagare.signaling")

    package init() {}

    /// Waits as the message of a client waits, and does nothing. While the thread hangs it does not return.
    package func probe() async { await Probe(work).wait() }

    private actor Probe {
        private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

        init(_ work: FairWorkQueue<WorkOwner, ChannelName?>) {
            executor = FairExecutor(work, share: nil, owner: .probe)
        }

        /// Counted, because the compiler removes the wait for a thread before a call that does nothing.
        private var waits: UInt64 = 0

        func wait() { waits &+= 1 }
    }
}
