//! The reference of reason codes, made from the code.

use std::fmt::Write as _;

use evenbeat_core::condition::{Condition, Reason};

const INTRODUCTION: &str = "# Reasons

Evenbeat says why with a code and a sentence. The codes are the same in `evenbeat status`, `job list`, `job show`,
`explain` and in the API; they do not change, and new ones may be added. The sentences name figures and causes where
they are known, and may be reworded.

Two questions have a reason for an answer:

- **How does the job stand?** Its condition is `ok`, `warning` or `error`. Of several reasons the first in the first table
  below is shown; `reasons` in the API has all of them.
- **Why does it not run right now?** `evenbeat explain JOB` answers with one code (`binding` in the API), `ok` if nothing
  holds it up.

A job that a person paused, that is disabled or that is done has no condition: it owes nothing. A job that the *system*
paused is in `error` until somebody resumes, pauses or removes it, or a raised limit releases it.

## Conditions

| Code | Condition | Sentence | What to do |
|---|---|---|---|
";

const WAITS: &str = "
## Why a job waits

Besides these, a job can wait because it is `paused_failures`, `paused_quota` or `disabled_invalid` (above).

| Code | Sentence | What to do |
|---|---|---|
";

const CLOSING: &str = "
`no_slot` covers everything that is a matter of room and order: a full pool, jobs that go first, the limit of starts per
second, a job that only another node may take. `no_node` is `unsatisfiable` as well once the nodes that could take the job
have been away for longer than a restart takes (the `window` of the lease timings, 45 seconds by default), so a rolling
restart raises no warning. With SQLite there is one node, and the warning comes at once.
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
