//! A simulation as text: the headline first, then figures, charts and tables.

use anstyle::{AnsiColor, Style};
use evenbeat_core::time::Duration;
use evenbeat_whatif::{Group, Report};

use super::figures::{SetupResult, SimulationFigures};
use super::sentences::{added, assumed, carried_by, found, headline, notes};
use super::timeline::Timeline;
use crate::cli::chart::{counted, thousands, to_u64, wrapped};
use crate::cli::format::{BOLD, DIM, NOTICE, clock, local};
use crate::cli::layout::TextLayout;
use crate::cli::table::{Cell, list, side_by_side};
use crate::views::whatif::{length, percent};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const CALM: Style = AnsiColor::Cyan.on_default();

/// Minimum width at which related figures share a line.
const NARROW: usize = 68;

/// Number of rows shown of a table.
const N_ROWS: usize = 12;

/// Lowest freshness that counts as good.
const FRESH: f64 = 0.999;
/// Lowest freshness that counts as fair.
const FAIR: f64 = 0.99;

/// The whole report, in lines of at most this width.
pub(super) fn render(figures: &SimulationFigures, width: usize) -> String {
    let mut page = SimulationPage { figures, layout: TextLayout::new(width) };
    page.heading();
    let Some(given) = figures.given() else { return page.layout.text };
    page.answers(given);
    if 0 < given.report.all.n_runs || 1 < figures.setups.len() {
        if 1 < figures.setups.len() {
            page.comparison();
        } else {
            page.table(&given.report);
        }
        page.timelines(given);
        page.pools(&given.report);
        page.sites(&given.report);
        page.worst(&given.report);
    }
    page.notes();
    page.layout.text
}

struct SimulationPage<'a> {
    figures: &'a SimulationFigures,
    layout: TextLayout,
}

