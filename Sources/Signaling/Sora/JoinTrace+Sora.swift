import Web

extension JoinTrace {
    /// The WebSocket closes. That is a failure before the member is connected, unless another node serves the client.
    func closed(_ close: SoraClose) {
        guard close.close.code >= 4_000 else { return endUnlessReserved() }
        failed(close.message, kind: "\(close.close.code)")
    }
}
