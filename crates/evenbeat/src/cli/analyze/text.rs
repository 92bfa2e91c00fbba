//! An analysis as text: the verdict first, then the charts, then the changes.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

use super::sentences::{GLUE, notes, verdict};
use crate::cli::chart::{
    SHADES, bar, column, counted, cut, heat, heat_style, legend, thousands, to_u64, wrapped,
};
use crate::cli::fleet_file::{FleetFile, FleetFileKind};
use crate::cli::format::{DIM, clock, local};
use crate::cli::layout::TextLayout;
use crate::views::analysis::{AnalysisFigures, ChangeKind, Collision, Peak, ScheduleChange, ScoreWord, Side};

/// Number of changes shown without `--plan`.
const N_CHANGES: usize = 10;

/// Number of jobs named for a busy minute.
const N_NAMES: usize = 4;

/// The names of the two sides.
const AS_IS: &str = "as it is";
const PROPOSED: &str = "proposed";

/// The colour of bars and columns.
const CALM: Style = AnsiColor::Cyan.on_default();
/// The colour of the highest value.
const PEAK: Style = AnsiColor::Red.on_default().bold();

/// The whole analysis, in lines of at most this width.
pub(super) fn render(
    input: &FleetFile,
    figures: &AnalysisFigures,
    width: usize,
    all_changes: bool,
) -> String {
    let mut page = AnalysisPage { figures, layout: TextLayout::new(width) };
    page.heading(input);
    page.verdict();
    if 0 < figures.as_is.distribution.n_runs {
        page.table();
        page.minutes();
        page.hours();
        page.heat_maps();
        page.collisions();
        page.changes(input.kind, all_changes);
    }
    page.notes(input);
    page.layout.text
}

struct AnalysisPage<'a> {
    figures: &'a AnalysisFigures,
    layout: TextLayout,
}