impl SimulationPage<'_> {
    fn heading(&mut self) {
        let figures = self.figures;
        let start = local(&figures.zone, figures.window.start());
        let days = counted(u64::try_from(figures.days).unwrap_or(0), "day");
        let about = format!("{}, {days} from {start}", figures.origin.as_str());
        self.layout.heading(&figures.file, &about);
    }

    /// The answers to --target and --add, then the headline.
    fn answers(&mut self, given: &SetupResult) {
        let figures = self.figures;
        for lived in &figures.setups {
            let Some(smallest) = &lived.smallest else { continue };
            let whose = match &lived.differs {
                _ if figures.setups.len() == 1 => String::new(),
                Some(differs) => format!("With {differs}: "),
                None => "As given: ".to_owned(),
            };
            let style = if smallest.is_reached() { BOLD } else { BAD };
            for sentence in found(smallest, lived.n_nodes) {
                self.layout.wrapped(&format!("{whose}{sentence}"), style);
            }
        }
        if let Some(it) = &figures.added {
            for sentence in added(figures, it) {
                self.layout.wrapped(&sentence, BOLD);
            }
        }
        if given.smallest.is_some() || figures.added.is_some() {
            self.layout.line("");
        }
        let style =
            if given.report.all.n_runs == 0 { Style::new() } else { fresh_style(given.report.all.freshness) };
        self.layout.wrapped(&headline(figures, given), style);
        if let Some(sentence) = assumed(given) {
            self.layout.wrapped(&sentence, DIM);
        }
    }

    fn table(&mut self, report: &Report) {
        let before = self.figures.added.as_ref().map(|it| &it.before);
        if let Some(before) = before {
            let names = ["without them".to_owned(), "with them".to_owned()];
            let rows = rows(&[before, report], None, false);
            self.layout.line("");
            for line in side_by_side(&names, &rows, self.layout.width) {
                self.layout.line(&line);
            }
            return;
        }
        self.layout.line("");
        for (name, cells) in rows(&[report], None, NARROW <= self.layout.width) {
            let cells: String = cells.iter().map(styled).collect();
            self.layout.line(&format!("{DIM}{name:17}{DIM:#}{cells}"));
        }
    }

    fn comparison(&mut self) {
        let setups = &self.figures.setups;
        let names: Vec<String> =
            setups.iter().map(|it| it.differs.clone().unwrap_or_else(|| "as given".to_owned())).collect();
        let reports: Vec<&Report> = setups.iter().map(|it| &it.report).collect();
        let rows = rows(&reports, Some(setups), false);
        self.layout.title("Side by side", "* best");
        for line in side_by_side(&names, &rows, self.layout.width) {
            self.layout.line(&line);
        }
    }

    /// The timelines of use, queue and late jobs.
    fn timelines(&mut self, given: &SetupResult) {
        const LABEL: usize = 7;
        const LEGEND: usize = 18;
        let points = &given.report.points;
        let room = self.layout.width.saturating_sub(LABEL + LEGEND);
        let values = |value: &dyn Fn(usize) -> f64| -> Timeline {
            Timeline::of(&(0..points.len()).map(value).collect::<Vec<_>>(), room)
        };
        let capacity = f64::from(given.report.all.capacity.max(1));
        let in_use = values(&|idx| points.get(idx).map_or(0.0, |it| it.in_use));
        let queue = values(&|idx| points.get(idx).map_or(0.0, |it| it.queue));
        let late = values(&|idx| points.get(idx).map_or(0.0, |it| f64::from(it.n_late)));
        let title = if 1 < self.figures.setups.len() { "Over time, as given" } else { "Over time" };
        self.layout.title(
            title,
            &format!("each column is {} and shows its busiest quarter hour", length(in_use.step)),
        );
        let used = percent(in_use.highest() / capacity);
        let mut row = |name: &str, it: &Timeline, most: f64, style: Style, legend: String| {
            let drawn = it.drawn(most);
            self.layout.line(&format!("{name:LABEL$}{style}{drawn}{style:#}  {DIM}{legend}{DIM:#}"));
        };
        row("use", &in_use, capacity, CALM, format!("up to {used}"));
        let waiting = match queue.highest() {
            highest if highest < 0.05 => "none wait".to_owned(),
            highest if highest < 99.95 => format!("up to {highest:.1} wait"),
            highest => format!("up to {} wait", thousands(whole(highest))),
        };
        row("queue", &queue, queue.highest(), NOTICE, waiting);
        let n_late = points.iter().map(|it| it.n_late).max().unwrap_or(0);
        let latest =
            if n_late == 0 { "never".to_owned() } else { format!("up to {}", thousands(n_late.into())) };
        row("late", &late, late.highest(), BAD, latest);
        let axis = self.axis(&in_use);
        self.layout.line(&format!("{:LABEL$}{DIM}{axis}{DIM:#}", ""));
    }

    /// The axis: days, or hours if there are few days, as many as there is room for.
    fn axis(&self, timeline: &Timeline) -> String {
        let zone = &self.figures.zone;
        let n_columns = timeline.columns.len();
        let at = |idx: usize| self.figures.window.start() + timeline.step * i64::try_from(idx).unwrap_or(0);
        let is_by_hour = self.figures.days <= 2;
        let name = |idx: usize| {
            if is_by_hour { clock(zone, at(idx)) } else { day(&local(zone, at(idx))) }
        };
        let is_mark = |idx: usize| {
            let (this, before) = (zone.local(at(idx)), zone.local(at(idx) - timeline.step));
            let third_hour = |second: u32| second / (3 * 3_600);
            if is_by_hour {
                third_hour(this.second_of_day) != third_hour(before.second_of_day)
            } else {
                this.date != before.date
            }
        };
        let marks: Vec<usize> = (0..n_columns).filter(|idx| is_mark(*idx)).collect();
        let distance =
            marks.windows(2).filter_map(|it| Some(it.last()? - it.first()?)).min().unwrap_or(n_columns);
        // Use `Wed 04` if it fits, else `Wed`, else only some of the days.
        let n_letters = if (4..7).contains(&distance) && !is_by_hour { 3 } else { 6 };
        let mut axis = String::new();
        for idx in marks {
            let label: String = name(idx).chars().take(n_letters).collect();
            let n_written = axis.chars().count();
            let has_room = n_written == 0 || n_written < idx;
            if has_room && idx + label.chars().count() <= n_columns {
                axis.push_str(&" ".repeat(idx.saturating_sub(n_written)));
                axis.push_str(&label);
            }
        }
        axis
    }

    fn pools(&mut self, report: &Report) {
        if report.pools.len() < 2 {
            return;
        }
        let groups: Vec<(String, &Group)> =
            report.pools.iter().map(|(name, it)| (name.to_string(), it)).collect();
        self.groups("Pools", &groups);
    }

    fn sites(&mut self, report: &Report) {
        let groups: Vec<(String, &Group)> =
            report.sites.iter().map(|(name, it)| (name.to_string(), it)).collect();
        if !groups.is_empty() {
            self.groups("Sites", &groups);
        }
    }

    fn groups(&mut self, title: &str, groups: &[(String, &Group)]) {
        let mut worst_first: Vec<&(String, &Group)> = groups.iter().collect();
        // Equally fresh groups stay sorted by name.
        worst_first.sort_by(|one, other| one.1.freshness.total_cmp(&other.1.freshness));
        let has_capacity = worst_first.iter().any(|it| it.1.utilisation.is_some());
        let mut heading = vec!["", "fresh", "late", "runs", "jobs"];
        if has_capacity {
            heading.extend(["used", "units"]);
        }
        heading.extend(["at once", "p99 wait", "longest", "missed"]);
        let row = |(name, it): &(String, &Group)| {
            let mut cells = vec![
                Cell::plain(name.clone()),
                Cell::styled(percent(it.freshness), fresh_style(it.freshness)),
                Cell::plain(thousands(it.n_late)),
                Cell::plain(thousands(it.n_runs)),
                Cell::plain(thousands(to_u64(it.n_jobs))),
            ];
            if has_capacity {
                cells.push(Cell::plain(it.utilisation.map_or(String::new(), percent)));
                cells.push(Cell::plain(thousands(it.capacity.into())));
            }
            cells.extend([
                Cell::plain(thousands(it.peak_running.into())),
                Cell::plain(length(it.wait.p99)),
                Cell::plain(length(it.wait.longest)),
                Cell::plain(thousands(it.n_recorded())),
            ]);
            cells
        };
        let rows: Vec<Vec<Cell>> = worst_first.iter().take(N_ROWS).map(|it| row(it)).collect();
        let n_more = groups.len().saturating_sub(N_ROWS);
        self.layout.title(title, if 0 < n_more { "least fresh first" } else { "" });
        for line in list(&heading, &rows, self.layout.width) {
            self.layout.line(&line);
        }
        if 0 < n_more {
            self.layout.line(&format!(
                "{DIM}… and {} more; --json lists them all{DIM:#}",
                thousands(to_u64(n_more))
            ));
        }
    }

    fn worst(&mut self, report: &Report) {
        if report.worst.is_empty() {
            return;
        }
        let rows: Vec<Vec<Cell>> = report
            .worst
            .iter()
            .map(|it| {
                let late_for = Cell::styled(length(it.late_for.max(Duration::ZERO)), BAD);
                vec![Cell::plain(it.key.to_string()), late_for, Cell::plain(thousands(it.n_late))]
            })
            .collect();
        let note = match report.n_late_jobs {
            1 => "1 job was late".to_owned(),
            n => format!("{} were late", counted(to_u64(n), "job")),
        };
        self.layout.title("Worst jobs", &note);
        for line in list(&["", "late for", "times"], &rows, self.layout.width) {
            self.layout.line(&line);
        }
    }

    fn notes(&mut self) {
        let notes = notes(self.figures);
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
}

