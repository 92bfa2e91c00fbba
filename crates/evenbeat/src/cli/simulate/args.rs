//! Arguments of `evenbeat simulate`.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, ValueEnum};
use evenbeat_core::ids::{NodeName, Pool, Site};
use evenbeat_core::nearest::shortened;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::{AddedJobs, node_names};

use crate::cli::analyze::{WIDTH_MAX, WIDTH_MIN};

/// Longest simulation, in days.
pub const DAYS_MAX: i64 = 366;

/// Largest number of nodes.
const NODES_MAX: usize = 100;

/// Arguments of `evenbeat simulate`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that people type")]
#[command(after_help = "\
Examples:
  evenbeat simulate fleet.toml
  evenbeat simulate fleet.toml --capacity 40 --compare \"--order first-come\"
  evenbeat simulate fleet.toml --target 99.9%
  evenbeat simulate fleet.toml --add \"400 every 6h taking 2m pool crawl\"
  evenbeat simulate --capacity crawl=12

A run takes its job's `estimate`, or else its `max_expected_duration`, or
else 30 s, varied by --spread.

Without a FILE, the fleet comes from a server. Its jobs keep their times
unless --balance chooses new ones, and runs take as long as measured. Nodes,
capacity and limits are the server's own unless a setup option changes them.

Exits with 1 if no capacity reaches the target.")]
pub struct SimulateArgs {
    /// Job file or crontab (`-` for standard input) [default: the current fleet of a server].
    pub file: Option<PathBuf>,
    /// Treat the file as a crontab [default: detect the format].
    #[arg(long, conflicts_with = "jobs", requires = "file")]
    pub crontab: bool,
    /// Treat the file as a system crontab, with a user before each command (`/etc/crontab`).
    #[arg(long, conflicts_with = "jobs", requires = "file")]
    pub system: bool,
    /// Treat the file as a job file.
    #[arg(long, requires = "file")]
    pub jobs: bool,
    /// Server address: `http://HOST:PORT` or `unix:PATH` [default: the socket of your own server if it exists, otherwise
    /// `http://127.0.0.1:8060`].
    #[arg(
        long,
        env = "EVENBEAT_SERVER",
        hide_env_values = true,
        value_name = "ADDRESS",
        help_heading = "Server options"
    )]
    pub server: Option<String>,
    /// Number of days to simulate.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=DAYS_MAX))]
    pub days: i64,
    /// Start at this instant (RFC 3339) [default: the next quarter hour].
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<Timestamp>,
    /// The nodes and limits to simulate.
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Compare with another setup, given as the setup options that differ, such as `--compare "--capacity 12"`. Can be
    /// repeated.
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        conflicts_with = "add",
        help_heading = "What-if options"
    )]
    pub compare: Vec<String>,
    /// Find the smallest capacity per node that keeps data fresh for this share of the time, such as `99.9%`. With --add,
    /// the freshness that the fleet must keep [default with --add: 99%].
    #[arg(long, value_name = "PERCENT", value_parser = target, allow_negative_numbers = true, help_heading = "What-if options")]
    pub target: Option<f64>,
    /// Add made-up jobs, such as `--add "400 every 6h taking 2m"` (also `within T`, `pool P`, `site S`, `cost N`), and show
    /// what breaks first and how many could be added. Can be repeated.
    #[arg(long, value_name = "JOBS", help_heading = "What-if options")]
    pub add: Vec<AddedJobs>,
    /// Maximum width of the output [default: width of the terminal, or 80].
    #[arg(long, value_name = "COLS", value_parser = clap::value_parser!(u16).range(i64::from(WIDTH_MIN)..=i64::from(WIDTH_MAX)), help_heading = "Output options")]
    pub width: Option<u16>,
    /// Print one JSON document instead of text.
    #[arg(long, help_heading = "Output options")]
    pub json: bool,
    /// Do not show progress. It is only shown if standard error is a terminal.
    #[arg(short, long, help_heading = "Output options")]
    pub quiet: bool,
}

