//! Renders the demo for the size of the terminal.

use std::fmt::Write as _;

use anstyle::Style;
use evenbeat_core::condition::Condition;
use evenbeat_core::run::Outcome;
use evenbeat_core::zone::Zone;

use super::super::analyze::ScoreWord;
use super::super::chart::{column, counted, cut, heat, heat_style, to_u64};
use super::super::format::{self, BOLD, DIM};
use crate::demo::View;

/// The size of the terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// How to reach the demo.
#[derive(Clone, Debug, Default)]
pub(super) struct DemoAddresses {
    /// For the other commands.
    pub(super) socket: String,
    /// A login link for the browser. It works once, so there is a new one now and then.
    pub(super) link: Option<String>,
}

/// Largest number of lines of a list, however tall the terminal is.
const LIST_MAX: usize = 12;

/// A list with its title, a note beside the title, and its lines.
struct List {
    title: &'static str,
    note: String,
    lines: Vec<StyledLine>,
}

/// Renders a frame.
pub(super) fn frame(view: &View, addresses: &DemoAddresses, zone: &Zone, size: ScreenSize) -> Vec<String> {
    let mut top = head(view, size);
    if let Some(link) = addresses.link.as_deref().and_then(|it| link_line(it, size)) {
        top.insert(1, link);
    }
    let bottom = foot(addresses, size);
    // The order in which lists get room. They are shown in order of time.
    let lists = [running(view), worst(view, size), ended(view), next(view, zone)];
    let room = size.rows.saturating_sub(top.len() + bottom.len());
    let (heights, is_spaced) = share(&lists, room);
    let mut lines = top;
    for idx in [0, 2, 1, 3] {
        let (list, height) = (&lists[idx], heights[idx]);
        if height == 0 {
            continue;
        }
        if is_spaced {
            lines.push(StyledLine::default());
        }
        let note = if list.note.is_empty() { String::new() } else { format!("  {}", list.note) };
        lines.push(StyledLine::default().with(list.title, BOLD).with(&note, DIM));
        lines.extend(list.lines.iter().take(height - 1).cloned());
    }
    // Fill unused rows, so that the last lines do not jump.
    lines.resize(size.rows.saturating_sub(bottom.len()).max(lines.len()), StyledLine::default());
    lines.extend(bottom);
    lines.truncate(size.rows);
    lines.iter().map(|line| line.render(size.columns)).collect()
}

/// The number of rows of each list including its title, and whether there is room for blank lines between them.
fn share(lists: &[List; 4], room: usize) -> ([usize; 4], bool) {
    let wanted = lists.each_ref().map(|list| 1 + list.lines.len().clamp(1, LIST_MAX));
    let mut heights = [0; 4];
    let mut left = room;
    // A title without any lines is useless.
    for height in &mut heights {
        if 2 <= left {
            *height = 2;
            left -= 2;
        }
    }
    let n_shown = heights.iter().filter(|height| 0 < **height).count();
    let is_spaced = n_shown == lists.len() && 2 * n_shown <= left;
    if is_spaced {
        left -= n_shown;
    }
    loop {
        let before = left;
        for (height, wanted) in heights.iter_mut().zip(wanted) {
            if 0 < *height && *height < wanted && 0 < left {
                *height += 1;
                left -= 1;
            }
        }
        if left == before {
            return (heights, is_spaced);
        }
    }
}

fn head(view: &View, size: ScreenSize) -> Vec<StyledLine> {
    let since = format::relative(view.since, view.at);
    let about = format!("  a made-up fleet of {} jobs, started {since}", view.n_jobs);
    let mut lines = vec![StyledLine::default().with("Evenbeat", BOLD).with(&about, DIM)];
    let mut conditions = StyledLine::default().with("condition  ", BOLD);
    for (idx, (condition, n)) in view.conditions.iter().enumerate() {
        let between = if idx == 0 { "" } else { " · " };
        conditions = conditions
            .with(between, Style::new())
            .with(&format!("{n} {}", condition.as_str()), format::style_of(*condition));
    }
    lines.push(conditions);
    let word = ScoreWord::of(view.score).as_str();
    let score = format!("{:.2} {word}", view.score);
    let busiest = view.minutes.iter().enumerate().max_by_key(|(minute, n)| (**n, std::cmp::Reverse(*minute)));
    let busiest = busiest.map_or(String::new(), |(minute, n)| {
        format!("  busiest minute :{minute:02}, {} a day", counted((*n).into(), "start"))
    });
    lines
        .push(StyledLine::default().with("evenness   ", BOLD).with(&score, Style::new()).with(&busiest, DIM));
    lines.push(minutes(&view.minutes, size));
    if 12 <= size.rows && 60 <= size.columns {
        let axis = format!("{:15}{:15}{:15}{:15}", ":00", ":15", ":30", ":45");
        let note = if 80 <= size.columns { "  starts by minute" } else { "" };
        lines.push(StyledLine::default().with(&axis, DIM).with(note, DIM));
    }
    lines
}

