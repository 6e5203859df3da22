import Base
import Client
import MediaTypes
import Testing

@testable import Forwarding

/// Tracks that come over a link of which the other node knows nothing any more.
extension MediaLinkTests {
    @Test func `what an origin forgot is asked for again`() throws {
        let call = try startCall(seed: 1_126)
        let (origin, edge) = (call.world.location(ofLoop: 0), call.world.location(ofLoop: 1))
        #expect(call.edge.mirrorsToRenew(at: call.world.now) == [])
        // As after a pause of the edge: the origin took it for gone.
        call.origin.removeMediaLinks(to: edge.node, at: call.world.now)
        call.world.run(for: .seconds(4))
        /// Asks for what is lost, as a loop does.
        func renew() throws -> Int {
            let lost = call.edge.mirrorsToRenew(at: call.world.now)
            for mirror in lost {
                let end = try call.edge.mediaLinkEnd(to: mirror.origin, at: call.world.now)
                let answer = try call.origin.exportTrack(mirror.track, as: mirror.relay, to: end, at: call.world.now)
                _ = try call.edge.joinMediaLink(answer.origin, at: call.world.now)
            }
            if !lost.isEmpty { call.edge.mirrorsRenewed(from: origin) }
            call.world.run(for: .milliseconds(1_500))
            return lost.count
        }
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        let silence = try renew()
        #expect(silence == 1)
        // The other end is new, so audio and video are lost.
        let all = try renew()
        #expect(all == 2)
        call.world.run(for: .seconds(2))
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 10)
        #expect(try renew() == 0)
        #expect(drops(call.origin)[.relayReplay] == 0)
    }

    @Test func `an origin that does not answer is asked a few times only`() {
        var renewal = LinkRenewal()
        var now = Instant(nanoseconds: 0)
        #expect(renewal.next(isSilent: false, at: now) == nil)
        renewal.otherEndChanged()
        var asked = 0
        for _ in 0..<100 {
            if renewal.next(isSilent: false, at: now) == .all { asked += 1 }
            now = now + .milliseconds(500)
        }
        #expect(asked == 5)
        #expect(renewal.next(isSilent: true, at: now) == .one)
        renewal.succeeded()
        renewal.otherEndChanged()
        now = now + .seconds(1)
        #expect(renewal.next(isSilent: true, at: now) == .all)
        renewal.succeeded()
        now = now + .seconds(1)
        #expect(renewal.next(isSilent: false, at: now) == nil)
    }
}
