//! The parsers, each with texts to grow from and words to throw in.

use std::fmt::Debug;
use std::str::FromStr;

use evenbeat::testing::jobfile::{self, SourceText};
use evenbeat::testing::statefile;
use evenbeat_core::blackout::{BlackoutPeriod, Blackouts, TimeOfDay, Weekdays};
use evenbeat_core::schedule::cron::{CronExpr, CronRule, CronText};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::{Zone, Zones};

/// One parser.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// What people might write.
    pub(crate) seeds: &'static [&'static str],
    /// What makes a text look as if it meant something.
    pub(crate) words: &'static [&'static str],
    /// Longer inputs are cut.
    pub(crate) bytes_max: usize,
    /// Reads the text, checks what must hold of whatever is accepted, and returns the answer.
    pub(crate) run: fn(&str) -> String,
}

pub(crate) static DURATION: Target = Target {
    name: "duration",
    seeds: &["90s", "15m", "1h30m", "2d", "1w", "PT6H", "P1DT12H", "1.5h", "-5m", "1 hour 5 min", "36525d"],
    words: &[
        "w",
        "d",
        "h",
        "m",
        "s",
        "ms",
        "P",
        "T",
        ".",
        "0",
        "9",
        "99999999999999999999",
        "-",
        " ",
        "min",
        "M",
    ],
    bytes_max: 200,
    run: |text| printed_and_read::<Duration>(text),
};

pub(crate) static INSTANT: Target = Target {
    name: "instant",
    seeds: &["2026-12-01T09:00:00+01:00", "1969-12-31T23:59:59.999Z", "2026-12-01", "9999-12-30T00:00:00Z"],
    words: &[
        "Z",
        "T",
        "+",
        "-",
        ":",
        "00",
        "59",
        "60",
        "24",
        "9999",
        "-0001",
        "[Europe/Berlin]",
        ".999999999",
    ],
    bytes_max: 200,
    run: |text| printed_and_read::<Timestamp>(text),
};

pub(crate) static CRON: Target = Target {
    name: "cron",
    seeds: &[
        "0 0 * * *",
        "*/15 9-17 * * MON-FRI",
        "0 30 2 L-3 * ?",
        "0 12 15W,LW 1,7 *",
        "5 4 * * 5#3,FRIL",
        "H H(0-7) * * *",
        "H/15 * * * *",
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "@daily",
        "@every 15m",
        "22-2 22-2/2 29 FEB FRI-MON",
        "0 0 30 2 *",
    ],
    words: &[
        "*",
        "/",
        "-",
        ",",
        "L",
        "W",
        "LW",
        "#",
        "?",
        "H",
        "H(",
        ")",
        "0",
        "7",
        "29",
        "59",
        "60",
        "SUN",
        "DEC",
        " ",
        "@",
        "@every ",
        "CRON_TZ=",
        "TZ=UTC ",
        "*/0",
        "99999999999",
        "0-7",
    ],
    bytes_max: 300,
    run: cron,
};

pub(crate) static BLACKOUT: Target = Target {
    name: "blackout",
    seeds: &["00:00:00|01:00:00|mon", "22:00|06:00|", "00:00|24:00|sat,sun", "23:59:59|00:00|Monday,TUE"],
    words: &["|", ":", ",", "00", "24", "24:00", "59", "60", "mon", "sunday", "fri", "99999999999"],
    bytes_max: 300,
    run: blackout,
};