/// Starts by minute of the hour over the next day, with the peaks of a crontab that a rebalance removes.
fn minutes(minutes: &[u32], size: ScreenSize) -> StyledLine {
    let n_together = if 60 <= size.columns { 1 } else { 2 };
    let counts: Vec<u32> = minutes.chunks(n_together).map(|minutes| minutes.iter().sum()).collect();
    // A full column is at least twice the mean, so that an even fleet is half full and not all red.
    let mean = counts.iter().sum::<u32>().div_ceil(u32::try_from(counts.len().max(1)).unwrap_or(1));
    let full = counts.iter().copied().max().unwrap_or(0).max(2 * mean);
    let mut line = StyledLine::default();
    for n in counts {
        line = line.with(&column(n, full).to_string(), heat_style(heat(n, full)));
    }
    line
}

/// The login link, right below the title. A wrapped line cannot be clicked or selected, so a narrow terminal shows none.
fn link_line(link: &str, size: ScreenSize) -> Option<StyledLine> {
    let n_letters = link.chars().count();
    if size.columns < n_letters || size.rows < 12 {
        return None;
    }
    let before = "open       ";
    let before = if before.len() + n_letters <= size.columns { before } else { "" };
    Some(StyledLine::default().with(before, BOLD).with(link, BOLD.underline()))
}

fn foot(addresses: &DemoAddresses, size: ScreenSize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let export = format!("export EVENBEAT_SERVER={}", addresses.socket);
    // A wrapped line cannot be selected with a double click.
    let fits = |text: &str| text.chars().count() <= size.columns && 12 <= size.rows;
    if fits(&export) {
        lines.push(StyledLine::default().with(&export, Style::new()));
        let hint = "then try: evenbeat status | job list | explain gov:tenders | rebalance";
        if hint.len() <= size.columns && 16 <= size.rows {
            lines.push(StyledLine::default().with(hint, DIM));
        }
    }
    let hint = "A wider terminal shows how to reach it.";
    let has_link = addresses.link.as_deref().and_then(|it| link_line(it, size)).is_some();
    if lines.is_empty() && !has_link && fits(hint) {
        lines.push(StyledLine::default().with(hint, DIM));
    }
    let end = if size.columns < 56 {
        "Ctrl-C stops the demo."
    } else {
        "Ctrl-C stops the demo and removes everything."
    };
    lines.push(StyledLine::default().with(end, DIM));
    lines
}

fn running(view: &View) -> List {
    let line = |(key, length): &(String, _)| {
        StyledLine::default()
            .with(&name(key), Style::new())
            .with(&format!(" for {}", format::length(*length)), DIM)
    };
    List {
        title: "Running",
        note: counted(to_u64(view.open.len()), "run"),
        lines: view.open.iter().map(line).collect(),
    }
}

fn ended(view: &View) -> List {
    let lines = view.ended.iter().map(|(key, outcome, length, at)| {
        let took = length.map(format::length).unwrap_or_default();
        StyledLine::default()
            .with(&name(key), Style::new())
            .with(&format!(" {:<10}", outcome.as_str()), outcome_style(*outcome))
            .with(&format!(" {took:>6}"), Style::new())
            .with(&format!("  {}", format::relative(*at, view.at)), DIM)
    });
    List { title: "Ended", note: String::new(), lines: lines.take(LIST_MAX).collect() }
}

fn worst(view: &View, size: ScreenSize) -> List {
    let room = size.columns.saturating_sub(2 + NAME + 1 + 8 + 1);
    let lines = view.worst.iter().map(|(key, condition, why)| {
        StyledLine::default()
            .with(&name(key), Style::new())
            .with(&format!(" {:<8}", condition.as_str()), format::style_of(*condition))
            .with(&format!(" {}", cut(why, room)), Style::new())
    });
    let n_jobs: usize = view.conditions.iter().filter(|(it, _)| **it != Condition::Ok).map(|(_, n)| *n).sum();
    List {
        title: "Needs a look",
        note: counted(to_u64(n_jobs), "job"),
        lines: lines.take(LIST_MAX).collect(),
    }
}

fn next(view: &View, zone: &Zone) -> List {
    let line = |(at, key): &(_, String)| {
        StyledLine::default()
            .with(&format!("  {}  ", format::time_of_day(zone, *at)), DIM)
            .with(key, Style::new())
    };
    List { title: "Next", note: String::new(), lines: view.next.iter().map(line).collect() }
}

/// Number of characters shown of a job's key.
const NAME: usize = 20;

fn name(key: &str) -> String {
    format!("  {:<NAME$}", cut(key, NAME))
}

fn outcome_style(outcome: Outcome) -> Style {
    let condition = match outcome {
        Outcome::Succeeded => Condition::Ok,
        Outcome::Cancelled | Outcome::Superseded => Condition::Warning,
        _ => Condition::Error,
    };
    format::style_of(condition)
}

/// A line of styled parts that can be cut to a width.
#[derive(Clone, Debug, Default)]
struct StyledLine(Vec<(String, Style)>);

impl StyledLine {
    fn with(mut self, text: &str, style: Style) -> StyledLine {
        self.0.push((text.to_owned(), style));
        self
    }

