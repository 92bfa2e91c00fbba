//! The ids of a run's trace. They follow from the id of the run, so no one has to be told them: whoever knows a run finds its
//! trace.

use evenbeat_core::ids::RunId;

/// A span of a run's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanPart {
    /// From due to end.
    Run,
    /// From due until the node told it to start.
    Waiting,
    /// Until it executed.
    Starting,
    /// Until it ended. What the run itself traces belongs below this one.
    Running,
}

impl SpanPart {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            SpanPart::Run => "run",
            SpanPart::Waiting => "waiting",
            SpanPart::Starting => "starting",
            SpanPart::Running => "running",
        }
    }
}

/// The trace of a run: the digits of its id.
pub(crate) fn trace_id(run: RunId) -> String {
    format!("{:032x}", run.0)
}

/// A span of it.
pub(crate) fn span_id(run: RunId, part: SpanPart) -> String {
    let hash = blake3::Hasher::new().update(&run.0.to_be_bytes()).update(part.as_str().as_bytes()).finalize();
    let id = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    // A span of zeros is none.
    format!("{:016x}", id.max(1))
}

/// What a run is told of its trace, as W3C Trace Context says.
pub(crate) fn traceparent(run: RunId) -> String {
    format!("00-{}-{}-01", trace_id(run), span_id(run, SpanPart::Running))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_follows_from_the_run() {
        let run = RunId(0x0198_c0de_0000_7000_8000_0000_0000_002a);
        assert_eq!(trace_id(run), "0198c0de00007000800000000000002a");
        let parent = traceparent(run);
        assert_eq!(parent, traceparent(run));
        assert!(parent.starts_with("00-0198c0de00007000800000000000002a-") && parent.ends_with("-01"));
        assert_eq!(parent.len(), 55);
        let parts = [SpanPart::Run, SpanPart::Waiting, SpanPart::Starting, SpanPart::Running];
        let spans: std::collections::BTreeSet<String> = parts.map(|part| span_id(run, part)).into();
        assert_eq!(spans.len(), 4);
    }
}
