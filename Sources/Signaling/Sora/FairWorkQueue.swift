import Dispatch
import Synchronization

/// Runs the jobs of many actors one at a time, in turns: each owner that has jobs runs one, then the next owner does. The
/// shares of one owner take its turns in turn.
///
/// An owner with a thousand jobs that wait delays the job of another by one job, whatever shares they are of. All of them together take one thread, so
/// that they leave Swift's default pool, which has no more threads than the machine has cores, to everything else.
final class FairWorkQueue<Owner: Hashable & Sendable, Share: Hashable & Sendable>: Sendable {
    private struct Item {
        let job: UnownedJob
        let executor: FairExecutor<Owner, Share>
    }
    private struct State {
        var turns = OwnedFairTurns<Owner, Share, Item>()
        var isRunning = false
    }

    /// Jobs between two times that the thread is given back.
    private static var jobsPerTurnMax: Int { 64 }

    private let state = Mutex(State())
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

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

    /// The next job; `nil` when there is none, and then the queue has stopped.
    private func next() -> Item? {
        state.withLock { state in
            let item = state.turns.popNext()
            if item == nil { state.isRunning = false }
            return item
        }
    }
}

/// Elements that wait, taken in turns: one of each share that has any, then the next of each.
struct FairTurns<Share: Hashable, Element> {
    /// Of shares that have elements, first to last.
    private var elements: [Share: ArraySlice<Element>] = [:]
    /// Every share of `elements` once, in the order of their turns.
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

/// Elements that wait, taken in turns of two levels: one of each owner that has any, of one of its shares after the other.
struct OwnedFairTurns<Owner: Hashable, Share: Hashable, Element> {
    /// Of owners that have elements.
    private var owned: [Owner: FairTurns<Share, Element>] = [:]
    /// Every owner of `owned` once, in the order of their turns.
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

/// Runs one actor on a ``FairWorkQueue``, as part of a share that can change.
final class FairExecutor<Owner: Hashable & Sendable, Share: Hashable & Sendable>: SerialExecutor {
    private let queue: FairWorkQueue<Owner, Share>
    private let place: Mutex<(owner: Owner, share: Share)>

    init(_ queue: FairWorkQueue<Owner, Share>, share: Share, owner: Owner) {
        self.queue = queue
        place = Mutex((owner, share))
    }

    /// Jobs from now on are of another share. All shares run on one thread, so the actor's jobs still never overlap.
    func move(to share: Share, owner: Owner) { place.withLock { $0 = (owner, share) } }

    func enqueue(_ job: consuming ExecutorJob) {
        let (owner, share) = place.withLock { $0 }
        queue.enqueue(UnownedJob(job), of: share, owner: owner, on: self)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }
}
