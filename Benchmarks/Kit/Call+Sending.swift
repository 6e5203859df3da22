import Base
internal import Counters
internal import Forwarding
internal import Wire

/// What a loop does with the batch at the end of a turn.
extension Call {
    /// Adds the headers of channels to what goes to clients with allocations, and sends everything over the loopback.
    ///
    /// - Parameter sink: a socket of `nagare_sink_open`; `nil` to send nothing.
    /// - Returns: the datagrams that got a header.
    @inline(never)
    func sendTurn(to sink: Int32?) throws -> Int {
        viewerForwarder.completeBatch()
        for index in 0..<batch.runCount {
            let run = batch.run(at: index)
            if run.path.local.kind == .relayed {
                _ = viewerForwarder.frame(run, of: batch, at: now, into: framed)
            } else if let sink {
                try send(run, of: batch, to: sink)
            }
        }
        defer { framed.removeAll() }
        if let sink {
            for index in 0..<framed.runCount { try send(framed.run(at: index), of: framed, to: sink) }
        }
        return framed.count
    }

    private func send(_ run: DatagramBatch.Run, of batch: DatagramBatch, to sink: Int32) throws {
        let sent = unsafe nagare_sink_send(
            sink,
            batch.baseAddress + run.offset,
            run.length,
            UInt16(run.segmentBytes)
        )
        guard sent == run.length else { throw CallError.broken("\(sent) of \(run.length) bytes are sent") }
    }
}
