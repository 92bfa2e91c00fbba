//! The checker: what must be true of any history, whatever was done to the node. It shares nothing with the engine; it
//! knows the grids that occurrences lie on, and counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::chaos::history::{History, JobBook, Line, Record, Run, Stretch};

/// What a history is made of, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "they are counts")]
pub(crate) struct Figures {
    pub(crate) n_due: usize,
    pub(crate) n_runs: usize,
    pub(crate) n_lost: usize,
    pub(crate) n_on_record: i64,
    pub(crate) n_starts: usize,
}

pub(crate) fn figures(history: &History) -> Figures {
    Figures {
        n_due: history.books.values().map(|book| expected(book, &[], &[]).len()).sum(),
        n_runs: history.runs.len(),
        n_lost: history.runs.iter().filter(|run| is_lost(run)).count(),
        n_on_record: history.records.iter().map(|record| record.count).sum(),
        n_starts: history.lines.iter().filter(|line| line.is_start).count(),
    }
}

/// Whether its node lost it, and told later what had become of it or never.
fn is_lost(run: &Run) -> bool {
    ["lost", "superseded"].contains(&run.status.as_str())
}

/// Everything that is wrong with a history of a node at rest. Nothing, if all is well.
pub(crate) fn findings(history: &History) -> Vec<String> {
    let mut findings: Vec<String> = history.conflicts.iter().map(|it| format!("two at once: {it}")).collect();
    findings.extend(history.torn.iter().map(|it| format!("torn: {it}")));
    let runs: BTreeMap<&str, &Run> = history.runs.iter().map(|run| (run.id.as_str(), run)).collect();
    if runs.len() != history.runs.len() {
        findings.push("a run is listed twice".to_owned());
    }
    for run in &history.runs {
        if run.is_open {
            findings.push(format!("stuck: run {} of {} is still {}", run.id, run.job, run.status));
        }
        if run.claimed < run.due && run.asked.is_none() {
            findings.push(format!("early: run {} of {}, due {}", run.id, run.job, run.due));
        }
    }
    let mut jobs: BTreeSet<&str> = history.books.keys().map(String::as_str).collect();
    jobs.extend(history.runs.iter().map(|run| run.job.as_str()));
    jobs.extend(history.lines.iter().map(|line| line.job.as_str()));
    let nothing = JobBook::default();
    for job in jobs {
        let of_job: Vec<&Run> = history.runs.iter().filter(|run| run.job == job).collect();
        let records: Vec<&Record> = history.records.iter().filter(|it| it.job == job).collect();
        let lines: Vec<&Line> = history.lines.iter().filter(|it| it.job == job).collect();
        let book = history.books.get(job).unwrap_or(&nothing);
        let mut found = witnessed(&lines, &runs);
        found.extend(proved(&of_job, &lines));
        found.extend(fences(&of_job));
        found.extend(asked_for(book, &of_job));
        found.extend(conserved(book, &of_job, &records));
        findings.extend(found.into_iter().map(|it| format!("{job}: {it}")));
    }
    findings
}

/// Every start that was witnessed is that of a run on record, under its fence; none starts twice, fences grow, and an
/// end follows its own start.
fn witnessed(lines: &[&Line], runs: &BTreeMap<&str, &Run>) -> Vec<String> {
    let mut found = Vec::new();
    let (mut started, mut last): (BTreeSet<&str>, Option<&Line>) = (BTreeSet::new(), None);
    let mut open: Option<&Line> = None;
    for line in lines {
        match runs.get(line.run.as_str()) {
            None => found.push(format!("run {} executed and is not on record", line.run)),
            Some(run) if (&run.job, run.fence) != (&line.job, line.fence) => {
                found
                    .push(format!("run {} executed under fence {}, not {}", line.run, line.fence, run.fence));
            }
            Some(_) => {}
        }
        if last.is_some_and(|last| line.boot_nanos < last.boot_nanos) {
            found.push(format!("run {} noted something before what came before it", line.run));
        }
        last = Some(line);
        if line.is_start {
            if !started.insert(&line.run) {
                found.push(format!("run {} executed twice", line.run));
            }
            open = Some(line);
        } else if open.take().is_none_or(|start| (&start.run, start.fence) != (&line.run, line.fence)) {
            found.push(format!("the end of run {} follows no start of it", line.run));
        }
    }
    let fences: Vec<u64> = lines.iter().filter(|line| line.is_start).map(|line| line.fence).collect();
    for pair in fences.windows(2).filter(|pair| pair[1] <= pair[0]) {
        found.push(format!("fence {} came after fence {}", pair[1], pair[0]));
    }
    found
}

/// Every good run has executed from its start to its end.
fn proved(runs: &[&Run], lines: &[&Line]) -> Vec<String> {
    // A job that is no witness proves nothing.
    if lines.is_empty() {
        return Vec::new();
    }
    let noted = |id: &str, is_start| lines.iter().any(|line| line.run == id && line.is_start == is_start);
    let good = runs.iter().filter(|run| run.status == "succeeded");
    let unproved = good.filter(|run| !noted(&run.id, true) || !noted(&run.id, false));
    unproved
        .map(|run| format!("run {} is on record as good and did not execute to its end", run.id))
        .collect()
}

/// No two runs of a job have the same fence.
fn fences(runs: &[&Run]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let again = runs.iter().filter(|run| !seen.insert(run.fence));
    again.map(|run| format!("fence {} was given out twice", run.fence)).collect()
}

