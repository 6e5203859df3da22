import MediaTypes

/// Asks the media planes for their loads, so that newcomers are placed where there is room.
actor LoadMonitor {
    private let planes: [any MediaPlane]
    private let node: NodeDirectory
    /// The question that each plane has not answered yet.
    private var samplers: [MediaLocation: Task<Void, Never>] = [:]

    init(planes: [any MediaPlane], node: NodeDirectory) {
        self.planes = planes
        self.node = node
    }

    /// Asks every plane that has answered the question before. One that has not gets no newcomers until it does.
    func sample() {
        for plane in planes {
            let location = plane.location
            if samplers[location] != nil {
                node.withModel { $0.loadUnanswered(by: location) }
            } else {
                samplers[location] = Task { await self.sample(plane) }
            }
        }
    }

    private func sample(_ plane: any MediaPlane) async {
        let load = await plane.load()
        node.withModel { $0.loadMeasured(load, of: plane.location) }
        samplers[plane.location] = nil
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
