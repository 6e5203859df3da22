/// The locks of the product, and the types that are `Sendable` by a promise of ours. What decides is an actor's or a value's; a
/// lock guards a queue between threads, a count, or a table that several threads need at once.
enum SharedState {
    /// Files with locks, how many each has, and what they guard. A lock is held for a few assignments: nothing waits, no
    /// closure of another type is called and nothing is sent meanwhile.
    static let locks: [String: (count: Int, guards: String)] = [
        "Base/Inbox.swift": (1, "a queue from threads to an actor"),
        "Base/Replaceable.swift": (1, "a value that is replaced as a whole"),
        "EventLoop/LockedValue.swift": (1, "the lock of libuv's loops: their inboxes and states"),
        "Forwarding/Media/Streams/TCPAdmission.swift": (1, "counts of TCP connections, of all loops"),
        "Forwarding/Media/ReceivingLoops.swift": (1, "the loop that takes a track of another node, of all loops"),
        "Metrics/History/ConnectionHistory.swift": (1, "records of live connections, between channels and requests"),
        "Metrics/NodeLog/NodeLogHandler.swift": (1, "the turn to write a line"),
        "Metrics/Telemetry/SpanQueue.swift": (1, "the queue of spans"),
        "Room/Cluster/Channels/ClusterChannels.swift": (1, "the replicas of channels, and queues of messages to them"),
        "Room/Cluster/Links/ControlLinks.swift": (1, "states and counts of links, between NIO's loop and readers"),
        "Room/Cluster/Links/PendingRequests.swift": (1, "requests that wait for answers"),
        "Room/Cluster/Node/ClusterNode.swift": (1, "the last view of the cluster, for readers"),
        "Room/Room/Channels/NodeDirectory.swift": (1, "the table of places, which channels change in one step"),
        "Room/Room/Channels/ParticipantEvents.swift": (1, "a queue of events, from a channel to a connection"),
        "Signaling/Web/Statistics/ClientStatistics.swift": (1, "counts"),
        "Signaling/Web/Statistics/SignalingStatistics.swift": (1, "counts"),
        "Signaling/Web/Clients/ClientAddresses.swift": (1, "addresses that proxies named, and counts of networks"),
        "Signaling/Web/Clients/WaitingBudget.swift": (1, "counts of bytes that wait, of all connections"),
        "Signaling/Web/Clients/RateLimiter.swift": (1, "token buckets of networks"),
        "Signaling/Web/Clients/RefusalLog.swift": (1, "token buckets of log lines of refused clients"),
        "Signaling/Web/FairWorkQueue.swift": (1, "a queue of jobs"),
        "Signaling/Web/Tracing/JoinTrace.swift": (1, "what a trace has seen, between a request and reports"),
        "Signaling/Web/Tracing/JoinTracer.swift": (1, "the table of joins under way"),
        "Signaling/Webhooks/ReportQueue.swift": (1, "the queue of reports, from channels and calls to webhooks"),
        "Tools/ImpairmentProxy/MediaPorts.swift": (1, "the addresses behind ports"),
        "nagare/Configuration/ConfigurationLayer.swift": (1, "keys that a library's closure lists"),
    ]

    /// Files with types that are `@unchecked Sendable`, how many, and why each is sound.
    static let unchecked: [String: (count: Int, reason: String)] = [
        "CongestionControl/Feedback/ReportedPackets.swift": (1, "it owns its memory, and cannot be copied"),
        "CongestionControl/Ring.swift": (1, "it owns its memory, and cannot be copied"),
        "EventLoop/EventLoop.swift": (1, "its state belongs to its thread, which each method checks or hands over to"),
        "EventLoop/LoopExecutor.swift": (1, "the same; its inbox has a lock"),
        "EventLoop/TCPSockets.swift": (1, "its state belongs to the loop's thread"),
        "Forwarding/Media/LoopRing.swift": (1, "one writer and one reader, with an atomic index each"),
        "Forwarding/Media/TLSAcceptor.swift": (1, "a stream that moves to another loop, and is not used here any more"),
        "Protocols/DTLS/DTLSCertificate.swift": (1, "OpenSSL counts references atomically, and nobody changes it"),
        "Protocols/OpenSSLBuffers/ConnectionBuffer.swift": (1, "a table of functions that nobody changes"),
        "Protocols/Signatures/OpenSSLKey.swift": (1, "OpenSSL counts references atomically, and nobody changes it"),
        "Protocols/TLS/TLSCertificate.swift": (1, "OpenSSL counts references atomically, and nobody changes it"),
    ]
}