    /// The text for a terminal, cut to this width with an ellipsis.
    fn render(&self, width: usize) -> String {
        let n_chars: usize = self.0.iter().map(|(text, _)| text.chars().count()).sum();
        let mut left = if width < n_chars { width.saturating_sub(1) } else { n_chars };
        let mut rendered = String::new();
        for (text, style) in &self.0 {
            let shown: String = text.chars().take(left).collect();
            left -= shown.chars().count();
            if !shown.is_empty() {
                let _ = write!(rendered, "{style}{shown}{style:#}");
            }
        }
        if width < n_chars && 0 < width {
            rendered.push('…');
        }
        rendered
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evenbeat_core::time::{Duration, Timestamp};

    use super::*;

    fn view(n_runs: usize) -> View {
        let at: Timestamp = "2026-11-17T10:00:30Z".parse().unwrap();
        let secs = |n: usize| Duration::from_secs(i64::try_from(n).unwrap());
        let mut minutes = vec![4; 60];
        minutes[50] = 304;
        View {
            at,
            since: at - Duration::from_secs(30),
            n_jobs: 430,
            conditions: BTreeMap::from([
                (Condition::Ok, 427),
                (Condition::Warning, n_runs / 2 + n_runs % 2),
                (Condition::Error, n_runs / 2),
            ]),
            worst: (0..n_runs)
                .map(|n| {
                    let why =
                        "The last run failed: exit code 1, after trying again twice within the last minute.";
                    (format!("broken-parser-{n}"), Condition::Error, why.to_owned())
                })
                .collect(),
            open: (0..n_runs).map(|n| (format!("atlas-prices-{n}"), secs(n))).collect(),
            ended: (0..n_runs)
                .map(|n| (format!("feed-{n:02}"), Outcome::Succeeded, Some(secs(n)), at - secs(n)))
                .collect(),
            next: (0..5).map(|n| (at + secs(n), format!("partner-{n:02}"))).collect(),
            score: 0.73,
            minutes,
        }
    }

    fn addresses() -> DemoAddresses {
        DemoAddresses {
            socket: "unix:/tmp/evenbeat-demo-0123abcd/evenbeat.sock".to_owned(),
            link: Some("http://127.0.0.1:8060/login?code=0123456789abcdef0123456789abcdef".to_owned()),
        }
    }

    fn drawn(n_runs: usize, columns: usize, rows: usize) -> Vec<String> {
        let lines = frame(&view(n_runs), &addresses(), &Zone::utc(), ScreenSize { columns, rows });
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn the_picture_fits_any_terminal() {
        for n_runs in [0, 1, 3, 50] {
            for (columns, rows) in
                [(200, 60), (120, 40), (80, 24), (60, 20), (40, 10), (20, 5), (5, 2), (1, 1)]
            {
                let lines = drawn(n_runs, columns, rows);
                assert_eq!(lines.len(), rows, "{columns}x{rows}");
                for line in &lines {
                    assert!(line.chars().count() <= columns, "{columns}x{rows}: {line}");
                }
            }
        }
    }

    #[test]
    fn what_matters_is_there_in_a_small_terminal() {
        let text = drawn(3, 80, 24).join("\n");
        let export = "export EVENBEAT_SERVER=unix:/tmp/evenbeat-demo-0123abcd/evenbeat.sock";
        for wanted in
            ["Evenbeat", "427 ok", "0.73", "Running  3 runs", "Ended", "Needs a look  3 jobs", "Next", export]
        {
            assert!(text.contains(wanted), "{wanted}:\n{text}");
        }
        let text = drawn(3, 60, 20).join("\n");
        assert!(text.contains("A wider terminal"), "{text}");
        let text = drawn(3, 66, 20).join("\n");
        assert!(text.contains("http://127.0.0.1:8060/login?code="), "{text}");
        let text = drawn(1, 40, 10).join("\n");
        for wanted in ["427 ok", "0.73", "Running  1 run", "Needs a look  1 job", "Ctrl-C"] {
            assert!(text.contains(wanted), "{wanted}:\n{text}");
        }
        assert!(!text.contains("1 runs") && !text.contains("1 jobs"), "{text}");
    }

    #[test]
    fn pictures_read_well() {
        let picture =
            |columns, rows| format!("--- {columns}x{rows}\n{}\n", drawn(3, columns, rows).join("\n"));
        insta::assert_snapshot!(
            [(80, 24), (60, 20), (40, 10)].map(|(columns, rows)| picture(columns, rows)).concat()
        );
    }

    #[test]
    fn a_rebalance_is_seen_in_the_minutes() {
        let size = ScreenSize { columns: 80, rows: 24 };
        let level = View { minutes: vec![9; 60], ..view(1) };
        let line = |view: &View| minutes(&view.minutes, size).render(80);
        let (before, after) = (line(&view(1)), line(&level));
        let bare = |line: &str| anstream::adapter::strip_str(line).to_string();
        assert_eq!(bare(&after), "▄".repeat(60));
        assert_eq!(bare(&before).matches('█').count(), 1, "one minute stands out");
    }
}
