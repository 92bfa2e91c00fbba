//! The runs of a job: a strip of the latest ones, a table page by page, and the last lines of the last bad one.

use std::fmt::Write as _;

use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::log_tail::LogTail;
use super::why::coded;
use crate::dashboard::parts::{icon, percent, run_status, run_word};
use crate::dashboard::times::{Times, brief, count, counted, length_text, took};
use crate::printable;
use crate::views::job_detail::{JobDetail, RUNS_SHOWN};
use crate::views::model::{Page, RunView};

/// Rows of a page of the table.
pub(super) const ROWS: usize = 12;

/// How a run ended, as strips show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnding {
    Good,
    Failed,
    /// It was stopped: by a limit, a person or a blackout.
    Killed,
    /// Its end was not reported.
    Lost,
}

impl RunEnding {
    /// None while it goes on.
    pub(super) fn of(run: &RunView) -> Option<RunEnding> {
        Some(match run.outcome.as_deref()? {
            "succeeded" => RunEnding::Good,
            "timed_out" | "blackout" | "cancelled" => RunEnding::Killed,
            "lost" | "unknown" | "superseded" => RunEnding::Lost,
            _ => RunEnding::Failed,
        })
    }

    fn class(self) -> &'static str {
        match self {
            RunEnding::Good => "good",
            RunEnding::Failed => "fail",
            RunEnding::Killed => "kill",
            RunEnding::Lost => "lost",
        }
    }
}

/// The strip: good runs stand on the line, as high as they took long; bad ones hang below.
pub(super) fn large_strip(
    runs: &[RunView],
    average: Option<Duration>,
    max_expected: Option<Duration>,
) -> Markup {
    let ended: Vec<(RunEnding, Duration, &RunView)> = runs
        .iter()
        .rev()
        .filter_map(|run| Some((RunEnding::of(run)?, run.took.map_or(Duration::ZERO, |it| it.0), run)))
        .collect();
    let count_of = |wanted: RunEnding| ended.iter().filter(|(ending, ..)| *ending == wanted).count();
    let longest = ended.iter().map(|(_, took, _)| *took).chain(average).max().unwrap_or(Duration::ZERO);
    // A limit far above every run would press them all into the line.
    let limit = max_expected.filter(|limit| *limit <= longest * 4);
    let top = limit.map_or(longest, |limit| limit.max(longest)).as_millis_f64().max(1.0);
    let height = |length: Duration| (length.as_millis_f64() / top * 65.0).clamp(2.0, 65.0);
    let step = 100.0 / f64::from(u32::try_from(RUNS_SHOWN).unwrap_or(60));
    let label = strip_sentence(
        ended.len(),
        [RunEnding::Failed, RunEnding::Killed, RunEnding::Lost].map(count_of),
        average,
    );
    let y_of = |length: Duration| format!("{:.1}", 82.0 - height(length));
    html! {
        svg.hs role="img" aria-label=(label) {
            @if let Some(limit) = limit {
                @let y = y_of(limit);
                line.cap x1="0" x2="100%" y1=(y) y2=(y) {}
                text.halo x="0" y=(format!("{:.1}", 78.0 - height(limit))) { "max expected " (length_text(limit)) }
            }
            @for (no, (ending, length, run)) in (0_u32..).zip(&ended) {
                @let x = percent(f64::from(no) * step + step * 0.15);
                @let tall = height(*length);
                @let (y, tall) = if *ending == RunEnding::Good { (82.0 - tall, tall) } else { (84.0, (tall * 30.0 / 65.0).max(8.0)) };
                rect class=(ending.class()) x=(x) width=(percent(step * 0.7)) y=(format!("{y:.1}")) height=(format!("{tall:.1}")) rx="1" {
                    title { (run_word(&run.status)) ", " (took(*length)) }
                }
            }
            line.g0 x1="0" x2="100%" y1="82.5" y2="82.5" {}
            @if let Some(average) = average.filter(|it| Duration::ZERO < *it) {
                @let y = y_of(average);
                line.avg x1="0" x2="100%" y1=(y) y2=(y) {}
                text.halo.lbl2 x="100%" y=(format!("{:.1}", 77.0 - height(average))) text-anchor="end" { "average " (length_text(average)) }
            }
        }
        div.lgd {
            @for (ending, word) in [(RunEnding::Good, "good"), (RunEnding::Failed, "failed"), (RunEnding::Killed, "stopped"), (RunEnding::Lost, "lost")] {
                @let n = count_of(ending);
                @if 0 < n { span { svg.hs-k viewBox="0 0 14 10" aria-hidden="true" { rect class=(ending.class()) x="0.5" y="0.5" width="13" height="9" {} } (word) " " (n) } }
            }
        }
    }
}

