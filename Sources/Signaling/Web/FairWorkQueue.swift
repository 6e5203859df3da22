import Base
import ChannelTypes
import Dispatch
import Synchronization

/// Runs the jobs of many actors on one thread, round-robin by owner, and round-robin by share within an owner.
///
/// A thousand queued jobs of one owner delay the job of another by one job. The single thread keeps these jobs off Swift's
/// default pool, which has one thread per core.
package final class FairWorkQueue<Owner: Hashable & Sendable, Share: Hashable & Sendable>: Sendable {
    private struct Item {
        let job: UnownedJob
        let executor: FairExecutor<Owner, Share>
    }
    private struct State {
        var turns = OwnedFairTurns<Owner, Share, Item>()
        var isRunning = false
    }

    /// The number of jobs until the queue yields its thread.
    private static var jobsPerTurnMax: Int { 64 }

    private let state = Mutex(State())
    private let queue: DispatchQueue

    package init(label: String) { queue = DispatchQueue(label: label) }

    fileprivate func enqueue(
        _ job: UnownedJob,
        of share: Share,
        owner: Owner,
        on executor: FairExecutor<Owner, Share>
    ) {
        let mustStart = state.withLock { state in
            state.turns.append(Item(job: job, executor: executor), of: share, owner: owner)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { queue.async { self.run() } }
    }

    private func run() {
        for _ in 0..<Self.jobsPerTurnMax {
            guard let item = next() else { return }
            unsafe item.job.runSynchronously(on: item.executor.asUnownedSerialExecutor())
        }
        queue.async { self.run() }
    }

    /// The next job; `nil` when the queue is empty, which stops it.
    private func next() -> Item? {
        state.withLock { state in
            let item = state.turns.popNext()
            if item == nil { state.isRunning = false }
            return item
        }
    }
}

/// A round-robin queue: it takes one element of each share that has any, then the next of each.
struct FairTurns<Share: Hashable, Element> {
    /// The elements of each share that has any, in order.
    private var elements: [Share: ArraySlice<Element>] = [:]
    /// Every share of `elements` once, in the order of its turn.
    private var turns: ArraySlice<Share> = []

    var isEmpty: Bool { elements.isEmpty }

    mutating func append(_ element: Element, of share: Share) {
        if elements[share] == nil { turns.append(share) }
        elements[share, default: []].append(element)
    }

    mutating func popNext() -> Element? {
        guard let share = turns.popFirst() else { return nil }
        let element = elements[share]?.popFirst()
        if elements[share]?.isEmpty == true {
            elements[share] = nil
        } else {
            turns.append(share)
        }
        return element
    }
}

/// A round-robin queue of two levels: owners take turns, and so do the shares of each owner.
struct OwnedFairTurns<Owner: Hashable, Share: Hashable, Element> {
    /// The elements of each owner that has any.
    private var owned: [Owner: FairTurns<Share, Element>] = [:]
    /// Every owner of `owned` once, in the order of its turn.
    private var turns: ArraySlice<Owner> = []

    mutating func append(_ element: Element, of share: Share, owner: Owner) {
        if owned[owner] == nil { turns.append(owner) }
        owned[owner, default: FairTurns()].append(element, of: share)
    }

    mutating func popNext() -> Element? {
        guard let owner = turns.popFirst() else { return nil }
        let element = owned[owner]?.popNext()
        if owned[owner]?.isEmpty == true {
            owned[owner] = nil
        } else {
            turns.append(owner)
        }
        return element
    }
}

/// Runs one actor on a ``FairWorkQueue``, in a share that can change.
package final class FairExecutor<Owner: Hashable & Sendable, Share: Hashable & Sendable>: SerialExecutor {
    private let queue: FairWorkQueue<Owner, Share>
    private let place: Replaceable<(owner: Owner, share: Share)>

    package init(_ queue: FairWorkQueue<Owner, Share>, share: Share, owner: Owner) {
        self.queue = queue
        place = Replaceable((owner, share))
    }

    /// Moves later jobs to another share. All shares run on one thread, so the actor's jobs never overlap.
    package func move(to share: Share, owner: Owner) { place.current = (owner, share) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let (owner, share) = place.current
        queue.enqueue(UnownedJob(job), of: share, owner: owner, on: self)
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }
}
