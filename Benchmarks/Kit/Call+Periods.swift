import Base
internal import Forwarding
internal import MediaTypes

/// Turns of a call whose viewers report what arrives: three turns of media, and one report of each viewer.
extension Call {
    /// The loop's timers are looked at this often.
    private static let timerStep: Int64 = 1_000_000
    /// Between two periods that begin with renewals of consent and receiver reports.
    private static let refreshPeriods = 10
    private static let warmUpPeriods = 150
    private static var halfTurn: Interval { Interval(nanoseconds: turnInterval.nanoseconds / 2) }
    private var packetsPerPeriod: Int { Self.turnsPerReport * shape.packetsPerTurn }
    /// Packets that viewers receive of the publisher in a period.
    var forwardedPerPeriod: Int { packetsPerPeriod * shape.subscribers }

    /// Puts the packets of a period into the inbox, and behind them the viewers' reports of the packets before.
    func preparePeriod() throws {
        plain.removeAll(keepingCapacity: true)
        inbox.removeAll()
        for _ in 0..<Self.turnsPerReport { try receiveTurn() }
        reports = 0
        for (index, viewer) in viewers.enumerated() where shape.isEstimating {
            guard let egress = viewerForwarder.peer(viewer.id)?.transport.egress,
                let report = reporters[index].makeReport(of: egress, at: now)
            else { continue }
            inbox.append(try viewer.protectRTCP(report), from: viewer.route)
            reports += 1
        }
    }

    /// The work of a loop in a period: packets, reports and timers.
    @inline(never)
    func forwardPeriod() {
        for turn in 0..<Self.turnsPerReport {
            let packets = turn * shape.packetsPerTurn..<(turn + 1) * shape.packetsPerTurn
            inbox.deliver(packets, to: viewerForwarder, at: now, into: batch)
            viewerForwarder.endTurn(at: now, into: batch)
            takeBatch()
            runTimers(until: now + Self.halfTurn)
            receiveReports(turn, of: Self.turnsPerReport)
            runTimers(until: now + Self.halfTurn)
        }
    }

    /// The viewers' reports of a period, and nothing else.
    @inline(never)
    func receiveReports() { receiveReports(0, of: 1) }

    @inline(__always)
    private func receiveReports(_ part: Int, of parts: Int) {
        let places = packetsPerPeriod + reports * part / parts..<packetsPerPeriod + reports * (part + 1) / parts
        inbox.deliver(places, to: viewerForwarder, at: now, into: batch)
        viewerForwarder.endTurn(at: now, into: batch)
        takeBatch()
    }

    /// Forwards the media of a period without the reports, which stay in the inbox.
    func forwardMedia() {
        for turn in 0..<Self.turnsPerReport {
            let packets = turn * shape.packetsPerTurn..<(turn + 1) * shape.packetsPerTurn
            inbox.deliver(packets, to: viewerForwarder, at: now, into: batch)
            viewerForwarder.endTurn(at: now, into: batch)
            takeBatch()
            runTimers(until: now + Self.turnInterval)
        }
    }

    private func runTimers(until end: Instant) {
        while let deadline = viewerForwarder.nextDeadline, deadline < end {
            let steps = (max(deadline, now).nanoseconds + Self.timerStep - 1) / Self.timerStep
            now = min(Instant(nanoseconds: steps * Self.timerStep), end)
            viewerForwarder.handleTimeout(at: now, into: batch)
            takeBatch()
            if now == end { break }
        }
        now = end
    }

    /// Checks that a period's packets left, and renews consent when it is time.
    /// - Parameter slack: packets that may be missing, because they wait, or too many, because they waited before.
    func finishPeriod(slack: Int) throws {
        let forwarded = takeForwarded()
        periods += 1
        if periods % Self.refreshPeriods == 0 { refresh() }
        guard forwarded >= forwardedPerPeriod - slack else {
            throw CallError.broken("\(forwarded) datagrams left, not \(forwardedPerPeriod)")
        }
    }

    /// Brings the call to its steady state: probes are over, and all viewers are sent everything.
    func warmUpPeriods() throws {
        for _ in 0..<Self.warmUpPeriods {
            try preparePeriod()
            forwardPeriod()
            try finishPeriod(slack: .max / 2)
        }
        for index in reporters.indices {
            guard reporters[index].packetsReported >= Self.warmUpPeriods * packetsPerPeriod / 2 else {
                throw CallError.broken("\(reporters[index].packetsReported) packets were reported")
            }
        }
    }
}
