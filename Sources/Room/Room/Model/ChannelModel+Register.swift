import ChannelTypes
package import MediaTypes
import Speakers

// What holds for the whole channel at all nodes.

extension ChannelModel {
    /// What nodes agree on at present.
    package var register: ChannelRegister {
        guard let session = state.session else {
            return ChannelRegister(app: state.app, endedSession: state.endedSession)
        }
        return ChannelRegister(
            version: session.registerVersion,
            node: session.registerNode,
            filters: session.filters.filters,
            spotlightNumber: session.speakers.requestedNumber,
            profile: session.profile,
            holds: session.holds,
            fixed: session.speakers.fixed,
            app: state.app
        )
    }

    /// This node changed what nodes agree on.
    mutating func registerChanged() { state.session?.registerVersion &+= 1 }

    /// The version of ``register`` that others have to be told.
    package var registerVersion: UInt64 { state.session?.registerVersion ?? 0 }

    /// Names this node as the one that changed the register last.
    package mutating func signRegister(as node: NodeIncarnation) { state.session?.registerNode = node }

    /// Another node told what holds for the channel.
    package mutating func registerFound(_ register: ChannelRegister) -> [Effect] {
        fixApp(register.app)
        guard state.session != nil, register.isNewer(than: self.register),
            let filters = try? FilterList(register.filters)
        else { return [] }
        state.session?.registerVersion = register.version
        state.session?.registerNode = register.node
        state.session?.filters = filters
        state.session?.holds = register.holds
        if let profile = register.profile { state.session?.profile = profile }
        if let number = register.spotlightNumber, Spotlight.numbers.contains(number) {
            state.session?.speakers.change(number: number)
        }
        if let fixed = register.fixed {
            state.session?.speakers.setFixed(fixed) { participants[$0]?.isLive == true }
        }
        var effects: [Effect] = []
        updateFocus(into: &effects)
        for id in state.members { updateSlots(of: id, into: &effects) }
        return effects.ofOtherNodes
    }
}
