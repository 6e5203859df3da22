import Base
import Glibc

@testable import EventLoop

extension LoopHost {
    /// Injects `fault` into each `sendmmsg` of the loop's first socket. Queued media does not expire, so that slow
    /// machines do not change the result.
    func refuse(_ fault: sending @escaping ([Int]) -> Int?) {
        loop.sockets[0].mediaAgeMax = .seconds(3_600)
        loop.sockets[0].fault = fault
    }

    /// Makes the next `calls` of the loop's first socket fail with `code`.
    func refuse(code: Int32, calls: Int = .max) {
        var left = calls
        refuse { _ in
            guard left > 0 else { return nil }
            left -= 1
            return -Int(code)
        }
    }
}
