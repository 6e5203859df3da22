import Base
import Forwarding
import Testing

@testable import Media

@Suite struct OverloadSamplerTests {
    private static let start = Instant(nanoseconds: 5_000_000_000)

    @Test func `a sample is due after 100 ms and tells what came since the one before`() {
        var sampler = OverloadSampler(at: Self.start)
        #expect(!sampler.isDue(at: Self.start + .milliseconds(99)))
        #expect(sampler.isDue(at: Self.start + .milliseconds(100)))
        sampler.note(delay: .milliseconds(7))
        sampler.note(delay: .milliseconds(3))
        let first = sampler.sample(busyNanoseconds: 40_000_000, receiveDrops: 6, at: Self.start + .milliseconds(120))
        #expect(first.elapsed == .milliseconds(120))
        #expect(first.busy == .milliseconds(40))
        #expect(first.receiveDrops == 6)
        #expect(first.delayMax == .milliseconds(7))
        #expect(!sampler.isDue(at: Self.start + .milliseconds(219)))
        let second = sampler.sample(busyNanoseconds: 50_000_000, receiveDrops: 6, at: Self.start + .milliseconds(220))
        #expect(second.elapsed == .milliseconds(100))
        #expect(second.busy == .milliseconds(10))
        #expect(second.receiveDrops == 0)
        #expect(second.delayMax == .zero)
    }

    @Test func `a turn that began before the sample makes it no busier than it was long`() {
        var sampler = OverloadSampler(at: Self.start)
        let sample = sampler.sample(busyNanoseconds: 900_000_000, receiveDrops: 0, at: Self.start + .milliseconds(100))
        #expect(sample.busy == .milliseconds(100))
    }
}
