import Testing
import Wire

/// Regression tests for session descriptions that fuzzing found.
@Suite struct FuzzSDPTests {
    @Test(arguments: ["96 ==1", "96 =a=b", "96 a=1;=b=2", "96  = x=y;c=3"])
    func `a format parameter with an empty name is ignored, so that the line survives serialization`(text: String)
        throws
    {
        let line = try #require(FormatParametersAttribute(text))
        #expect(line.parameters.allSatisfy { !$0.key.isEmpty })
        #expect(FormatParametersAttribute(line.text) == line)
    }
}
