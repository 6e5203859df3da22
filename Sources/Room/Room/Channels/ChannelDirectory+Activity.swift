import Admission
package import ChannelTypes
import MediaTypes

extension ChannelDirectory {
    /// Members whose transports one call of ``busiestChannels(_:)`` measures. Each costs the media loop some microseconds.
    private static let measuredMax = 512

    /// The channels with the most connected members on this node, the largest first.
    ///
    /// The members' media is measured in that order, as long as there are no more than 512 members in all.
    /// - Parameter count: the most channels.
    package func busiestChannels(_ count: Int) async -> [ChannelActivity] {
        var activities: [ChannelActivity] = []
        var measured = 0
        for name in node.withModel({ $0.busiestChannels(count) }) {
            guard let activity = await node.actor(of: name)?.activity(membersMax: Self.measuredMax - measured) else {
                continue
            }
            if activity.media != nil { measured += activity.counts.connections }
            activities.append(activity)
        }
        return activities
    }
}

extension Channel {
    /// What the node carries of the channel; `nil` without members.
    /// - Parameter membersMax: with more connected members than these their media is not measured.
    func activity(membersMax: Int) async -> ChannelActivity? {
        guard let session = model.session else { return nil }
        var activity = ChannelActivity(
            channel: name,
            createdAt: session.createdAt,
            counts: model.summary.connections
        )
        let members = model.participants.values.filter { $0.isConnected && !$0.isRemote }
        for member in members { activity.add(member.quality) }
        guard members.count <= membersMax else { return activity }
        var media = ChannelActivity.Media()
        for member in members {
            // One that left meanwhile has no statistics.
            if let statistics = await context.plane(at: member.location).statistics(of: member.peer) {
                media.add(statistics)
            }
        }
        activity.media = media
        return activity
    }
}