/// Nodes, capacity and limits. Every option has a default.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Setup options")]
pub struct SetupArgs {
    /// Capacity per node in units: of every pool (`40`) or of one (`crawl=12`). Can be repeated [default: what the fleet
    /// needs at about 70% use].
    #[arg(long, value_name = "[POOL=]N", value_parser = capacity)]
    pub capacity: Vec<CapacityArg>,
    /// Number of nodes, or their names (`n1,gpu-1`) if jobs are bound to some [default: 1].
    #[arg(long, value_name = "N|NAMES", value_parser = nodes)]
    pub nodes: Option<NodesArg>,
    /// Maximum number of concurrent runs of a site, across nodes. Can be repeated [default: no limit].
    #[arg(long, value_name = "NAME=N", value_parser = site)]
    pub site: Vec<SiteArg>,
    /// How much run times vary around the expected value: 0.3 is about a third up or down [default: 0.3].
    #[arg(long, value_name = "X", value_parser = spread, allow_negative_numbers = true)]
    pub spread: Option<f64>,
    /// Percentage of runs that fail [default: 0].
    #[arg(long, value_name = "PERCENT", value_parser = failing, allow_negative_numbers = true)]
    pub failing: Option<f64>,
    /// Simulate an outage that begins START after the start and lasts LENGTH, such as `2d4h+2h`. Can be repeated
    /// [default: none].
    #[arg(long, value_name = "START+LENGTH", value_parser = outage)]
    pub outage: Vec<OutageArg>,
    /// Random seed for run times and failures [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Which job goes first when not all can start [default: latest-start].
    #[arg(long, value_enum)]
    pub order: Option<OrderArg>,
    /// Do not hold room for jobs that will soon need it more.
    #[arg(long)]
    pub no_lookahead: bool,
    /// How to choose the start times of interval jobs [default: phase].
    #[arg(long, value_enum)]
    pub balance: Option<BalanceArg>,
}

/// The order in which waiting jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// The job that is closest to missing its deadline.
    LatestStart,
    /// The job that became due first.
    FirstCome,
    /// By minute, and by name within a minute, like cron.
    ByMinute,
}

/// How jobs are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BalanceArg {
    /// Where all occurrences together meet the least load.
    Phase,
    /// In the least loaded slot of the next day.
    LeastLoaded,
    /// No balancing: jobs with equal intervals start together.
    None,
}

/// A `--capacity` value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityArg {
    /// The pool. `None` means every pool.
    pub pool: Option<Pool>,
    pub units: u32,
}

/// A `--nodes` value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesArg(pub Vec<NodeName>);

/// A `--site` value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteArg {
    pub site: Site,
    pub max_at_once: u32,
}

/// An `--outage` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageArg {
    /// Time from the start of the simulation.
    pub start: Duration,
    pub length: Duration,
}

impl SetupArgs {
    /// This setup, with every option that `other` sets replaced.
    #[must_use]
    pub(super) fn but(&self, other: &SetupArgs) -> SetupArgs {
        fn either<T: Clone>(this: &[T], other: &[T]) -> Vec<T> {
            if other.is_empty() { this.to_vec() } else { other.to_vec() }
        }
        SetupArgs {
            capacity: either(&self.capacity, &other.capacity),
            nodes: other.nodes.clone().or_else(|| self.nodes.clone()),
            site: either(&self.site, &other.site),
            spread: other.spread.or(self.spread),
            failing: other.failing.or(self.failing),
            outage: either(&self.outage, &other.outage),
            seed: other.seed.or(self.seed),
            order: other.order.or(self.order),
            no_lookahead: self.no_lookahead || other.no_lookahead,
            balance: other.balance.or(self.balance),
        }
    }
}

/// The text of one `--compare`.
#[derive(Debug, Parser)]
#[command(name = "--compare", no_binary_name = true, disable_help_flag = true)]
struct CompareArgs {
    #[command(flatten)]
    setup: SetupArgs,
}

/// Parses the text of a `--compare`.
pub(super) fn compared(text: &str) -> Result<SetupArgs, String> {
    let example = "write it as `--compare \"--capacity 12\"`";
    if text.trim().is_empty() {
        return Err(format!("no options given ({example})"));
    }
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    CompareArgs::try_parse_from(words).map(|it| it.setup).map_err(|error| compare_fault(&error, example))
}

/// Options that are the same for all setups.
const OUTSIDE: [&str; 8] = ["days", "from", "target", "add", "json", "quiet", "compare", "width"];

