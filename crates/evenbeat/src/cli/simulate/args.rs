//! What can be typed after `evenbeat simulate`.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, ValueEnum};
use evenbeat_core::ids::{NodeName, Pool, Site};
use evenbeat_core::nearest::shortened;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::{AddedJobs, node_names};

use crate::cli::analyze::{WIDTH_MAX, WIDTH_MIN};

/// The longest story, in days.
pub const DAYS_MAX: i64 = 366;

/// As many nodes as are told apart here.
const NODES_MAX: usize = 100;

/// Everything after `evenbeat simulate`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that people type")]
#[command(after_help = "\
Examples:
  evenbeat simulate fleet.toml
  evenbeat simulate fleet.toml --capacity 40 --compare \"--order first-come\"
  evenbeat simulate fleet.toml --target 99.9%
  evenbeat simulate fleet.toml --add \"400 every 6h taking 2m pool crawl\"
  evenbeat simulate --capacity crawl=12

Runs take their `estimate`, else their `max_expected_duration`, else 30 s,
more or less (--spread).

Without a FILE the fleet is that of a server: its jobs keep their times
(--balance chooses new ones), runs take as long as they were measured, and
nodes, capacity and limits are its own, unless the set-up says otherwise.

Ends with 1 if no capacity reaches the target.")]
pub struct SimulateArgs {
    /// A job file or a crontab; `-` is standard input. If there is none, the fleet of a server, as it is.
    pub file: Option<PathBuf>,
    /// It is a crontab, whatever it looks like.
    #[arg(long, conflicts_with = "jobs", requires = "file")]
    pub crontab: bool,
    /// It is a crontab with a user before each command, such as `/etc/crontab`.
    #[arg(long, conflicts_with = "jobs", requires = "file")]
    pub system: bool,
    /// It is a job file, whatever it looks like.
    #[arg(long, requires = "file")]
    pub jobs: bool,
    /// The server whose fleet it is: `http://HOST:PORT` or `unix:PATH`. By default the socket of your own server if
    /// there is one, else `http://127.0.0.1:8060`.
    #[arg(long, env = "EVENBEAT_SERVER", hide_env_values = true, value_name = "PLACE")]
    pub server: Option<String>,
    /// How many days to live through.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=DAYS_MAX))]
    pub days: i64,
    /// Begin at this instant (RFC 3339). Default: the next quarter of an hour.
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<Timestamp>,
    /// What carries the fleet.
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Another set-up side by side: the options under "Set-up" that differ, in one text, such as
    /// `--compare "--capacity 12"`. Can be repeated.
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        conflicts_with = "add",
        help_heading = "Questions"
    )]
    pub compare: Vec<String>,
    /// Find the smallest capacity a node that keeps data fresh for this share of time, such as
    /// `99.9%`. With --add: what must still hold [there: 99%].
    #[arg(long, value_name = "PERCENT", value_parser = target, allow_negative_numbers = true, help_heading = "Questions")]
    pub target: Option<f64>,
    /// Add made-up jobs, such as `--add "400 every 6h taking 2m"` (also `pool P`, `site S`, `cost N`),
    /// and say what breaks first and how many could be added before. Can be repeated.
    #[arg(long, value_name = "JOBS", help_heading = "Questions")]
    pub add: Vec<AddedJobs>,
    /// How wide the text may be. Default: the width of the terminal, or 80.
    #[arg(long, value_name = "COLS", value_parser = clap::value_parser!(u16).range(i64::from(WIDTH_MIN)..=i64::from(WIDTH_MAX)), help_heading = "Output")]
    pub width: Option<u16>,
    /// Print one JSON document instead of text.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show no progress. There is none anyway where standard error is no terminal.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// What carries a fleet. Everything may be left out.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Set-up")]
pub struct SetupArgs {
    /// Units a node: of every pool (`40`) or of one (`crawl=12`). Can be repeated [default: what the
    /// fleet needs, so that about 70% is used].
    #[arg(long, value_name = "[POOL=]N", value_parser = capacity)]
    pub capacity: Vec<CapacityArg>,
    /// How many nodes, or their names (`n1,gpu-1`) where jobs are bound to some [default: 1].
    #[arg(long, value_name = "N|NAMES", value_parser = nodes)]
    pub nodes: Option<NodesArg>,
    /// Largest number of runs of this site at once, across nodes. Can be repeated [default: no limit].
    #[arg(long, value_name = "NAME=N", value_parser = site)]
    pub site: Vec<SiteArg>,
    /// How far lengths of runs lie from what is expected: 0.3 is about a third up or down [default: 0.3].
    #[arg(long, value_name = "X", value_parser = spread, allow_negative_numbers = true)]
    pub spread: Option<f64>,
    /// How many of 100 runs fail [default: 0].
    #[arg(long, value_name = "PERCENT", value_parser = failing, allow_negative_numbers = true)]
    pub failing: Option<f64>,
    /// Nothing runs from START after the beginning for LENGTH, such as `2d4h+2h`. Can be repeated
    /// [default: none].
    #[arg(long, value_name = "START+LENGTH", value_parser = outage)]
    pub outage: Vec<OutageArg>,
    /// Another draw of lengths and failures [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Who goes first when not all can start [default: latest-start].
    #[arg(long, value_enum)]
    pub order: Option<OrderArg>,
    /// Keep no room for what will soon need it more.
    #[arg(long)]
    pub no_lookahead: bool,
    /// How intervals get their phase [default: phase].
    #[arg(long, value_enum)]
    pub balance: Option<BalanceArg>,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Who is nearest to missing its deadline.
    LatestStart,
    /// Who became due first.
    FirstCome,
    /// Minute by minute, and within a minute by name, as a crontab does.
    ByMinute,
}

