import MediaTypes
import SCTP
import Testing

@testable import Forwarding

@Suite struct DataAssociationEndTests {
    @Test(
        arguments: [
            (.violation(.excessiveWork), .work), (.violation(.flood), .flood), (.violation(.noProgress), .stalled),
            (.violation(.windowStuck), .stalled), (.violation(.messageTooLong), .violation), (.aborted, .memory),
            (.shutDown, nil), (.abortedByPeer(cause: 0), nil), (.restartedByPeer, nil), (.timedOut, nil),
        ] as [(AssociationEnd, DataAssociationEnd?)]
    )
    func `an association that the node ended has its reason`(end: AssociationEnd, reason: DataAssociationEnd?) {
        #expect(DataAssociationEnd(end) == reason)
    }
}