pub(crate) static JOB_FILE: Target = Target {
    name: "job_file",
    seeds: &[
        "[[job]]\nname = \"shop\"\ncommand = [\"true\"]\nevery = \"6h\"\n",
        "[defaults]\ntz = \"Europe/Berlin\"\nretry = { delays = [\"1m\"] }\n\n[template.night]\nblackout_periods = [{ start = \"06:00\", end = \"22:00\", days = [\"mon\"] }]\n\n[[job]]\nkey = \"a@b\"\ntemplate = \"night\"\nhttp = \"https://example.com\"\ncron = \"0 0 * * *\"\nfinish_within = \"2h\"\n",
        "[[job]]\nname = \"x\"\nqueue = { topic = \"t\" }\nfresh = \"24h\"\ncooldown = \"1h\"\nlabels = { team = \"news\" }\nparams = { depth = 3, deep = { er = [1, 2.5, true] } }\n",
        "[[job]]\nname = \"y\"\ncommand = { argv = [\"a\"], env = { A = \"b\" } }\nschedule = { interval = \"every_15_min\", nextRunAt = 1712345600000 }\n",
        "[[job]]\nname = \"z\"\ncommand = [\"true\"]\nat = 2026-12-01T09:00:00+01:00\npreferred_hours = [1, \"22-4\"]\noverlap = \"allow\"\nmax_parallel = 3\n",
    ],
    words: &[
        "[[job]]\n",
        "[defaults]\n",
        "[template.x]\n",
        "name = ",
        "every = ",
        "fresh = ",
        "cron = ",
        "at = ",
        "manual = true\n",
        "\"",
        "'",
        "\"\"\"",
        "{",
        "}",
        "[",
        "]",
        "=",
        "\n",
        ".",
        "#",
        "true",
        "1e999",
        "-1",
        "9223372036854775808",
        "\\u0041",
        "\\",
        "tz = \"Mars/Base\"\n",
        "interval_minutes = 5\n",
        "is_paused = true\n",
        "allowParallelRuns = true\n",
        "template = \"x\"\n",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "{a={a={a={a={a={a=",
    ],
    bytes_max: 4_096,
    run: job_file,
};

pub(crate) static CRONTAB: Target = Target {
    name: "crontab",
    seeds: &[
        "# m h dom mon dow command\nMAILTO=ops\n*/15 * * * * /usr/local/bin/fetch --all\n@daily backup.sh\n",
        "CRON_TZ=Europe/Berlin\n0 3 * * 1-5 report | mail -s x ops%body\n@reboot warm-cache\n",
        "SHELL=/bin/sh\n17 * * * * root cd / && run-parts /etc/cron.hourly\n0 0 1 * * www-data vacuum\n",
    ],
    words: &[
        "\n",
        "#",
        "=",
        "%",
        "@daily ",
        "@every 5m ",
        "@reboot ",
        "CRON_TZ=",
        "TZ=Mars",
        "* * * * * ",
        "*/0 ",
        "60 ",
        "root ",
        "\\",
        "\t",
        "H * * * * ",
    ],
    bytes_max: 2_048,
    run: crontab,
};

pub(crate) static STATE_FILE: Target = Target {
    name: "state_file",
    seeds: &[
        "{}",
        "{\"shop\": {\"next_run_at\": \"2026-02-04T11:00:00Z\", \"last_good_start_at\": \"2026-02-04T10:00:00Z\", \"estimate\": \"12m\"}}",
        "{\"shop\": {\"failure_count\": 3, \"last_end_at\": \"2026-02-04T10:00:00Z\", \"paused_by\": \"system\"}}",
        "{\"shop\": {\"owner_started_at\": \"2026-02-04T10:00:00Z\", \"owner_node\": \"n1\", \"runs\": 9}}",
    ],
    words: &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "-1",
        "1e99",
        "\"shop\"",
        "\"runs\"",
        "9999-12-29T23:59:59Z",
        "0001-01-01T00:00:00Z",
    ],
    bytes_max: 2_048,
    run: state_file,
};

/// The answer of a type that prints what it reads.
fn printed_and_read<T: FromStr<Err: ToString> + ToString + PartialEq + Debug>(text: &str) -> String {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>().map_err(|error| error.to_string());
            assert_eq!(again.as_ref(), Ok(&value), "{text:?} was printed as {printed:?}");
            printed
        }
        Err(error) => error.to_string(),
    }
}