fn strip_sentence(
    n_runs: usize,
    [n_failed, n_killed, n_lost]: [usize; 3],
    average: Option<Duration>,
) -> String {
    let n_good = n_runs - n_failed - n_killed - n_lost;
    let mut said = format!("Last {}: {n_good} good", counted(n_runs as u64, "run"));
    for (n, word) in [(n_failed, "failed"), (n_killed, "stopped"), (n_lost, "lost")] {
        if 0 < n {
            let _ = write!(said, ", {n} {word}");
        }
    }
    said.push('.');
    if let Some(average) = average {
        let _ = write!(said, " Good runs take {} on average.", length_text(average));
    }
    said
}

/// What came of a run: the sentence about a bad end, or what it counted.
fn result(run: &RunView) -> String {
    let mut parts = Vec::new();
    match run.trigger.as_ref() {
        "manual" => parts.push("requested by hand".to_owned()),
        "retry" => parts.push(format!("attempt {}", run.attempt)),
        "catchup" => parts.push("made up for a missed start".to_owned()),
        "backfill" => parts.push("backfill".to_owned()),
        _ => {}
    }
    let counters = [
        (run.pages_processed, "page"),
        (run.changes_detected, "change"),
        (run.price_changes, "price change"),
        (run.snapshots, "snapshot"),
    ];
    let counted = counters.into_iter().filter_map(|(n, noun)| {
        let n = u64::try_from(n).ok().filter(|n| 0 < *n)?;
        Some(counted(n, noun))
    });
    parts.extend(counted);
    match &run.sentence {
        Some(sentence) => sentence.clone(),
        None => parts.join(", "),
    }
}

/// The section of the runs.
pub(super) fn history(
    detail: &JobDetail,
    page: &Page<RunView>,
    is_first_page: bool,
    tail: Option<&(String, LogTail)>,
    times: &Times,
) -> Markup {
    let key = detail.key().as_str();
    let (average, max_expected) =
        (detail.view.average_good_duration.map(|it| it.0), detail.row.job.limits.max_expected);
    let all = &detail.runs.items;
    let n_ended = all.iter().filter(|run| run.outcome.is_some()).count();
    let oldest = all.last().and_then(|run| run.claimed_at);
    html! {
        section.sec aria-labelledby="r-h" {
            div.sec-h {
                h2 id="r-h" { "Runs" }
                @if 0 < n_ended {
                    span.sub {
                        "last " (count(n_ended as u64)) ", good above the line, bad below"
                        @if let Some(oldest) = oldest { "; " (brief(detail.now - oldest.0)) }
                    }
                }
                span.sp {}
                a.link href={ "/runs?o=all&q=" (key) } { "All runs" }
            }
            div id="strip" data-l {
                @if 0 < n_ended { (large_strip(all, average, max_expected)) }
            }
            @if page.items.is_empty() && is_first_page {
                p.empty-l { "It has not run yet." }
            } @else {
                (table(page, times))
                @if !is_first_page || page.next.is_some() {
                    nav.pages aria-label="Pages of runs" {
                        @if !is_first_page { a.btn href={ "/jobs/" (key) "#r-h" } { "Latest runs" } }
                        @if let Some(next) = &page.next { a.btn href={ "/jobs/" (key) "?before=" (next) "#r-h" } { "Older runs" } }
                    }
                }
            }
            div id="tail" data-l {
                @if let Some((run, tail)) = tail {
                    p.mut.tail-h {
                        @if tail.is_all { "Output" } @else { "Last " (counted(tail.lines.len() as u64, "line")) }
                        " of the last bad run. " a.link href={ "/runs/" (run) } { "Open its log" }
                    }
                    pre.logx tabindex="0" aria-label="Last lines of the last bad run" {
                        @for line in &tail.lines { span.e[line.starts_with("[stderr] ")] { (line) } "\n" }
                    }
                }
            }
        }
    }
}

