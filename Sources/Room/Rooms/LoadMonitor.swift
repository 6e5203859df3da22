import MediaTypes

/// Asks the media planes for their loads, so that newcomers are placed where there is room.
actor LoadMonitor {
    private let planes: [any MediaPlane]
    private let node: NodeDirectory
    /// The question that each plane has not answered yet.
    private var samplers: [Int: Task<Void, Never>] = [:]

    init(planes: [any MediaPlane], node: NodeDirectory) {
        self.planes = planes
        self.node = node
    }

    /// Asks every plane that has answered the question before. One that has not gets no newcomers until it does.
    func sample() {
        for home in planes.indices {
            if samplers[home] != nil {
                node.withModel { $0.loadUnanswered(by: home) }
            } else {
                samplers[home] = Task { await self.sample(home) }
            }
        }
    }

    private func sample(_ home: Int) async {
        let load = await planes[home].load()
        node.withModel { $0.loadMeasured(load, of: home) }
        samplers[home] = nil
    }

    /// Waits until every plane has answered. Returns whether there was anything to wait for.
    func settle() async -> Bool {
        var didWait = false
        while let sampler = samplers.values.first {
            await sampler.value
            didWait = true
        }
        return didWait
    }
}
