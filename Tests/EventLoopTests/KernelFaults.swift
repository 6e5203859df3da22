import Glibc
import Wire

@testable import EventLoop

extension LoopHost {
    /// Has `fault` speak for the kernel at each `sendmmsg` of the loop's first socket. What waits because of it is never
    /// too old, however slow the machine.
    func refuse(_ fault: sending @escaping ([Int]) -> Int?) {
        loop.sockets[0].mediaAgeMax = .seconds(3_600)
        loop.sockets[0].fault = fault
    }

    /// Has the loop's first socket refuse the next `calls` with `code`, then send again.
    func refuse(code: Int32, calls: Int = .max) {
        var left = calls
        refuse { _ in
            guard left > 0 else { return nil }
            left -= 1
            return -Int(code)
        }
    }
}
