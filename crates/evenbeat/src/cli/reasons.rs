//! Generates docs/reference/reasons.md.

use std::fmt::Write as _;

use evenbeat_core::condition::{Condition, Reason};

const INTRODUCTION: &str = "# Reasons

Evenbeat gives every reason as a code and a sentence. The codes are the same in `evenbeat status`, `job list`, `job show`,
`explain` and the API. They never change, but new ones may be added. The sentences name figures and causes where they
are known, and may be reworded.

A reason answers one of two questions:

- **What is the job's condition?** It is `ok`, `warning` or `error`. If there are several reasons, the one that comes first
  in the first table below is shown; `reasons` in the API lists them all.
- **Why is it not running right now?** `evenbeat explain JOB` answers with one code (`binding` in the API), which is `ok` if
  nothing holds the job up.

A job that a person paused, that is disabled or that is done has no condition, because it does not have to run. A job that
the *system* paused is in `error` until a person resumes, pauses or removes it, or until a raised limit releases it.

## Conditions

| Code | Condition | Sentence | What to do |
|---|---|---|---|
";

const WAITS: &str = "
## Why a job waits

A job can also wait because of `paused_failures`, `paused_quota` or `disabled_invalid` (see above).

| Code | Sentence | What to do |
|---|---|---|
";

const CLOSING: &str = "
`no_slot` covers all matters of room and order: a full pool, jobs that go first, the limit of starts per second, or a job
that only another node may take. A job with `no_node` also becomes `unsatisfiable` once the nodes that could take it have
been away for longer than a restart takes (the `window` of the lease timings, 45 seconds by default), so a rolling restart
raises no warning. With SQLite there is only one node, and the warning appears immediately.
";

/// The text of docs/reference/reasons.md.
pub fn reasons() -> String {
    let is_condition = |reason: &Reason| *reason <= Reason::Ok;
    let mut text = INTRODUCTION.to_owned();
    for reason in Reason::ALL.into_iter().filter(is_condition) {
        let condition: Condition = reason.condition();
        let (sentence, remedy) = (reason.sentence(), reason.remedy());
        let _ = writeln!(text, "| `{reason}` | `{condition}` | {sentence} | {remedy} |");
    }
    text.push_str(WAITS);
    for reason in Reason::ALL.into_iter().filter(|reason| !is_condition(reason)) {
        let _ = writeln!(text, "| `{reason}` | {} | {} |", reason.sentence(), reason.remedy());
    }
    text.push_str(CLOSING);
    text
}
