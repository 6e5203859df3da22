import Foundation
import Testing

/// Files of the documentation that are generated from the code. With `NAGARE_UPDATE_REFERENCE=1` the test writes them:
/// `ops/docs --update` does so.
@Suite struct ReferenceTests {
    @Test(arguments: ReferencePage.allCases)
    func `a page of the reference equals what the code says`(page: ReferencePage) throws {
        let contents = try page.contents()
        if ProcessInfo.processInfo.environment["NAGARE_UPDATE_REFERENCE"] == "1" {
            try contents.write(to: RepositoryFile.url(page.path), atomically: true, encoding: .utf8)
        }
        let isEqual = try RepositoryFile.contents(page.path) == contents
        #expect(isEqual, "\(page.path) is out of date: run ops/docs --update")
    }
}
