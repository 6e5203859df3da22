import Base
import Client
import Forwarding
import MediaTypes
import Wire

/// Nine publishers, and viewers of all of them who join at once.
final class CrowdedCall {
    private static let viewers = 12
    private let conference: Conference
    private let fault: AdaptationFault?
    private let publishers: [Conference.Member]
    private var viewers: [(member: Conference.Member, joinedAt: Instant, pictures: [PictureModel], link: LinkLog)] = []
    private var requests: [[UInt64]] = []
    private let start: Instant

    private var world: World { conference.world }

    init(seed: UInt64, _ fault: AdaptationFault?) throws {
        self.fault = fault
        let conference = try Conference(
            seed: seed,
            estimates: true,
            sendRate: fault?.sendRate ?? SendRateSettings()
        )
        self.conference = conference
        conference.world.network.standard = LinkConditions(delay: .milliseconds(10))
        publishers = try (0..<9).map { number in
            try conference.join(
                "p\(number)",
                layers: MeasuredCall.rids.map(\.value),
                settings: MeasuredCall.settings(.camera)
            )
        }
        // What publishers are sent is not looked at.
        conference.world.run(for: .seconds(5))
        start = conference.world.now
    }

    func run() {
        for number in 0..<Self.viewers {
            let link = LinkConditions(delay: .milliseconds(50), rate: 3_000_000)
            guard let member = try? conference.join("v\(number)", sends: false, link: link) else { continue }
            let tracks = (member.host.peer?.tracks ?? []).filter { $0.parameters.kind == .video }
            viewers.append((member, world.now, tracks.map(PictureModel.init), LinkLog(member.host.address)))
            LinkLog.attach(viewers.map(\.link), to: world)
            run(for: .milliseconds(1_000 / Self.viewers))
        }
        run(for: .seconds(4))
    }

    private func run(for time: Interval) {
        let end = world.now + time
        while world.now < end {
            world.run(for: min(.milliseconds(50), end - world.now))
            requests.append(
                publishers.flatMap { member in
                    (world.nodePeer(member.host)?.streams ?? []).map(\.keyFrameRequests)
                }
            )
        }
    }

    /// Key frame requests to one layer in any second, at most.
    private var requestsMax: Int {
        var highest = 0
        for index in requests.indices {
            let before = requests[max(index - 20, 0)]
            for (now, then) in zip(requests[index], before) { highest = max(highest, Int(now &- then)) }
        }
        return highest
    }

    var figures: [String: Double] {
        let firsts = viewers.flatMap { viewer in
            let connected = viewer.member.host.client?.connectedAt ?? viewer.joinedAt
            return viewer.pictures.map { $0.firstFrameAt.map { ($0 - connected).seconds } ?? 1_000 }
        }
        let audio = viewers.flatMap { $0.member.host.client?.receivers.filter { $0.kind == .audio } ?? [] }
        let lost = audio.reduce(0) { $0 + max($1.verifier.lost, 0) }
        let arrived = audio.reduce(0) { $0 + $1.verifier.packets }
        return [
            "requests": Double(requestsMax),
            "T first": firsts.max() ?? 1_000,
            "A": 100 * Double(lost) / Double(max(arrived + lost, 1)),
            "Q": viewers.map { $0.link.queue95(from: $0.joinedAt, until: world.now) }.max() ?? 0,
        ]
    }
}