fn cron(text: &str) -> String {
    let read = match text.parse::<CronText>() {
        Ok(read) => read,
        Err(error) => {
            let span = error.span();
            assert!(text.get(span.clone()).is_some(), "{span:?} is no part of {text:?}");
            return error.to_string();
        }
    };
    let CronRule::Cron(expr) = read.rule else { return "every".to_owned() };
    assert_eq!(CronExpr::parse(expr.as_str()).as_ref(), Ok(&expr), "{text:?} was printed as {expr}");
    let (plan, choices) = expr.provisional(7);
    assert_eq!(expr.resolve(&choices), Some(plan));
    let zone = Zone::named("America/Santiago").unwrap();
    let mut at: Timestamp = "2026-04-04T12:00:00.5Z".parse().unwrap();
    for _ in 0..5 {
        match plan.next_after(&zone, at) {
            Some(next) => {
                assert!(at < next, "{text:?} stands still at {at}");
                at = next;
            }
            None => return "never".to_owned(),
        }
    }
    format!("{} hashed", expr.hashed_terms().len())
}

fn blackout(text: &str) -> String {
    let mut parts = text.splitn(3, '|');
    let mut time = || parts.next().unwrap_or_default().parse::<TimeOfDay>();
    let (start, end) = match (time(), time()) {
        (Ok(start), Ok(end)) => (start, end),
        (Err(error), _) | (_, Err(error)) => return error.to_string(),
    };
    let days: Vec<&str> = parts.next().map(|days| days.split(',').collect()).unwrap_or_default();
    let days = match days.as_slice() {
        [] | [""] => Weekdays::ALL,
        names => match Weekdays::from_names(names) {
            Ok(days) => days,
            Err((_, error)) => return error.to_string(),
        },
    };
    let period = match BlackoutPeriod::new(start, end, days) {
        Ok(period) => period,
        Err(error) => return error.to_string(),
    };
    let blackouts = Blackouts::new(vec![period]).unwrap();
    let zone = Zone::named("Australia/Lord_Howe").unwrap();
    let at: Timestamp = "2026-04-04T12:00:00.5Z".parse().unwrap();
    if let Some(exit) = blackouts.exit(&zone, at) {
        assert!(at <= exit && !blackouts.contains(&zone, exit), "{period} ends inside, at {exit}");
    }
    "a blackout".to_owned()
}

fn job_file(text: &str) -> String {
    let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
    let source = SourceText { name: "fuzz.toml".to_owned(), text: text.to_owned() };
    match jobfile::load(&[source], now, &mut Zones::new()) {
        Ok(loaded) => format!("{} files", loaded.files.len()),
        Err(diagnostics) => {
            // Rendering reads spans back into the text, so it is part of what must not fail.
            assert!(!diagnostics.render(false).is_empty());
            let messages: Vec<&str> = diagnostics.iter().map(|it| it.message.as_str()).collect();
            messages.join("\n")
        }
    }
}

fn crontab(text: &str) -> String {
    let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
    let source = SourceText { name: "crontab".to_owned(), text: text.to_owned() };
    match evenbeat::testing::crontab::read(&source, None, now, &mut Zones::new()) {
        Ok(read) => format!("{} entries, {} left out", read.entries.len(), read.left_out.len()),
        Err(diagnostics) => {
            assert!(!diagnostics.render(false).is_empty());
            let messages: Vec<&str> = diagnostics.iter().map(|it| it.message.as_str()).collect();
            messages.join("\n")
        }
    }
}

fn state_file(text: &str) -> String {
    let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
    let fleet = "[[job]]\nname = \"shop\"\ncommand = [\"true\"]\nevery = \"6h\"\n";
    let source = SourceText { name: "fleet.toml".to_owned(), text: fleet.to_owned() };
    let loaded = jobfile::load(&[source], now, &mut Zones::new()).unwrap();
    let jobs: Vec<_> = loaded.files.into_iter().flat_map(|file| file.jobs).map(|it| it.job).collect();
    match statefile::states(text, &jobs, now) {
        Ok(states) => format!("{} states", states.len()),
        Err(faults) => faults.join("\n"),
    }
}
