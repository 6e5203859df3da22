/// A case whose bounds a broken controller leaves. Together they leave bounds of every kind in every group.
struct BrokenProof: Sendable {
    let group: CaseGroup
    /// Of the case.
    let name: String
    let fault: BrokenController.Fault

    init(_ group: CaseGroup, _ name: String, _ fault: BrokenController.Fault) {
        self.group = group
        self.name = name
        self.fault = fault
    }

    /// The groups whose proofs a test run covers: all, or a short one in an unoptimised build.
    #if DEBUG
        static let tested: [CaseGroup] = [.starts]
    #else
        static let tested = CaseGroup.allCases
    #endif

    static let all: [BrokenProof] = [
        BrokenProof(.rfc8867, "5.1", .ignoresDelay),
        BrokenProof(.rfc8867, "5.1", .neverReduces),
        BrokenProof(.rfc8867, "5.2", .firstNeverReduces),
        BrokenProof(.rfc8867, "5.3", .neverRaises),
        BrokenProof(.rfc8867, "5.4", .firstNeverRaises),
        BrokenProof(.rfc8867, "5.6", .oscillates),
        BrokenProof(.rfc8867, "5.6 q1000", .believesProbes),
        BrokenProof(.rfc8867, "5.6 ends", .ignoresDelay),
        BrokenProof(.rfc8867, "5.6 ends", .neverRaises),
        BrokenProof(.rfc8867, "6.1", .firstNeverRaises),
        BrokenProof(.sweeps, "5.1 l5", .ignoresDelay),
        BrokenProof(.sweeps, "5.1 q70", .ignoresDelay),
        BrokenProof(.sweeps, "wired CBR", .neverRaises),
        BrokenProof(.sweeps, "wired CBR", .ignoresDelay),
        BrokenProof(.starts, "S1 5 20", .neverRaises),
        BrokenProof(.starts, "S1 0.3 100", .ignoresDelay),
        BrokenProof(.steps, "S2", .ignoresDelay),
        BrokenProof(.steps, "S5", .neverRaises),
        BrokenProof(.steps, "S6", .probesAlways),
        BrokenProof(.steps, "S10", .ignoresDelay),
        BrokenProof(.steps, "S11", .neverRaises),
        BrokenProof(.steps, "S13", .ignoresDelay),
        BrokenProof(.loss, "W2", .flickers),
        BrokenProof(.loss, "W3 poor", .halvesAtLoss),
        BrokenProof(.loss, "W4 batch", .neverRaises),
        BrokenProof(.loss, "W5 2", .ignoresDelay),
        BrokenProof(.loss, "W7", .ignoresLoss),
        BrokenProof(.loss, "W7", .reactsLate),
        BrokenProof(.loss, "W8 256k", .probesAlways),
        BrokenProof(.loss, "W11 off", .ignoresSilence),
        BrokenProof(.loss, "W12 2 s", .ignoresDelay),
        BrokenProof(.loss, "W13", .ignoresDelay),
        BrokenProof(.loss, "W13", .neverReduces),
        BrokenProof(.ecn, "W14 steps", .neverRaises),
        BrokenProof(.ecn, "W14 without AQM", .ignoresDelay),
        BrokenProof(.ecn, "W14 bleached", .marksAlways),
        BrokenProof(.anchors, "L start 200k", .reactsLate),
        BrokenProof(.anchors, "L start 1M", .neverRaises),
        BrokenProof(.anchors, "L 50M", .neverRaises),
        BrokenProof(.anchors, "L 600k", .ignoresDelay),
        BrokenProof(.anchors, "S up", .neverRaises),
        BrokenProof(.anchors, "S loss", .halvesAtLoss),
    ]
}
