package import Base
package import ChannelTypes
package import Cluster
internal import MediaTypes
internal import TestSupport

/// Nodes and their store in virtual time.
package struct SimulatedCluster: Sendable {
    /// One run of a node.
    package struct Run: Sendable {
        enum Answer: Sendable {
            case enlistment(Result<NodeIncarnation, StoreError>)
            case beat(Result<HeartbeatAnswer, StoreError>)
        }
        package var membership: Membership
        package var rooms: [ChannelName] = []
        package var isRunning = true
        package internal(set) var events: [Membership.Event] = []
        package internal(set) var requestsSent = 0
        package internal(set) var roomsSent = 0
        package let startedAt: Instant
        package internal(set) var endedAt: Instant?
        fileprivate var answer: (at: Instant, Answer)?
        fileprivate var failedRooms: [(at: Instant, ChannelName)] = []

        /// When something happens to the run next.
        fileprivate var nextDeadline: Instant? {
            earliest(earliest(membership.nextDeadline, answer?.at), failedRooms.first?.at)
        }
    }

    /// After so long without an answer a heartbeat has failed, and a script.
    private static let heartbeatMax = Interval.seconds(1)
    private static let scriptMax = Interval.milliseconds(150)

    package var store: MemoryStore
    package private(set) var runs: [Run] = []
    package private(set) var now = Instant(nanoseconds: 0)
    /// Called after each heartbeat's answer.
    package var inspect: @Sendable (Membership, HeartbeatAnswer) -> Void = { _, _ in }
    private var seeds: SeededGenerator
    /// When something happens to each run next, while time passes.
    private var due: [Instant?] = []

    package init(seed: UInt64) {
        store = MemoryStore(seed: seed)
        seeds = SeededGenerator(seed: seed &+ 1)
    }

    /// The indices of the runs that have not ended.
    package var running: [Int] { runs.indices.filter { runs[$0].isRunning } }

    /// Starts a node, or another run of one.
    /// - Returns: the index of the run.
    package mutating func start(
        _ node: NodeID,
        _ record: NodeRecord,
        rooms: [ChannelName] = [],
        saved: SavedView? = nil
    ) throws -> Int {
        let membership = try Membership(node: node, record: record, saved: saved, seed: seeds.next(), at: now)
        runs.append(Run(membership: membership, rooms: rooms, startedAt: now))
        return runs.count - 1
    }

    /// Ends a run without a word, as a crash does.
    package mutating func kill(_ index: Int) {
        runs[index].isRunning = false
        runs[index].endedAt = now
    }

    package mutating func setRecord(_ record: NodeRecord, of index: Int) throws {
        try runs[index].membership.setRecord(record)
    }

    /// Tells the store of a room that begins at a node.
    /// - Returns: what it answers; `nil` when it does not answer in time, and is told again later.
    package mutating func attach(_ room: ChannelName, at index: Int) -> RoomEntry? {
        runs[index].rooms.append(room)
        return attach(room, index)
    }

    /// Tells the store that a room ended at a node.
    package mutating func detach(_ room: ChannelName, at index: Int) {
        runs[index].rooms.removeAll { $0 == room }
        runs[index].membership.roomEnded(room)
        _ = store.detach(Detach(room: room, instance: runs[index].membership.instance), at: now)
    }

    /// Lets time pass.
    package mutating func advance(by interval: Interval) {
        let end = now + interval
        due = runs.map { $0.isRunning ? $0.nextDeadline : nil }
        while let (time, index) = next(), time <= end {
            now = max(now, time)
            step(index)
            due[index] = runs[index].nextDeadline
        }
        now = end
    }

    /// The first run to which something happens.
    private func next() -> (Instant, Int)? {
        var first: (time: Instant, index: Int)?
        for index in due.indices {
            guard let time = due[index], first.map({ time < $0.time }) ?? true else { continue }
            first = (time, index)
        }
        return first.map { ($0.time, $0.index) }
    }

    private mutating func step(_ index: Int) {
        deliver(index)
        while let (at, room) = runs[index].failedRooms.first, at <= now {
            runs[index].failedRooms.removeFirst()
            runs[index].membership.attachLater([room], at: now)
        }
        if let request = runs[index].membership.nextRequest(at: now) {
            runs[index].requestsSent += 1
            send(request, index)
        }
        for room in runs[index].membership.nextRooms(at: now) {
            runs[index].roomsSent += 1
            attach(room, index)
        }
    }

    private mutating func deliver(_ index: Int) {
        guard let (at, answer) = runs[index].answer, at <= now else { return }
        runs[index].answer = nil
        let events: [Membership.Event]
        switch answer {
        case .enlistment(let result): events = runs[index].membership.receivedEnlistment(result, at: now)
        case .beat(let result):
            events = runs[index].membership.receivedBeat(result, at: now)
            if case .success(let answer) = result { inspect(runs[index].membership, answer) }
        }
        runs[index].events += events
        let isUnknown = events.contains { event in
            switch event {
            case .enlisted, .storeChanged: true
            case .fenced, .returned, .storeLost, .storeReturned, .viewChanged: false
            }
        }
        if isUnknown {
            runs[index].membership.attachLater(runs[index].rooms, at: now)
        }
    }

    private mutating func send(_ request: Membership.Request, _ index: Int) {
        let late = now + Self.heartbeatMax
        switch request {
        case .enlist(let enlist):
            let reply = store.enlist(enlist, at: now)
            guard let reply, reply.at < late else {
                runs[index].answer = (late, .enlistment(.failure(.timedOut)))
                return
            }
            runs[index].answer = (reply.at, .enlistment(reply.result))
        case .beat(let beat):
            let reply = store.beat(beat, at: now)
            guard let reply, reply.at < late else {
                runs[index].answer = (late, .beat(.failure(.timedOut)))
                return
            }
            runs[index].answer = (reply.at, .beat(reply.result))
        }
    }

    @discardableResult private mutating func attach(_ room: ChannelName, _ index: Int) -> RoomEntry? {
        guard let session = RoomSession(rawValue: room.value) else { return nil }
        let instance = runs[index].membership.instance
        let reply = store.attach(Attach(room: room, instance: instance, session: session), at: now)
        if let reply, case .success(let entry) = reply.result, reply.at < now + Self.scriptMax {
            runs[index].membership.attached(room, at: reply.at)
            return entry
        }
        runs[index].failedRooms.append((now + Self.scriptMax, room))
        return nil
    }
}
