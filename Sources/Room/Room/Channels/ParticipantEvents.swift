package import ChannelTypes
import Synchronization
package import Wire

/// An event for a participant's signaling.
package enum ParticipantEvent: Sendable {
    /// ``ChannelDirectory/visibleStreams(to:)`` has changed. Several changes may be one event.
    case subscriptionsChanged
    /// Its transport is up. Its notifications follow.
    case connected
    case notification(Notification)
    /// The simulcast layers of a track that it publishes which nobody wants have changed: it may pause them, and is to send all
    /// others. Only the latest of several events counts.
    case unusedLayers(mid: MID, rids: [RID])
    /// JSON text from an operator.
    case push(String)
    /// Something happened to its data channels.
    case data(ParticipantDataEvent)
    /// The participant has ended; the last event.
    case ended(EndReason)
}

/// The events of one participant in order, for one reader. It ends after ``ParticipantEvent/ended(_:)``.
package struct ParticipantEvents: AsyncSequence, Sendable {
    package typealias Element = ParticipantEvent
    package typealias Failure = Never
    let mailbox: ParticipantMailbox
    /// `nil` for events that last as long as their participant.
    var participant: ParticipantID?

    package struct AsyncIterator: AsyncIteratorProtocol {
        let mailbox: ParticipantMailbox
        var arrivals: AsyncStream<Void>.AsyncIterator

        /// `nil` after the last event, or when the calling task is cancelled.
        package mutating func next() async -> ParticipantEvent? {
            while true {
                if let event = mailbox.takeFirst() { return event }
                guard await arrivals.next(isolation: #isolation) != nil else { return mailbox.takeFirst() }
            }
        }
    }
    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(mailbox: mailbox, arrivals: mailbox.arrivals.makeAsyncIterator())
    }
}

/// The queue of a participant's events.
final class ParticipantMailbox: Sendable {
    private struct State {
        var events: [ParticipantEvent] = []
        var first = 0
        var isChangeWaiting = false
        var isClosed = false
    }
    private let capacity: Int
    private let state = Mutex(State())
    private let wake: AsyncStream<Void>.Continuation
    /// Yields after each arrival, and finishes with the last event.
    let arrivals: AsyncStream<Void>

    init(capacity: Int) {
        self.capacity = capacity
        (arrivals, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// - Returns: `false` when the queue is full and the event was dropped.
    func post(_ event: ParticipantEvent) -> Bool {
        let isKept = state.withLock { state in
            guard !state.isClosed else { return true }
            if case .subscriptionsChanged = event {
                guard !state.isChangeWaiting else { return true }
                state.isChangeWaiting = true
            }
            guard state.events.count - state.first < capacity else { return false }
            state.events.append(event)
            return true
        }
        wake.yield()
        return isKept
    }

    /// Appends the last event. It replaces the queued events when the queue is full.
    func close(_ reason: EndReason) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            if state.events.count - state.first >= capacity { (state.events, state.first) = ([], 0) }
            state.events.append(.ended(reason))
        }
        wake.finish()
    }

    /// Ends without a last event.
    func finish() {
        state.withLock { $0.isClosed = true }
        wake.finish()
    }

    func takeFirst() -> ParticipantEvent? {
        state.withLock { state in
            guard state.first < state.events.count else { return nil }
            let event = state.events[state.first]
            state.first += 1
            if state.first == state.events.count {
                (state.events, state.first) = ([], 0)
            } else if state.first >= 64, state.first * 2 >= state.events.count {
                state.events.removeFirst(state.first)
                state.first = 0
            }
            if case .subscriptionsChanged = event { state.isChangeWaiting = false }
            return event
        }
    }
}