impl AnalysisPage<'_> {
    fn sides(&self) -> [(&'static str, &Side); 2] {
        [(AS_IS, &self.figures.as_is), (PROPOSED, &self.figures.proposed)]
    }

    fn heading(&mut self, input: &FleetFile) {
        let kind = input.kind.as_str();
        let start = local(&self.figures.zone, self.figures.window.start());
        let about = format!("{kind}, {} h from {start}", self.figures.hours);
        self.layout.heading(&input.name, &about);
    }

    fn verdict(&mut self) {
        let lines = wrapped(&verdict(self.figures), self.layout.width);
        for line in lines {
            self.layout.line(&coloured_words(&line));
        }
    }

    fn table(&mut self) {
        let label = if self.layout.width < 60 { 11 } else { 16 };
        let column = ((self.layout.width - label) / 2).min(26);
        let name =
            |wide: &'static str, narrow: &'static str| if self.layout.width < 60 { narrow } else { wide };
        let mut rows = Vec::new();
        rows.push(format!("{DIM}{:label$}{AS_IS:column$}{PROPOSED}{DIM:#}", ""));
        let scores = self.sides().map(|(_, side)| {
            let style = word_style(side.word());
            let shown = format!("{} {}", side.shown_score(), side.word().as_str());
            format!("{style}{shown:column$}{style:#}")
        });
        rows.push(format!("{:label$}{}", "evenness", scores.concat()));
        let mut peaks = |name: &str, peak: &dyn Fn(&Side) -> Peak| {
            let cells = self.sides().map(|(_, side)| {
                let Peak { at, n_starts } = peak(side);
                let n = thousands(n_starts.into());
                let when = format!("{n:>3} at {}", self.moment(at));
                format!("{:column$}", if when.chars().count() < column { when } else { format!("{n:>3}") })
            });
            rows.push(format!("{name:label$}{}", cells.concat()));
        };
        peaks(name("busiest minute", "minute"), &|side| side.peak_minute);
        peaks(name("busiest 15 min", "15 minutes"), &|side| side.peak_slot);
        peaks(name("busiest hour", "hour"), &|side| side.peak_hour);
        self.layout.line("");
        for row in rows {
            self.layout.line(&row);
        }
    }

    /// Starts by minute of the hour, which shows habits.
    fn minutes(&mut self) {
        const LABEL: usize = 10;
        let n_columns = if LABEL + 60 <= self.layout.width { 60 } else { 30 };
        let merged = |side: &Side| -> Vec<u32> {
            side.by_minute.chunks(60 / n_columns).map(|minutes| minutes.iter().sum()).collect()
        };
        let rows = self.sides().map(|(name, side)| (name, merged(side)));
        let most = rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
        self.layout.title("Starts by minute of the hour", "all hours together");
        for (name, counts) in rows {
            let mut row = String::new();
            for n in counts {
                let style = heat_style(heat(n, most));
                let _ = write!(row, "{style}{}{style:#}", column(n, most));
            }
            self.layout.line(&format!("{name:LABEL$}{row}"));
        }
        let quarter = n_columns / 4;
        let axis = format!("{:quarter$}{:quarter$}{:quarter$}{}", ":00", ":15", ":30", ":45");
        self.layout.line(&format!("{:LABEL$}{DIM}{axis}{DIM:#}", ""));
    }

    fn hours(&mut self) {
        const LABEL: usize = 6;
        const GAP: usize = 2;
        let by_hour = |side: &Side| -> Vec<u32> {
            let mut sums = vec![0; side.distribution.hours.len().min(24)];
            for day in side.distribution.hours.chunks(24) {
                sums.iter_mut().zip(day).for_each(|(sum, n)| *sum += n);
            }
            sums
        };
        let mut sides: Vec<(&str, Vec<u32>)> =
            self.sides().into_iter().map(|(name, side)| (name, by_hour(side))).collect();
        let days = if 24 < self.figures.hours { "all days together" } else { "" };
        if self.figures.keeps_hours() {
            // No job leaves its hour, so one chart serves both sides.
            sides.truncate(1);
            let same = ["the same on both sides", days].join(if days.is_empty() { "" } else { ", " });
            self.layout.title("Starts by hour", &same);
        } else {
            self.layout.title("Starts by hour", days);
        }
        let most = sides.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
        let n_digits = thousands(most.into()).len();
        if let [(_, counts)] = sides.as_slice()
            && 1 < counts.len()
            && counts.iter().all(|n| *n == most)
        {
            // Two dozen equal bars would add nothing.
            self.layout.line(&format!("{} in every hour", thousands(most.into())));
            return;
        }
        let column = ((self.layout.width - LABEL) / sides.len()).min(60) - GAP;
        let bar_width = column.saturating_sub(n_digits + 3);
        if 1 < sides.len() {
            let padded = |(name, _): &(&str, Vec<u32>)| format!("{name:w$}", w = column + GAP);
            let names = sides.iter().map(padded).collect::<Vec<_>>().concat();
            self.layout.line(&format!("{:LABEL$}{DIM}{names}{DIM:#}", ""));
        }
        let peaks: Vec<u32> = sides.iter().map(|(_, n)| n.iter().copied().max().unwrap_or(0)).collect();
        let n_rows = sides.first().map_or(0, |(_, counts)| counts.len());
        let mut is_marked = vec![false; sides.len()];
        for idx in 0..n_rows {
            let at = self.figures.as_is.distribution.hour_start(idx);
            let mut row = format!("{DIM}{:LABEL$}{DIM:#}", clock(&self.figures.zone, at));
            for (((_, counts), peak), is_marked) in sides.iter().zip(&peaks).zip(&mut is_marked) {
                let n = counts.get(idx).copied().unwrap_or(0);
                let is_peak = n == *peak && !*is_marked && 0 < n;
                *is_marked |= is_peak;
                row.push_str(&hour_cell(n, most, bar_width, is_peak, column + GAP));
            }
            self.layout.line(&row);
        }
    }

    fn heat_maps(&mut self) {
        const LABEL: usize = 4;
        const GAP: usize = 4;
        let maps = self.sides().map(|(name, side)| (name, heat_rows(side, &self.figures.zone)));
        let most = maps.iter().flat_map(|(_, rows)| rows).flat_map(|row| &row.1).copied().max().unwrap_or(0);
        let n_columns = maps.first().and_then(|(_, rows)| rows.first()).map_or(0, |row| row.1.len());
        let label = maps.iter().flat_map(|(_, rows)| rows).map(|row| row.0.len() + 1).max().unwrap_or(LABEL);
        let cell = if label + 2 * n_columns <= self.layout.width { 2 } else { 1 };
        let map_width = label + cell * n_columns;
        let axis = self.axis(label, cell, n_columns);
        let drawn = maps.map(|(name, rows)| {
            let mut lines = vec![format!("{:label$}{name:w$}", "", w = map_width - label)];
            lines.extend(rows.iter().map(|(row_label, counts)| {
                let cells: String = counts.iter().map(|n| heat_cell(*n, most, cell)).collect();
                format!("{DIM}{row_label:label$}{DIM:#}{cells}")
            }));
            lines.push(axis.clone());
            lines
        });
        if 24 < self.figures.hours {
            self.layout.title("Heat by day and hour", "busiest quarter of each hour");
        } else {
            self.layout.title("Heat by quarter hour", "");
        }
        let legend = self.legend(most, label);
        self.layout.line(&legend);
        let [before, after] = drawn;
        if 2 * map_width + GAP <= self.layout.width {
            for (one, other) in before.iter().zip(&after) {
                self.layout.line(&format!("{one}{:GAP$}{other}", ""));
            }
        } else {
            for line in before.iter().chain(&after) {
                self.layout.line(line);
            }
        }
    }

    /// The legend of the shades, as long as there is room for.
    fn legend(&self, most: u32, indent: usize) -> String {
        let levels = legend(most);
        let shown = |n_shades: usize, gap: &str| {
            let cells = levels.iter().map(|(level, range)| {
                let style = heat_style(*level);
                let shade = SHADES.get(*level).copied().unwrap_or(' ').to_string().repeat(n_shades);
                format!("{style}{shade}{style:#} {range}")
            });
            cells.collect::<Vec<_>>().join(gap)
        };
        let n_ranges: usize = levels.iter().map(|(_, range)| range.len()).sum();
        if indent + n_ranges + 5 * levels.len() + "starts".len() <= self.layout.width {
            return format!("{:indent$}{}  {DIM}starts{DIM:#}", "", shown(2, "  "));
        }
        if n_ranges + 3 * levels.len() <= self.layout.width {
            return shown(1, " ");
        }
        format!("{:indent$}{DIM}up to {} starts{DIM:#}", "", thousands(most.into()))
    }

    /// The axis under a heat map, with every third hour.
    fn axis(&self, label: usize, cell: usize, n_columns: usize) -> String {
        let mut axis = String::new();
        for idx in (0..n_columns).step_by(3) {
            let at = self.figures.as_is.distribution.hour_start(idx);
            let hour: String = clock(&self.figures.zone, at).chars().take(2).collect();
            let w = cell * 3.min(n_columns - idx);
            let _ = write!(axis, "{hour:w$}");
        }
        format!("{:label$}{DIM}{axis}{DIM:#}", "")
    }

    fn collisions(&mut self) {
        let collisions = &self.figures.as_is.collisions;
        if collisions.is_empty() {
            return;
        }
        let rows: Vec<String> = collisions.iter().map(|it| self.collision(it)).collect();
        self.layout.title("Worst minutes", AS_IS);
        for row in rows {
            self.layout.line(&row);
        }
    }

    fn collision(&self, collision: &Collision) -> String {
        let n_digits =
            self.figures.as_is.collisions.first().map_or(1, |it| thousands(it.n_starts.into()).len());
        let n = thousands(collision.n_starts.into());
        let when = self.moment(collision.at);
        let room = self.layout.width.saturating_sub(when.chars().count() + 2 + n_digits + 2);
        let names = names_in(&collision.jobs.iter().map(JobKey::as_str).collect::<Vec<_>>(), room);
        format!("{when}  {PEAK}{n:>n_digits$}{PEAK:#}  {names}")
    }

    fn changes(&mut self, kind: FleetFileKind, all: bool) {
        let figures = self.figures;
        let n_changes = figures.changes.len();
        if n_changes == 0 {
            return;
        }
        let n_shown = if all { n_changes } else { n_changes.min(N_CHANGES) };
        let title = format!(
            "Changes: {} of {}",
            thousands(to_u64(n_changes)),
            counted(to_u64(figures.n_jobs), "job")
        );
        self.layout.title(&title, "");
        let stays = match kind {
            FleetFileKind::Jobs => {
                "Each gets its own start time. Intervals and everything else stay the same."
            }
            FleetFileKind::Crontab | FleetFileKind::SystemCrontab => {
                "Only the minute changes. Hours, days and everything else stay the same."
            }
        };
        for line in wrapped(stays, self.layout.width) {
            self.layout.line(&format!("{DIM}{line}{DIM:#}"));
        }
        let shown: Vec<[String; 4]> =
            figures.changes.iter().take(n_shown).map(|it| change_cells(it, &figures.zone)).collect();
        let width = |idx: usize| shown.iter().map(|cells| cells[idx].chars().count()).max().unwrap_or(0);
        let rule = match width(1) {
            0 => 0,
            rule => rule + 2,
        };
        let (old, new) = (width(2), width(3));
        let room = self.layout.width.saturating_sub(rule + old + new + 7);
        let name = width(0).min(room);
        // A long name gets its own line instead of being cut to a stub.
        let has_own_line = room < width(0).min(16);
        for [job, every, from, to] in &shown {
            if has_own_line {
                self.layout.line(&cut(job, self.layout.width));
                self.layout.line(&format!("  {DIM}{every:rule$}{from}  →{DIM:#}  {CALM}{to}{CALM:#}"));
            } else {
                let job = cut(job, name);
                self.layout.line(&format!(
                    "{job:name$}  {DIM}{every:rule$}{from:old$}  →{DIM:#}  {CALM}{to}{CALM:#}"
                ));
            }
        }
        if n_shown < n_changes {
            let n = thousands(to_u64(n_changes - n_shown));
            self.layout.line(&format!("{DIM}… and {n} more; --plan lists them all{DIM:#}"));
        }
    }

    fn notes(&mut self, input: &FleetFile) {
        let notes = notes(input, self.figures);
        if notes.is_empty() {
            return;
        }
        self.layout.line("");
        for note in notes {
            for (idx, line) in wrapped(&note, self.layout.width - 2).iter().enumerate() {
                let mark = if idx == 0 { '·' } else { ' ' };
                self.layout.line(&format!("{DIM}{mark} {line}{DIM:#}"));
            }
        }
    }

    /// `03:00`, with the day if there are several.
    fn moment(&self, at: Timestamp) -> String {
        let zone = &self.figures.zone;
        if self.figures.hours <= 24 {
            clock(zone, at)
        } else {
            format!("{} {}", day(zone, at), clock(zone, at))
        }
    }
}

