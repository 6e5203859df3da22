import ChannelTypes
internal import NIOCore
internal import Room
import Synchronization

/// What the other nodes send.
extension ControlLinks {
    /// Questions of one node that may be under way.
    private static let answersMax = 256

    func received(_ frame: LinkFrame, over id: LinkTable.ConnectionID, _ state: LoopState) {
        guard let connection = state.connections[id] else { return }
        shared.withLock { $0.counters.framesReceived &+= 1 }
        switch frame {
        case .hello, .goodbye: break
        case .unknown: shared.withLock { $0.counters.unknown &+= 1 }
        case .ping(let number): transmit(.pong(number), over: connection)
        case .pong(let number): state.table.pong(number, over: id, at: now)
        case .unused: perform(state.table.unused(id, at: now), state)
        case .channel(let message):
            guard state.table.node(of: id) != nil else { return }
            shared.withLock { $0.delegate }?.received(message, from: connection.node)
        case .relay(let message):
            guard state.table.node(of: id) != nil,
                shared.withLock({ $0.delegate })?.receivedCallMessage(message, from: connection.node) == false
            else { return }
            shared.withLock { $0.counters.overflows &+= 1 }
            connection.channel.close(promise: nil)
        case .response(let number, let body):
            questions.finish(number, body.map { .success($0) } ?? .failure(.refused), from: connection.node)
        case .request(let number, let request):
            if request.kind == .unknown { shared.withLock { $0.counters.unknown &+= 1 } }
            answer(request, number, connection, state)
        }
    }

    private func answer(_ request: NodeRequest, _ number: UInt32, _ connection: Connection, _ state: LoopState) {
        if request.kind == .canReach {
            let instance = NodeInstance(String(decoding: request.body.prefix(128), as: UTF8.self))
            let isHeard = instance.map { state.table.canReach($0, at: now) } ?? false
            transmit(.response(number, [isHeard ? 1 : 0]), over: connection)
            return
        }
        let delegate = shared.withLock { $0.delegate }
        guard connection.answering.wrappingAdd(1, ordering: .relaxed).newValue <= Self.answersMax else {
            connection.answering.wrappingSubtract(1, ordering: .relaxed)
            transmit(.response(number, nil), over: connection)
            return
        }
        Task { [self] in
            let body = await delegate?.answer(request, from: connection.node)
            connection.answering.wrappingSubtract(1, ordering: .relaxed)
            transmit(.response(number, body), over: connection)
        }
    }
}
