import MediaTypes

extension Rooms {
    /// Asks each media plane what it carries, so that newcomers go where there is room; to be called once a second.
    ///
    /// It returns at once. A plane that has not answered the question before is not asked again and gets no newcomers
    /// until it answers.
    public func sampleLoads() {
        for home in planes.indices {
            if samplers[home] != nil {
                model.loadUnanswered(by: home)
            } else {
                samplers[home] = Task { await self.sampleLoad(of: home) }
            }
        }
    }

    private func sampleLoad(of home: Int) async {
        let load = await planes[home].load()
        model.loadMeasured(load, of: home)
        samplers[home] = nil
    }
}