/// The error of a `--compare` in one line. Clap's own text has a usage line that makes no sense here.
fn compare_fault(error: &clap::Error, example: &str) -> String {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let option = context(ContextKind::InvalidArg).unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument {
        let name = option.trim_start_matches('-');
        if OUTSIDE.contains(&name) {
            return format!("`{option}` is the same for all setups (write it outside of --compare)");
        }
        return match context(ContextKind::SuggestedArg) {
            Some(near) => format!("unknown option `{option}` (did you mean `{near}`?)"),
            None if !option.starts_with('-') => {
                format!("`{option}` does not belong to an option ({example})")
            }
            None => {
                format!("unknown option `{option}` (see \"Setup options\" in `evenbeat simulate --help`)")
            }
        };
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn capacity(text: &str) -> Result<CapacityArg, String> {
    let (pool, number) = match text.split_once('=') {
        Some((pool, number)) => (Some(pool.parse::<Pool>().map_err(|error| error.to_string())?), number),
        None => (None, text),
    };
    let units = number.trim().parse().ok().filter(|units| 0 < *units && *units <= 1_000_000);
    let units = units.ok_or_else(|| {
        format!("`{}` is not a capacity (write 1 to 1000000 units: `40` or `crawl=12`)", shortened(number))
    })?;
    Ok(CapacityArg { pool, units })
}

fn nodes(text: &str) -> Result<NodesArg, String> {
    let way_out = format!("write a number from 1 to {NODES_MAX}, or names: `n1,gpu-1`");
    if text.chars().all(|it| it.is_ascii_digit()) {
        let n = text.parse().ok().filter(|n| (1..=NODES_MAX).contains(n));
        return n
            .map(|n| NodesArg(node_names(n)))
            .ok_or_else(|| format!("not a number of nodes ({way_out})"));
    }
    let names = text.split(',').map(|name| name.trim().parse::<NodeName>());
    let names = names.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    match names.len() {
        n if n != sorted.len() => Err("a node is named twice (write each name once)".to_owned()),
        n if NODES_MAX < n => Err(format!("too many nodes ({way_out})")),
        _ => Ok(NodesArg(names)),
    }
}

fn site(text: &str) -> Result<SiteArg, String> {
    let way_out = "write a site and its maximum of concurrent runs: `shop.example=2`";
    let (name, number) = text.split_once('=').ok_or_else(|| format!("the limit is missing ({way_out})"))?;
    let max_at_once = number.trim().parse().ok().filter(|most| 0 < *most);
    Ok(SiteArg {
        site: name.trim().parse().map_err(|error: evenbeat_core::ids::NameError| error.to_string())?,
        max_at_once: max_at_once
            .ok_or_else(|| format!("`{}` is not a limit ({way_out})", shortened(number)))?,
    })
}

fn spread(text: &str) -> Result<f64, String> {
    let spread = text.trim().parse().ok().filter(|spread| (0.0..=2.0).contains(spread));
    spread.ok_or_else(|| "not a number from 0 to 2 (0.3 is about a third up or down)".to_owned())
}

fn failing(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a percentage from 0 to 100 (write `5` or `0.5%`)".to_owned())
}

fn target(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| 0.0 < *share && *share <= 1.0);
    share.ok_or_else(|| "not a percentage above 0 and up to 100 (write `99.9%`)".to_owned())
}

/// `99.9%` and `99.9` are 0.999.
fn percent(text: &str) -> Option<f64> {
    text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok().map(|percent| percent / 100.0)
}

fn outage(text: &str) -> Result<OutageArg, String> {
    let (start, length) = text.split_once('+').ok_or_else(|| {
        "an outage needs a start and a length (write `2d4h+2h`: two hours, after two days and four hours)"
            .to_owned()
    })?;
    let read = |text: &str| text.parse::<Duration>().map_err(|error| error.to_string());
    // Zero is not a valid duration, but it is a valid start.
    let start = if start.trim().trim_end_matches(['s', 'm', 'h', 'd']) == "0" {
        Duration::ZERO
    } else {
        read(start)?
    };
    Ok(OutageArg { start, length: read(length)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = compared(text).unwrap_err();
        assert_eq!(error, expected, "{text}");
    }

    #[test]
    fn a_comparison_is_told_what_is_wrong_with_it() {
        check("", "no options given (write it as `--compare \"--capacity 12\"`)");
        check("--capcity 12", "unknown option `--capcity` (did you mean `--capacity`?)");
        check("--days 3", "`--days` is the same for all setups (write it outside of --compare)");
        check("12", "`12` does not belong to an option (write it as `--compare \"--capacity 12\"`)");
        check("--xyz", "unknown option `--xyz` (see \"Setup options\" in `evenbeat simulate --help`)");
        let said = compared("--capacity 0").unwrap_err();
        assert!(said.contains("`0` is not a capacity"), "{said}");
    }

    #[test]
    fn a_comparison_changes_only_what_it_names() {
        let base = compared("--capacity 12 --seed 3 --site shop=2").unwrap();
        let other = base.but(&compared("--capacity crawl=4 --no-lookahead").unwrap());
        assert_eq!(other.capacity, [CapacityArg { pool: Some("crawl".parse().unwrap()), units: 4 }]);
        assert_eq!((other.seed, other.no_lookahead, other.site.len()), (Some(3), true, 1));
    }

    #[test]
    fn outages_have_a_place_and_a_length() {
        let at = |text: &str| outage(text).map(|it| (it.start.to_string(), it.length.to_string()));
        assert_eq!(at("2d4h+2h"), Ok(("2d4h".into(), "2h".into())));
        assert_eq!(at("0+30m"), Ok(("0s".into(), "30m".into())));
        for text in ["2h", "2h+", "+2h", "x+2h", "2h+0s"] {
            assert!(at(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_written_as_people_do() {
        let near = |share: Result<f64, String>, expected: f64| (share.unwrap() - expected).abs() < 1e-12;
        assert!(near(target("99.9%"), 0.999) && near(target("100"), 1.0) && near(failing("0.5 %"), 0.005));
        for text in ["120%", "0", "-1", "most", "NaN"] {
            assert!(target(text).is_err(), "{text}");
        }
    }
}
