//! What happened, as it can be seen from outside: what the test itself asked for, what the node has on record, and what
//! witnesses noted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::chaos::node::Node;

/// A stretch of time in which a job's occurrences lay on one grid, in milliseconds of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: i64,
    pub(crate) every: i64,
    /// Another began, or the job was removed, at an instant between these two.
    pub(crate) ended: Option<(i64, i64)>,
    /// The job was removed then: what it still owed is nobody's any more.
    pub(crate) is_removed: bool,
}

/// A job as the test knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobBook {
    pub(crate) stretches: Vec<Stretch>,
    /// The occurrence that it will serve next, at the end.
    pub(crate) pending: Option<i64>,
    /// How many runs of it were asked for.
    pub(crate) asked: Vec<String>,
    /// How many of them wait, at the end.
    pub(crate) n_waiting: u64,
    pub(crate) is_removed: bool,
}

/// A run on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) job: String,
    pub(crate) due: i64,
    pub(crate) trigger: String,
    pub(crate) asked: Option<String>,
    pub(crate) attempt: u64,
    pub(crate) fence: u64,
    pub(crate) status: String,
    pub(crate) is_open: bool,
    pub(crate) claimed: i64,
}

/// Occurrences on record that got no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) job: String,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) count: i64,
}

/// What a witness noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) job: String,
    pub(crate) is_start: bool,
    pub(crate) run: String,
    pub(crate) fence: u64,
    pub(crate) boot_nanos: u64,
}

/// All of it, at rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) books: BTreeMap<String, JobBook>,
    pub(crate) runs: Vec<Run>,
    pub(crate) records: Vec<Record>,
    /// Of each job in order.
    pub(crate) lines: Vec<Line>,
    pub(crate) conflicts: Vec<String>,
    /// What cannot be read at all.
    pub(crate) torn: Vec<String>,
}

/// What a test asks of a fleet, noted as it asks.
#[derive(Debug, Default)]
pub(crate) struct Book(pub(crate) BTreeMap<String, JobBook>);

impl Book {
    /// The jobs as they are now; to be asked once, after they were applied.
    pub(crate) fn open(node: &Node) -> Book {
        let jobs = node.list("/api/v1/jobs?", "after");
        let book = |job: &Json| {
            let stretches = stretch(job).into_iter().collect();
            (job["key"].as_str().unwrap().to_owned(), JobBook { stretches, ..JobBook::default() })
        };
        Book(jobs.iter().map(book).collect())
    }

    /// A change that may begin a new stretch: what was asked when, and the job after it.
    pub(crate) fn changed(&mut self, key: &str, between: (i64, i64), job: &Json) {
        let book = self.0.entry(key.to_owned()).or_default();
        if let Some(last) = book.stretches.last_mut()
            && last.ended.is_none()
        {
            last.ended = Some(between);
            last.is_removed = job.is_null();
        }
        book.stretches.extend(stretch(job));
        book.is_removed = job.is_null();
        if book.is_removed {
            book.asked.clear();
        }
    }

    /// All that happened to these jobs, of a node that has come to rest.
    pub(crate) fn close(&self, node: &Node) -> History {
        let mut history = History { books: self.0.clone(), ..History::default() };
        for job in node.list("/api/v1/jobs?", "after") {
            let key = job["key"].as_str().unwrap();
            let book = history.books.entry(key.to_owned()).or_default();
            book.pending = job["pending_at"].as_str().map(millis);
            book.n_waiting = job["waiting_runs"].as_u64().unwrap();
            let records = node.list(&format!("/api/v1/jobs/{key}/records?"), "before");
            history.records.extend(records.iter().map(record));
        }
        history.runs = node.list("/api/v1/runs?", "before").iter().map(run).collect();
        read_witnesses(&node.witnesses(), &mut history);
        history
    }
}

fn stretch(job: &Json) -> Option<Stretch> {
    let every = seconds(job["definition"]["every"].as_str()?);
    Some(Stretch { first: millis(job["pending_at"].as_str()?), every, ended: None, is_removed: false })
}

/// `90s`, `7m` and `2h`, in milliseconds.
fn seconds(text: &str) -> i64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: i64 = number.parse().unwrap_or_else(|_| panic!("`{text}` is no length of these tests"));
    number
        * match unit {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => panic!("`{text}` is no length of these tests"),
        }
}

fn run(it: &Json) -> Run {
    let text = |name: &str| it[name].as_str().unwrap_or_else(|| panic!("`{name}` of {it}")).to_owned();
    Run {
        id: text("id"),
        job: text("job"),
        due: millis(&text("scheduled_for")),
        trigger: text("trigger"),
        asked: it["asked"].as_str().map(str::to_owned),
        attempt: it["attempt"].as_u64().unwrap(),
        fence: it["fence"].as_u64().unwrap(),
        status: text("status"),
        is_open: it["outcome"].is_null(),
        claimed: millis(&text("claimed_at")),
    }
}

fn record(it: &Json) -> Record {
    let text = |name: &str| it[name].as_str().unwrap_or_else(|| panic!("`{name}` of {it}"));
    Record {
        job: text("job").to_owned(),
        first: millis(text("first")),
        last: millis(text("last")),
        count: it["count"].as_i64().unwrap(),
    }
}

fn read_witnesses(folder: &Path, history: &mut History) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|it| it.path()).collect();
    entries.sort();
    for path in entries {
        let job = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let text = || fs::read_to_string(&path).unwrap();
        match ending {
            "lines" => {
                for text in text().split_inclusive('\n') {
                    match line(&job, text) {
                        Some(line) => history.lines.push(line),
                        None => history.torn.push(format!("{job}: {text:?}")),
                    }
                }
            }
            "conflicts" => history.conflicts.extend(text().lines().map(|it| format!("{job}: {it}"))),
            _ => {}
        }
    }
}

fn line(job: &str, text: &str) -> Option<Line> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let [what, run, fence, boot_nanos, _pid] = words[..] else { return None };
    let is_start = match what {
        "start" => true,
        "end" => false,
        _ => return None,
    };
    let (run, job) = (run.to_owned(), job.to_owned());
    Some(Line { job, is_start, run, fence: fence.parse().ok()?, boot_nanos: boot_nanos.parse().ok()? })
}

/// Milliseconds since 1970 of an instant in UTC such as `2026-02-04T10:15:00.250Z`.
pub(crate) fn millis(text: &str) -> i64 {
    let number = |from: usize, to: usize| -> i64 {
        let digits = text.get(from..to).and_then(|it| it.parse().ok());
        digits.unwrap_or_else(|| panic!("`{text}` is no instant"))
    };
    assert!(text.ends_with('Z'), "`{text}` is no instant in UTC");
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    // Years that begin in March have their odd day at the end.
    let (from_march, year) = ((month + 9) % 12, if month <= 2 { year - 1 } else { year });
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 719_469;
    let seconds = days * 86_400 + number(11, 13) * 3_600 + number(14, 16) * 60 + number(17, 19);
    let part = text.get(19..text.len() - 1).unwrap_or_default().trim_start_matches('.');
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    seconds * 1_000 + part.parse::<i64>().unwrap_or_else(|_| panic!("`{text}` is no instant"))
}

#[test]
fn instants_are_read() {
    assert_eq!(millis("1970-01-01T00:00:00Z"), 0);
    assert_eq!(millis("2000-02-29T23:59:59.5Z"), 951_868_799_500);
    assert_eq!(millis("2026-11-16T07:56:21.042Z"), 1_794_815_781_042);
}