/// The job, its interval if it has one, its current time and its proposed time.
fn change_cells(change: &ScheduleChange, zone: &Zone) -> [String; 4] {
    let job = change.job.to_string();
    match &change.what {
        ChangeKind::Expression { old, new } => [job, String::new(), old.clone(), new.clone()],
        ChangeKind::Phase { interval, old, new } => {
            [job, format!("every {interval}"), clock(zone, *old), clock_with_seconds(zone, *new)]
        }
    }
}

/// As many names as fit, at most [`N_NAMES`], and the number of others.
fn names_in(names: &[&str], room: usize) -> String {
    let more = |n: usize| if n < names.len() { format!(" +{} more", names.len() - n) } else { String::new() };
    for n in (1..=names.len().min(N_NAMES)).rev() {
        let shown = names.iter().take(n).copied().collect::<Vec<_>>().join(", ") + &more(n);
        if shown.chars().count() <= room {
            return shown;
        }
    }
    let more = more(1);
    cut(names.first().unwrap_or(&""), room.saturating_sub(more.len())) + &more
}

fn hour_cell(n: u32, most: u32, bar_width: usize, is_peak: bool, width: usize) -> String {
    let bar = bar(n, most, bar_width);
    let count = thousands(n.into());
    let mark = if is_peak { " ◀" } else { "" };
    let space = if bar.is_empty() { "" } else { " " };
    let n_used = bar.chars().count() + space.len() + count.len() + mark.chars().count();
    let rest = width.saturating_sub(n_used);
    let (bar_style, count_style) = match (n, is_peak) {
        (0, _) => (DIM, DIM),
        (_, true) => (PEAK, PEAK),
        (_, false) => (CALM, Style::new()),
    };
    format!("{bar_style}{bar}{bar_style:#}{space}{count_style}{count}{mark}{count_style:#}{:rest$}", "")
}