fn table(page: &Page<RunView>, times: &Times) -> Markup {
    html! {
        table.tbl.runs.fix.jruns {
            colgroup { col.r1; col.r2; col.r3; col.r4.c-n2; col; }
            thead {
                tr { th { "Start, " (times.zone_name()) } th { "Outcome" } th.num { "Took" } th.c-n2 { "Node" } th { "Result" } }
            }
            tbody id="runs" data-rows {
                @for run in &page.items {
                    @let text = result(run);
                    @let at = run.started_at.or(run.claimed_at);
                    tr data-key=(run.id) {
                        td.nw { a.link.run-at href={ "/runs/" (run.id) } { @if let Some(at) = at { (times.exact(at.0)) } @else { "–" } } }
                        td.r-o { (run_status(&run.status)) }
                        td.num.r-d { @if let Some(length) = run.took { (took(length.0)) } @else { "–" } }
                        td.c-n2.ell { @if let Some(node) = &run.node { (printable::line(node)) } @else { span.mut { "–" } } }
                        td.ell.t2.r-m title=(printable::line(&text)) {
                            @if run.clock_was_ahead { (icon("warning")) " its clock was ahead; " }
                            @if run.outcome.is_none() { span.mut { "attempt " (run.attempt) } } @else { (coded(&text)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcome: &str, millis: i64) -> RunView {
        let mut run = RunView::of_request("r", &"shop".parse().unwrap(), None);
        run.status = outcome.to_owned().into();
        run.outcome = Some(outcome.to_owned().into());
        run.took = Some(Duration::from_millis(millis).into());
        run
    }

    #[test]
    fn a_strip_counts_what_it_shows() {
        let runs: Vec<RunView> =
            [("succeeded", 60_000), ("failed", 9_000), ("timed_out", 120_000), ("lost", 1)]
                .map(|(outcome, millis)| run(outcome, millis))
                .into();
        let drawn =
            large_strip(&runs, Some(Duration::from_mins(1)), Some(Duration::from_mins(2))).into_string();
        assert!(
            drawn.contains("Last 4 runs: 1 good, 1 failed, 1 stopped, 1 lost. Good runs take 1m on average."),
            "{drawn}"
        );
        assert!(drawn.contains("max expected 2m") && drawn.contains("average 1m"), "{drawn}");
        for class in ["good", "fail", "kill", "lost"] {
            assert!(drawn.contains(&format!("class=\"{class}\"")), "{class}: {drawn}");
        }
    }

    #[test]
    fn a_limit_far_above_every_run_is_not_drawn() {
        let drawn =
            large_strip(&[run("succeeded", 1_000)], None, Some(Duration::from_hours(6))).into_string();
        assert!(!drawn.contains("max expected"), "{drawn}");
    }

    #[test]
    fn the_result_of_a_run_is_what_it_counted_or_why_it_ended() {
        let mut good = run("succeeded", 1_000);
        (good.trigger, good.pages_processed, good.changes_detected) = ("retry".into(), 4_818, 1);
        good.attempt = 2;
        assert_eq!(result(&good), "attempt 2, 4,818 pages, 1 change");
        let bad =
            RunView { sentence: Some("The run failed with exit code 3.".to_owned()), ..run("failed", 1_000) };
        assert_eq!(result(&bad), "The run failed with exit code 3.");
    }
}