/// How jobs are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BalanceArg {
    /// Where all their occurrences meet the least load.
    Phase,
    /// In the emptiest slot of the next day.
    LeastLoaded,
    /// Not at all: equal intervals start together.
    None,
}

/// Units of all pools, or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityArg {
    /// Of which pool; of every one if none is named.
    pub pool: Option<Pool>,
    /// So many.
    pub units: u32,
}

/// The names of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesArg(pub Vec<NodeName>);

/// A limit of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteArg {
    /// Which.
    pub site: Site,
    /// Runs at once.
    pub max_at_once: u32,
}

/// When nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageArg {
    /// From the beginning.
    pub start: Duration,
    /// For so long.
    pub length: Duration,
}

impl SetupArgs {
    /// The same with what another set-up says differently.
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

/// Reads the text of a `--compare`.
pub(super) fn compared(text: &str) -> Result<SetupArgs, String> {
    let example = "write it as `--compare \"--capacity 12\"`";
    if text.trim().is_empty() {
        return Err(format!("says nothing that differs ({example})"));
    }
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    CompareArgs::try_parse_from(words).map(|it| it.setup).map_err(|error| compare_fault(&error, example))
}

/// Options that hold for all set-ups.
const OUTSIDE: [&str; 8] = ["days", "from", "target", "add", "json", "quiet", "compare", "width"];

/// A fault of a `--compare` in one line: clap's own text tells a whole usage.
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
            return format!("`{option}` is the same for all set-ups (write it outside of --compare)");
        }
        return match context(ContextKind::SuggestedArg) {
            Some(near) => format!("unknown option `{option}` (did you mean `{near}`?)"),
            None if !option.starts_with('-') => format!("`{option}` belongs to no option ({example})"),
            None => format!("unknown option `{option}` (those under \"Set-up\" in --help are known)"),
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
        format!("`{}` is no capacity (write units from 1 to 1000000: `40` or `crawl=12`)", shortened(number))
    })?;
    Ok(CapacityArg { pool, units })
}

fn nodes(text: &str) -> Result<NodesArg, String> {
    let way_out = format!("write a number from 1 to {NODES_MAX}, or names: `n1,gpu-1`");
    if text.chars().all(|it| it.is_ascii_digit()) {
        let n = text.parse().ok().filter(|n| (1..=NODES_MAX).contains(n));
        return n.map(|n| NodesArg(node_names(n))).ok_or_else(|| format!("no number of nodes ({way_out})"));
    }
    let names = text.split(',').map(|name| name.trim().parse::<NodeName>());
    let names = names.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    match names.len() {
        n if n != sorted.len() => Err("a node is named twice (each name once)".to_owned()),
        n if NODES_MAX < n => Err(format!("too many nodes ({way_out})")),
        _ => Ok(NodesArg(names)),
    }
}

fn site(text: &str) -> Result<SiteArg, String> {
    let way_out = "write its name and how many runs at once: `shop.example=2`";
    let (name, number) = text.split_once('=').ok_or_else(|| format!("no limit is said ({way_out})"))?;
    let max_at_once = number.trim().parse().ok().filter(|most| 0 < *most);
    Ok(SiteArg {
        site: name.trim().parse().map_err(|error: evenbeat_core::ids::NameError| error.to_string())?,
        max_at_once: max_at_once.ok_or_else(|| format!("`{}` is no limit ({way_out})", shortened(number)))?,
    })
}

fn spread(text: &str) -> Result<f64, String> {
    let spread = text.trim().parse().ok().filter(|spread| (0.0..=2.0).contains(spread));
    spread.ok_or_else(|| "a spread is a number from 0 to 2 (0.3 is about a third up or down)".to_owned())
}

fn failing(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "so many of 100 runs fail: a number from 0 to 100, such as `5` or `0.5%`".to_owned())
}

fn target(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| 0.0 < *share && *share <= 1.0);
    share.ok_or_else(|| {
        "data can be fresh for more than 0 and at most 100 percent of the time (write `99.9%`)".to_owned()
    })
}

/// `99.9%` and `99.9` are 0.999.
fn percent(text: &str) -> Option<f64> {
    text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok().map(|percent| percent / 100.0)
}

fn outage(text: &str) -> Result<OutageArg, String> {
    let (start, length) = text.split_once('+').ok_or_else(|| {
        "an outage has a beginning and a length (write `2d4h+2h`: two hours, after two days and four hours)"
            .to_owned()
    })?;
    let read = |text: &str| text.parse::<Duration>().map_err(|error| error.to_string());
    // The very beginning is no length, but a place.
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
        check("", "says nothing that differs (write it as `--compare \"--capacity 12\"`)");
        check("--capcity 12", "unknown option `--capcity` (did you mean `--capacity`?)");
        check("--days 3", "`--days` is the same for all set-ups (write it outside of --compare)");
        check("12", "`12` belongs to no option (write it as `--compare \"--capacity 12\"`)");
        check("--xyz", "unknown option `--xyz` (those under \"Set-up\" in --help are known)");
        let said = compared("--capacity 0").unwrap_err();
        assert!(said.contains("`0` is no capacity"), "{said}");
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