fn heat_cell(n: u32, most: u32, width: usize) -> String {
    let level = heat(n, most);
    let style = heat_style(level);
    let shade = SHADES.get(level).copied().unwrap_or(' ').to_string().repeat(width);
    format!("{style}{shade}{style:#}")
}

/// The rows of the heat map: for one day, one per quarter of the hour. For more, one per day, with the busiest quarter of
/// each hour.
fn heat_rows(side: &Side, zone: &Zone) -> Vec<(String, Vec<u32>)> {
    let it = &side.distribution;
    let n_an_hour = it.width.n_an_hour();
    if 24 < it.hours.len() {
        let busiest = |hour: &[u32]| hour.iter().copied().max().unwrap_or(0);
        return it
            .slots
            .chunks(24 * n_an_hour)
            .enumerate()
            .map(|(idx, slots)| {
                let days = Duration::from_days(i64::try_from(idx).unwrap_or(0));
                (day(zone, it.window.start() + days), slots.chunks(n_an_hour).map(busiest).collect())
            })
            .collect();
    }
    (0..n_an_hour)
        .map(|row| {
            let counts = it.slots.iter().skip(row).step_by(n_an_hour).copied().collect();
            (format!(":{:02}", row * usize::from(it.width.as_mins())), counts)
        })
        .collect()
}

/// A line of the verdict, with score words in colour.
fn coloured_words(line: &str) -> String {
    let coloured = [ScoreWord::Good, ScoreWord::Fair, ScoreWord::Poor].into_iter().fold(
        line.to_owned(),
        |line, word| {
            let (style, word) = (word_style(word), word.as_str());
            line.replace(&format!("{word}{GLUE}"), &format!("{style}{word}{style:#} "))
        },
    );
    coloured.replace(GLUE, " ")
}

fn word_style(word: ScoreWord) -> Style {
    match word {
        ScoreWord::Good => AnsiColor::Green.on_default().bold(),
        ScoreWord::Fair => AnsiColor::Yellow.on_default().bold(),
        ScoreWord::Poor => AnsiColor::Red.on_default().bold(),
    }
}

/// `Wed 04`.
fn day(zone: &Zone, at: Timestamp) -> String {
    let whole = local(zone, at);
    let mut parts = whole.split(' ');
    let (name, date) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{name} {}", date.rsplit('-').next().unwrap_or_default())
}

fn clock_with_seconds(zone: &Zone, at: Timestamp) -> String {
    format!("{}:{:02}", clock(zone, at), zone.local(at).second_of_day % 60)
}
