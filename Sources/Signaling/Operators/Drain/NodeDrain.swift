import Admission
package import Ayame
package import Base
package import ChannelTypes
package import Logging
package import Room
import Web

/// Drains a node and takes that back: at once no new channels, then no newcomers, and at the deadline of an operators' drain
/// all clients are told to leave, each with the reason that its protocol has for the end of a node. The node itself stays.
package actor NodeDrain {
    private let directory: ChannelDirectory
    private let relayCalls: AyameCalls
    private let logger: Logger
    private let now: @Sendable () -> Instant
    private let hasStarted: @Sendable () -> Bool
    private var model = DrainModel()

    /// - Parameters:
    ///   - relayCalls: The registrations of the 1:1 relay.
    ///   - now: The clock; by default the one of the listeners.
    ///   - hasStarted: Whether all listeners are up.
    package init(
        directory: ChannelDirectory,
        relayCalls: AyameCalls,
        logger: Logger,
        now: (@Sendable () -> Instant)? = nil,
        hasStarted: @escaping @Sendable () -> Bool = { true }
    ) {
        self.directory = directory
        self.relayCalls = relayCalls
        self.logger = logger
        self.now = now ?? { DeadlineTimer.now }
        self.hasStarted = hasStarted
    }

    package var state: NodeState { model.state(hasStarted: hasStarted()) }

    /// How far the drain is.
    package var report: DrainReport {
        get async {
            let clients = await clients
            return model.report(clients: clients, hasStarted: hasStarted(), at: now())
        }
    }

    /// The participants of channels, and the clients of the relay whose media does not pass the node.
    private var clients: Int {
        get async {
            let counts = await directory.counts
            return counts.publishers + counts.viewers + (await relayCalls.directRegistrationCount)
        }
    }

    /// Starts to drain, or changes the times of the drain that is under way.
    /// - Throws: ``DrainFailure/stopping`` when the node shuts down, or an operator asks during the drain of a shutdown.
    package func start(_ request: DrainRequest) throws(DrainFailure) {
        perform(try model.start(request, at: now()))
        logger.notice("draining", metadata: ["deadline_seconds": "\(Int(request.deadline.seconds))"])
    }

    /// Takes the drain back: all newcomers are admitted again. Without a drain it does nothing.
    /// - Throws: ``DrainFailure/stopping`` when the node shuts down or drains before its shutdown.
    package func cancel() throws(DrainFailure) {
        let wasDraining = state == .draining
        perform(try model.cancel())
        if wasDraining { logger.notice("drain cancelled") }
    }

    /// The shutdown begins, which is final.
    package func stop() { model.stop() }

    /// Advances the drain. To be called once a second.
    package func tick() async {
        guard model.phase != nil else { return }
        let clients = await clients
        var endsClients = false
        let outputs = model.tick(clients: clients, at: now())
        perform(outputs)
        for output in outputs {
            switch output {
            case .refuse: break
            case .endClients: endsClients = true
            case .progress(let clients, let remaining):
                logger.info(
                    "draining",
                    metadata: ["clients": "\(clients)", "remaining_seconds": "\(Int(remaining.seconds))"]
                )
            case .emptied: logger.info("draining: all clients have left")
            }
        }
        guard endsClients else { return }
        logger.notice(
            "the drain deadline is over: the remaining clients are disconnected",
            metadata: ["clients": "\(clients)"]
        )
        await relayCalls.endAll()
        await directory.endAll()
    }

    private func perform(_ outputs: [DrainModel.Output]) {
        for case .refuse(let stage) in outputs { directory.setDrainStage(stage) }
    }
}