/// Which values are better.
#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
    Neither,
}

/// The main figures: one row per figure, one cell per report. Related figures share a row if there is room.
fn rows(
    reports: &[&Report],
    setups: Option<&[SetupResult]>,
    has_room: bool,
) -> Vec<(&'static str, Vec<Cell>)> {
    let mut rows: Vec<(&'static str, Vec<Cell>)> = Vec::new();
    if let Some(setups) = setups {
        rows.push(("runs on", setups.iter().map(|it| Cell::plain(short_carried_by(it))).collect()));
    }
    let mut row = |name, better: Better, value: &dyn Fn(&Group) -> (f64, String, Style)| {
        let values: Vec<(f64, String, Style)> = reports.iter().map(|it| value(&it.all)).collect();
        let numbers = || values.iter().map(|it| it.0);
        let best = match better {
            Better::More => numbers().reduce(f64::max),
            Better::Less => numbers().reduce(f64::min),
            Better::Neither => None,
        };
        let is_all_same = numbers().all(|it| Some(it) == numbers().next());
        let is_best = |value: f64| setups.is_some() && !is_all_same && best == Some(value);
        let cell = |(value, text, style): &(f64, String, Style)| {
            if is_best(*value) {
                Cell::styled(format!("{text} *"), GOOD)
            } else {
                Cell::styled(text.clone(), *style)
            }
        };
        rows.push((name, values.iter().map(cell).collect()));
    };
    let plain = Style::new();
    row("fresh", Better::More, &|it| (it.freshness, percent(it.freshness), fresh_style(it.freshness)));
    row("late runs", Better::Less, &|it| {
        #[expect(clippy::cast_precision_loss, reason = "compared, not counted with")]
        let n = it.n_late as f64;
        let of = if setups.is_none() && reports.len() == 1 {
            format!(" of {}", thousands(it.n_runs))
        } else {
            String::new()
        };
        (n, format!("{}{of}", thousands(it.n_late)), plain)
    });
    if 1 < reports.len() {
        row("runs", Better::Neither, &|it| (0.0, thousands(it.n_runs), plain));
    }
    row("capacity used", Better::Neither, &|it| (0.0, it.utilisation.map_or(String::new(), percent), plain));
    row("runs at once", Better::Neither, &|it| {
        (0.0, format!("up to {}", thousands(it.peak_running.into())), plain)
    });
    row("starts a minute", Better::Less, &|it| {
        (f64::from(it.peak_starts), format!("up to {}", thousands(it.peak_starts.into())), plain)
    });
    if has_room {
        row("waited", Better::Less, &|it| {
            let wait = it.wait;
            let all = [wait.median, wait.p99, wait.longest].map(length);
            (0.0, format!("median {}, p99 {}, longest {}", all[0], all[1], all[2]), plain)
        });
    } else {
        row("waited, median", Better::Less, &|it| {
            (it.wait.median.as_millis_f64(), length(it.wait.median), plain)
        });
        row("waited, p99", Better::Less, &|it| (it.wait.p99.as_millis_f64(), length(it.wait.p99), plain));
        row("waited, longest", Better::Less, &|it| {
            (it.wait.longest.as_millis_f64(), length(it.wait.longest), plain)
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "compared, not counted with")]
    if has_room {
        row("not run", Better::Neither, &|it| {
            (0.0, format!("{} skipped, {} missed", thousands(it.n_skipped), thousands(it.n_missed)), plain)
        });
    } else {
        row("skipped", Better::Less, &|it| (it.n_skipped as f64, thousands(it.n_skipped), plain));
        row("missed", Better::Less, &|it| (it.n_missed as f64, thousands(it.n_missed), plain));
    }
    rows
}

/// A short form of the setup: `2 nodes, 40 units`, `1 node, 4 + 2`.
fn short_carried_by(lived: &SetupResult) -> String {
    match lived.capacity.len() {
        0 | 1 => carried_by(lived).replace(" with ", ", ").replace(" each", ""),
        _ => {
            let units: Vec<String> = lived.capacity.values().map(ToString::to_string).collect();
            format!("{}, {}", counted(to_u64(lived.n_nodes), "node"), units.join(" + "))
        }
    }
}

fn styled(cell: &Cell) -> String {
    let style = cell.style;
    format!("{style}{}{style:#}", cell.text)
}

fn fresh_style(freshness: f64) -> Style {
    match freshness {
        it if FRESH <= it => GOOD,
        it if FAIR <= it => AnsiColor::Yellow.on_default().bold(),
        _ => BAD,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float casts to the nearest u64"
)]
fn whole(n: f64) -> u64 {
    n.round() as u64
}

/// `Wed 04` of `Wed 2026-02-04 11:00 CET`.
fn day(whole: &str) -> String {
    let mut parts = whole.split(' ');
    let (name, date) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{name} {}", date.rsplit('-').next().unwrap_or_default())
}
