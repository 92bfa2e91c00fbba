//! A made-up fleet, such as a team that watches shops and news might have. Its commands only sleep.

use std::fmt::Write;

use evenbeat_core::time::{Duration, Timestamp};

/// The job file of the fleet, for a demo that starts at `now`.
pub fn job_file(now: Timestamp) -> String {
    let mut text = String::from(HEAD);
    shops(&mut text, now);
    news(&mut text, now);
    partner(&mut text);
    checks(&mut text);
    old_crontab(&mut text, now);
    characters(&mut text, now);
    text
}

const HEAD: &str = "\
# A made-up fleet: every command only takes time, fails, or hangs.

[defaults]
retry = { delays = [\"10s\", \"1m\", \"5m\"] }

[template.crawl]
pool = \"crawl\"
labels = { team = \"prices\" }

[template.feed]
labels = { team = \"news\" }

[template.partner]
site = \"partner.example\"
labels = { team = \"partners\" }
";

fn job(text: &mut String, name: &str, command: &str, rest: &str) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n[[job]]\nname = \"{name}\"\ncommand = {command}\n{rest}\n");
}

/// A command that takes about this many tenths of a second.
fn taking(tenths: usize) -> String {
    format!("[\"sleep\", \"{}.{}\"]", tenths / 10, tenths % 10)
}

/// A first run this many tenths of a second after the demo starts, so that the first seconds are busy.
fn first_run(now: Timestamp, tenths: usize) -> String {
    let at = now + Duration::from_millis(i64::try_from(tenths * 100).unwrap_or(0));
    format!("next_run_at = {at}")
}

/// Shop crawls: prices must be fresh, stock changes fast.
fn shops(text: &mut String, now: Timestamp) {
    const SHOPS: [&str; 12] = [
        "atlas", "birch", "cobalt", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper", "kite",
        "lumen",
    ];
    for (n, shop) in SHOPS.iter().enumerate() {
        job(
            text,
            &format!("{shop}-prices"),
            &taking(80 + n * 20),
            "template = \"crawl\"\nfresh = \"10m\"\ncooldown = \"4m\"",
        );
        let stock = format!("template = \"crawl\"\nevery = \"5m\"\n{}", first_run(now, 10 + n * 23));
        job(text, &format!("{shop}-stock"), &taking(30 + n * 5), &stock);
        job(text, &format!("{shop}-catalog"), &taking(200 + n * 20), "template = \"crawl\"\nevery = \"15m\"");
        job(text, &format!("{shop}-images"), &taking(60 + n * 10), "template = \"crawl\"\nevery = \"30m\"");
    }
}

/// Feeds that are polled often and take no time.
fn news(text: &mut String, now: Timestamp) {
    for n in 1..=40 {
        let every = ["6m", "8m", "10m", "12m", "15m"][n % 5];
        // Every other one starts at the beginning, the rest wherever there is room.
        let first = if n % 2 == 0 { first_run(now, 4 + n * 6) } else { String::new() };
        let rest = format!("template = \"feed\"\nevery = \"{every}\"\n{first}");
        job(text, &format!("feed-{n:02}"), &taking(8 + n % 30), &rest);
    }
}

/// A site with a limit of two concurrent runs.
fn partner(text: &mut String) {
    for n in 1..=30 {
        job(
            text,
            &format!("partner-{n:02}"),
            &taking(40 + n % 9 * 10),
            "template = \"partner\"\nevery = \"6m\"",
        );
    }
}

/// Checks on the minute, as in crontabs.
fn checks(text: &mut String) {
    for n in 1..=4 {
        job(
            text,
            &format!("check-{n:02}"),
            &taking(2 + n % 4),
            "cron = \"* * * * *\"\nlabels = { team = \"ops\" }",
        );
    }
}

/// Jobs from a crontab, all in the same minute, for a rebalance to spread.
fn old_crontab(text: &mut String, now: Timestamp) {
    let next = now + Duration::from_mins(50);
    for n in 1..=300 {
        job(
            text,
            &format!("sync-{n:03}"),
            &taking(10 + n % 20),
            &format!("every = \"1h\"\nnext_run_at = {next}\nlabels = {{ team = \"sync\" }}"),
        );
    }
}

/// Jobs with problems.
fn characters(text: &mut String, now: Timestamp) {
    let of_day = |at: Timestamp| at.to_string().get(11..19).unwrap_or("00:00:00").to_owned();
    let blackout = format!(
        "every = \"1m\"\nblackout_periods = [{{ start = \"{}\", end = \"{}\" }}]",
        of_day(now + Duration::from_secs(45)),
        of_day(now + Duration::from_mins(4))
    );
    job(text, "night-window", &taking(6), &blackout);
    job(text, "broken-parser", "[\"sh\", \"-c\", \"echo 'KeyError: price' >&2; exit 1\"]", "every = \"40s\"");
    job(
        text,
        "flaky-login",
        "[\"sh\", \"-c\", \"sleep 0.5; test $(( $(date +%s) % 3 )) -ne 0 || { echo 'login refused' >&2; exit 1; }\"]",
        "every = \"30s\"\nretry = { delays = [\"5s\"] }",
    );
    job(
        text,
        "hanging-export",
        "[\"sleep\", \"3600\"]",
        "every = \"2m\"\nmax_expected_duration = \"10s\"\nmax_allowed_duration = \"25s\"",
    );
    job(text, "slow-report", &taking(280), "every = \"3m\"\nmax_expected_duration = \"20s\"");
    job(
        text,
        "counting-crawl",
        "[\"sh\", \"-c\", \"sleep 1; echo '{\\\"pages_processed\\\": 42, \\\"changes_detected\\\": 3}' > $EVENBEAT_RESULT_FILE\"]",
        "every = \"30s\"",
    );
    job(text, "full-recrawl", &taking(200), "manual = true");
    job(text, "missing-tool", "[\"no-such-tool\", \"--version\"]", "every = \"2m\"");
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zones;

    use super::*;
    use crate::jobfile::{SourceText, load};

    #[test]
    fn the_fleet_is_a_good_job_file_at_any_time_of_day() {
        for now in ["2026-11-16T10:00:00Z", "2026-11-16T23:57:30.5Z", "2028-02-29T23:59:59.999Z"] {
            let now: Timestamp = now.parse().unwrap();
            let file = SourceText { name: "demo.toml".to_owned(), text: job_file(now) };
            let loaded = load(&[file], now, &mut Zones::new());
            let loaded = loaded.unwrap_or_else(|faults| panic!("{}", faults.render(false)));
            let n_jobs: usize = loaded.files.iter().map(|it| it.jobs.len()).sum();
            assert_eq!(n_jobs, 48 + 40 + 30 + 4 + 300 + 8);
        }
    }

    #[test]
    fn the_first_seconds_are_busy() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let file = SourceText { name: "demo.toml".to_owned(), text: job_file(now) };
        let loaded =
            load(&[file], now, &mut Zones::new()).unwrap_or_else(|it| panic!("{}", it.render(false)));
        let hints = loaded.files.iter().flat_map(|it| &it.jobs).filter_map(|it| it.job.next_run_hint);
        let starts: Vec<Timestamp> = hints.filter(|at| *at < now + Duration::from_secs(20)).collect();
        for second in 1..20 {
            let from = now + Duration::from_secs(second);
            let n_starts =
                starts.iter().filter(|at| from <= **at && **at < from + Duration::from_secs(2)).count();
            assert!(0 < n_starts, "nothing starts in seconds {second} and {}", second + 1);
        }
    }
}