/// What people asked for came once, or waits.
fn asked_for(book: &JobBook, runs: &[&Run]) -> Vec<String> {
    let mut found = Vec::new();
    let mut n_unserved = 0;
    for asked in &book.asked {
        let served: Vec<&&Run> = runs.iter().filter(|run| run.asked.as_ref() == Some(asked)).collect();
        n_unserved += u64::from(served.is_empty());
        if 1 < served.iter().filter(|run| !is_lost(run)).count() {
            found.push(format!("what was asked for as {asked} came twice"));
        }
    }
    if !book.is_removed && book.n_waiting < n_unserved {
        found.push(format!("{n_unserved} wishes got no run, and {} wait", book.n_waiting));
    }
    found
}

/// Every occurrence that came due has had a run or lies in one record, or is the one that is pending: exactly one of
/// them.
fn conserved(book: &JobBook, runs: &[&Run], records: &[&Record]) -> Vec<String> {
    let mut found = Vec::new();
    let own: Vec<&&Run> = runs.iter().filter(|run| run.asked.is_none()).collect();
    let due: BTreeSet<i64> = own.iter().map(|run| run.due).collect();
    let expected = expected(book, runs, records);
    let mut n_fates: BTreeMap<i64, usize> = due.iter().map(|due| (*due, 1)).collect();
    for record in records {
        let is_whole = |points: &Vec<i64>| {
            let ends = (points.first().copied(), points.last().copied());
            points.len() as i64 == record.count && ends == (Some(record.first), Some(record.last))
        };
        let all: Vec<i64> = expected.range(record.first..=record.last).map(|(point, _)| *point).collect();
        // What another rhythm may have owed at about the time when this one began is not a part of it.
        let of_one = book.stretches.iter().map(|stretch| {
            let in_rhythm = |point: &&i64| (**point - stretch.first) % stretch.every == 0;
            all.iter().filter(in_rhythm).copied().collect()
        });
        let points = std::iter::once(all.clone()).chain(of_one).find(is_whole).unwrap_or(all);
        if !is_whole(&points) {
            let n_due = points.len();
            let Record { first, last, count, .. } = record;
            found.push(format!("{count} on record from {first} to {last}, where {n_due} were due"));
        }
        for point in points {
            *n_fates.entry(point).or_default() += 1;
        }
    }
    let gone: BTreeSet<i64> =
        book.stretches.iter().filter_map(|it| gone_with_its_job(it, runs, &n_fates)).collect();
    for (point, must) in &expected {
        match n_fates.get(point).copied().unwrap_or(0) {
            0 if *must && !gone.contains(point) => {
                found.push(format!("lost: what was due at {point} has no run and no record"));
            }
            0 | 1 => {}
            _ => found.push(format!("double: what was due at {point} has more than one fate")),
        }
    }
    for due in due.iter().filter(|due| !expected.contains_key(due)) {
        found.push(format!("a run served {due}, when nothing was due"));
    }
    for due in &due {
        let attempts: Vec<&&&Run> = own.iter().filter(|run| run.due == *due).collect();
        if 1 < attempts.iter().filter(|run| run.status == "succeeded").count() {
            found.push(format!("double: what was due at {due} was served well twice"));
        }
    }
    found
}

/// What was pending when its job was removed, though later ones are on record: it waited for the end of a run that
/// someone had asked for, while they came due. There is one at most, and nothing later had a run of its own.
fn gone_with_its_job(stretch: &Stretch, runs: &[&Run], n_fates: &BTreeMap<i64, usize>) -> Option<i64> {
    let (_, removed) = stretch.ended.filter(|_| stretch.is_removed)?;
    let (asked, own): (Vec<&Run>, Vec<&Run>) = runs.iter().copied().partition(|run| run.asked.is_some());
    let last_own = own.iter().map(|run| run.due).filter(|due| *due <= removed).max().unwrap_or(i64::MIN);
    let mut points = (0..).map(|no| stretch.first + no * stretch.every).take_while(|point| *point <= removed);
    let point = points.find(|point| last_own < *point && !n_fates.contains_key(point))?;
    // It was the next one when that run began, or had come due.
    let waited_for = |run: &&Run| point - stretch.every < run.claimed && run.claimed <= removed;
    asked.iter().copied().any(|run| waited_for(&run)).then_some(point)
}

/// When occurrences were due, and whether each must have come to its fate.
fn expected(book: &JobBook, runs: &[&Run], records: &[&Record]) -> BTreeMap<i64, bool> {
    let mut expected = BTreeMap::new();
    let own = runs.iter().filter(|run| run.asked.is_none()).map(|run| run.due);
    let seen: BTreeSet<i64> = own.chain(records.iter().flat_map(|it| [it.first, it.last])).collect();
    let earliest = seen.first().copied();
    for (no, stretch) in book.stretches.iter().enumerate() {
        let (must_before, may_until) = match (stretch.ended, book.pending) {
            // What had its fate when the job was removed tells how far it had come.
            (Some((_, to)), _) if stretch.is_removed => {
                (seen.range(..=to).next_back().copied().unwrap_or(i64::MIN), to)
            }
            (Some((from, to)), _) => (from, to),
            // What came due during a run that someone asked for is on record before what waited for its end.
            (None, Some(pending)) => {
                let recorded = records.iter().map(|it| it.last).max().unwrap_or(pending);
                (pending, pending.max(recorded))
            }
            (None, None) => (i64::MIN, i64::MIN),
        };
        let mut first = stretch.first;
        // The test may have looked for the first time when some were over.
        if let Some(earliest) = earliest.filter(|it| no == 0 && *it < first) {
            first -= (first - earliest) / stretch.every * stretch.every;
        }
        let mut point = first;
        while point <= may_until {
            let must = expected.entry(point).or_insert(false);
            // The records of a job that is gone cannot be asked for.
            *must |= point < must_before && !book.is_removed;
            point += stretch.every;
        }
    }
    expected
}
